"""How many brackets it takes to decide what a trial left open, if its effect is what was measured.

A trial of its own, looked at once: its interval then has the whole error rate. The number is the least at which the
answer comes with a chance of 80% (`POWER`), if the truth is today's estimate: the new estimate is taken to be Student's
t around it. Today's own error is left out, so the number is a beginning and no promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.records.verdict import Effect
from assay.stats.sequential import Decision, student_quantile
from assay.stats.spending import information

MOST = 200
"""Brackets: what needs more is better made on a quieter machine."""
POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A trial that would decide."""

    brackets: int
    decision: Decision
    """What it would find, if the effect is what it looks like."""


def deciding_trial(found: Effect, min_effect: float) -> Trial | None:
    """The smallest trial that decides; None where `MOST` brackets do not.

    Args:
        found: what is known of the effect.
        min_effect: smallest relative effect that counts.
    """
    if found.standard_error <= 0 or _answer(found, min_effect, MOST) == "continue":
        return None
    low, high = 0, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _answer(found, min_effect, middle) != "continue" else (middle, high)
    return Trial(brackets=high, decision=_answer(found, min_effect, high))


def _answer(found: Effect, min_effect: float, brackets: int) -> Decision:
    """What so many brackets say with a chance of `POWER`, as told as that chance allows; "continue" for nothing.

    The bounds are those of `assay.stats.sequential.decide`: a gain is an estimate that is worth having and more than
    half its interval; no gain worth having, one that stays half an interval below that.
    """
    from scipy.special import stdtr

    worth = math.log1p(min_effect)
    error = found.standard_error * math.sqrt(information(found.num_brackets) / information(brackets))
    degrees = found.degrees_of_freedom - found.num_brackets + brackets
    half = student_quantile(1 - (1 - found.confidence) / 2, degrees) * error

    def below(bound: float) -> float:
        return float(stdtr(degrees, (bound - found.log_ratio) / error))

    if below(max(worth, half)) <= 1 - POWER:
        return "better"
    if below(worth - half) < POWER:
        return "continue"
    if below(-half) >= POWER:
        return "worse"
    inside = half < worth and below(worth - half) - below(half - worth) >= POWER
    return "no-effect" if inside else "futile"
