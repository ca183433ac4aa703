"""A against B (and C ...) by bracketed runs: A B A C A B A ..., each side held against the runs of A on both sides.

The statistics are those of a campaign (`brackets`, `sequential`): log ratios, an interval that holds at every look,
the noise pooled from a side's own brackets, from those of the other sides and from A's successive runs. The error rate
is shared out over sides and looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from assay.records.verdict import Effect
from assay.stats.brackets import Point, brackets, pool, residual_noise, successive_noise
from assay.stats.sequential import effect
from assay.stats.spending import Looks

Answer = Literal["better", "worse", "same", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Declared before anything is measured."""

    alpha: float
    """Chance that any interval misses, over all sides and looks."""
    min_effect: float
    """"same": the interval lies within plus or minus this relative effect."""
    num_sides: int
    """Sides besides the reference."""
    min_rounds: int
    max_rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What is known of one side."""

    effect: Effect | None
    """None before the first look that the noise allows."""
    answer: Answer


NOT_YET = Answered(effect=None, answer="undecided")


def judge(points: Sequence[Point], side: str, rules: Rules) -> Answered:
    """One side against the reference after the runs so far.

    Args:
        points: all valid runs in the order of measuring, `candidate` None for the reference.
        side: the candidate.
        rules: the declared rules.
    """
    found = brackets(points)
    own = found.of(side)
    if len(own) < rules.min_rounds:
        return NOT_YET
    reference = [point.log_value for point in points if point.candidate is None]
    noise = pool(residual_noise(found.without(side)), successive_noise(reference))  # `effect` adds the side's own
    told = effect(own, noise, alpha=rules.alpha / rules.num_sides, looks=Looks(rules.min_rounds, rules.max_rounds))
    return Answered(effect=told, answer="undecided" if told is None else _answer(told, rules.min_effect))


def _answer(told: Effect, min_effect: float) -> Answer:
    worth = math.log1p(min_effect)
    if told.low > 0:
        return "better"
    if told.high < 0:
        return "worse"
    return "same" if told.low > -worth and told.high < worth else "undecided"
