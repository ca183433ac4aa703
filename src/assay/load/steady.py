"""When warm-up is over: a rule on the tokens counted in consecutive equal stretches of time.

Steady means that the two most recent stretches agree within what noise alone produces. Tokens do not come one by one:
each new request stalls its neighbours while its prompt is read, so counts vary like counts of clumps. With clumps of
g tokens that begin at random, Var(count) = g x mean, so the square root of a count has the standard deviation
sqrt(g) / 2 whatever the pace, and the difference of two such roots sqrt(g / 2). The rule:

    |sqrt(a) - sqrt(b)| <= Z * sqrt(g / 2),   g = half the output tokens of a request

g follows from the share f of its time that a server spends on prompts: a request's prompt costs its neighbours
f / (1 - f) of its own output tokens, squared: half of them at f = 41%, more than that only with long prompts.

The rule has the power that the data have. It always sees a server that has hardly begun to answer; it sees a change by
a third once a stretch holds a hundred requests' worth of tokens. It cannot see a slow trend: the windows
themselves and the brackets around a candidate are there for that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Z = 1.96
"""Two-sided 5%: a steady server fails one look in twenty and passes the next."""


def is_steady(counts: Sequence[int], tokens_per_request: float) -> bool:
    """Whether the last two of consecutive equal stretches agree within noise.

    Args:
        counts: content chunks that arrived in each stretch since the load began.
        tokens_per_request: mean output length.

    Returns:
        False with fewer than two stretches, and when either of the last two is empty.
    """
    if len(counts) < 2:  # noqa: PLR2004 - a comparison needs two
        return False
    before, now = counts[-2:]
    clump = max(tokens_per_request / 2, 1.0)
    return min(before, now) > 0 and abs(math.sqrt(now) - math.sqrt(before)) <= Z * math.sqrt(clump / 2)
