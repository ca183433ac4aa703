"""How many brackets it takes to decide what a trial left open, if its effect is what was measured.

A trial of its own, looked at once: its interval then has the whole error rate. The number is the least at which both
ends of the 60% around today's estimate would be decided, so that the decision comes with a chance of about 80% if the
truth is today's estimate; that estimate's own error is left out, so the number is a beginning and no promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.records.verdict import Effect
from assay.stats.sequential import Decision, decide, student_quantile
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
    if found.standard_error <= 0 or _decision(found, min_effect, MOST) == "continue":
        return None
    low, high = 0, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _decision(found, min_effect, middle) != "continue" else (middle, high)
    return Trial(brackets=high, decision=_decision(found, min_effect, high))


def _decision(found: Effect, min_effect: float, brackets: int) -> Decision:
    """What so many brackets say with the power that is asked for; "continue" where they may say nothing."""
    error = found.standard_error * math.sqrt(information(found.num_brackets) / information(brackets))
    degrees = found.degrees_of_freedom - found.num_brackets + brackets
    half = student_quantile(1 - (1 - found.confidence) / 2, degrees) * error
    shift = student_quantile(POWER, degrees) * error
    ends = {
        decide(_at(found, estimate, half), min_effect)
        for estimate in (found.log_ratio - shift, found.log_ratio + shift)
    }
    if len(ends) == 1:
        return ends.pop()
    return "futile" if "continue" not in ends and "better" not in ends else "continue"


def _at(found: Effect, estimate: float, half: float) -> Effect:
    return found.model_copy(update={"log_ratio": estimate, "low": estimate - half, "high": estimate + half})
