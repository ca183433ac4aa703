"""Does memory grow, or did it only rise? A slope with its interval that neither a plateau nor a single jump can fake.

Memory of a server is no line with noise around it: it moves in steps, and what was taken stays taken. Regressed on
time, or held against a rank test of trend, such a walk "grows" far too often, and so does a pool that is still being
filled (the warm-up of every server). So the unit here is the *change* from one sample to the next: a random walk with
drift,

    v_i - v_(i-1) = g (t_i - t_(i-1)) + e_i,    var e_i proportional to t_i - t_(i-1)

whose drift is estimated by (last - first) / span, with Student's t of the changes as its interval. One jump among n
changes has t = 1, however large; changes that take back what they gave widen the interval. Two things are done besides:
the first third of the samples is left to the warm-up, and growth whose later half is less than half of its earlier one
is said to level off (a pool that fills with a time constant below 0.7 of the judged span does).

Sources: spurious trends of a walk regressed on time, Nelson & Kang 1984, Pitfalls in the Use of Time as an Explanatory
Variable in Regression; false alarms of the Mann-Kendall test for software aging, Machida, Andrzejak, Matias & Vicente
2013, On the Effectiveness of Mann-Kendall Test for Detection of Software Aging.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from assay.stats.sequential import student_quantile

ALPHA = 0.01
"""Error rate of each bound."""
WARM_SHARE = 1 / 3
"""Of the samples, left out at the beginning."""
MIN_CHANGES = 6
LEVELS_OFF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Per second, in the unit of the values."""

    num_samples: int
    span_s: float
    begin: float
    end: float
    rate: float
    low: float
    high: float
    levels_off: bool


def growth(at_s: Sequence[float], values: Sequence[float], *, alpha: float = ALPHA) -> Growth | None:
    """Estimate the drift of a quantity that is sampled under steady load.

    Args:
        at_s: instants in seconds, each later than the one before; they need not be evenly spaced.
        values: the quantity at these instants.
        alpha: error rate of each bound.

    Returns:
        None where fewer than `MIN_CHANGES` changes are left after the warm-up.
    """
    first = math.ceil(WARM_SHARE * len(at_s))
    times, judged = list(at_s[first:]), list(values[first:])
    steps = [after - before for before, after in pairwise(times)]
    changes = [after - before for before, after in pairwise(judged)]
    if len(changes) < MIN_CHANGES:
        return None
    span = times[-1] - times[0]
    rate = (judged[-1] - judged[0]) / span
    squares = sum((change - rate * step) ** 2 / step for change, step in zip(changes, steps, strict=True))
    degrees = len(changes) - 1
    half = -student_quantile(alpha, degrees) * math.sqrt(squares / degrees / span)
    return Growth(
        num_samples=len(judged),
        span_s=span,
        begin=judged[0],
        end=judged[-1],
        rate=rate,
        low=rate - half,
        high=rate + half,
        levels_off=_levels_off(times, judged),
    )


def _levels_off(times: Sequence[float], values: Sequence[float]) -> bool:
    middle = len(times) // 2
    early = (values[middle] - values[0]) / (times[middle] - times[0])
    late = (values[-1] - values[middle]) / (times[-1] - times[middle])
    return early > 0 and late < LEVELS_OFF * early
