"""Holding `max_loss` against a point's estimate, or against its interval: who is adopted wrongly, and what it costs.

A candidate gains enough on the average, and loses something at one operating point. Its composition is played to the
end of its budget, as the planner would look at it: after each bracket from the second on, until the guard lets it pass
or shows that it loses too much. Only the guard decides here, and the point is as noisy as a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import Literal

from benchmarks.verdicts.box import Box

from assay.plan.conditions import Standing, losses
from assay.plan.evidence import guard_alpha, looks_until
from assay.records.spec import Budget, Statistics
from assay.records.verdict import Effect
from assay.stats.brackets import Noise, Point, brackets
from assay.stats.sequential import effect
from assay.stats.spending import ONE_LOOK

Rule = Callable[[Effect, float], Standing]
Ended = Literal["adopted", "worse", "undecided"]
LENT_DEGREES = 8.0
"""Of the noise that the rest of a campaign lends: its calibration, and some of its screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """How one candidate ended."""

    ended: Ended
    brackets: int


def by_estimate(told: Effect, allowed: float) -> Standing:
    """The rule that was: the estimate is held against what may be lost."""
    kept = told.log_ratio >= math.log1p(-allowed)
    return (
        Standing() if kept else Standing(unproved="the estimate lies below", broken=by_interval(told, allowed).broken)
    )


def by_interval(told: Effect, allowed: float) -> Standing:
    """The rule that is: the planner's own."""
    return losses({"point": told}, allowed)


RULES: dict[str, Rule] = {"estimate": by_estimate, "interval": by_interval}


@lru_cache(maxsize=100_000)
def looked_at(true: float, sd: float, seed: int, *, every_look: bool) -> tuple[Effect, ...]:
    """The effect at the point as every look of one composition tells it."""
    budget, statistics = Budget(), Statistics()
    logs = Box(sd=sd, seed=seed).logs(2 * budget.composition_brackets + 1)
    points = [
        Point(candidate="c" if place % 2 else None, log_value=float(log) + (true if place % 2 else 0.0))
        for place, log in enumerate(logs)
    ]
    own = Box(sd=sd, seed=seed + 10_000_000).logs(int(LENT_DEGREES) + 1)
    lent = Noise(variance=float(own.var(ddof=1)), degrees_of_freedom=LENT_DEGREES)
    looks = looks_until(budget, budget.composition_brackets) if every_look else ONE_LOOK
    alpha = guard_alpha(statistics) if every_look else statistics.screen_alpha
    told = []
    for number in range(budget.min_brackets, budget.composition_brackets + 1):
        found = effect(brackets(points[: 2 * number + 1]), lent, alpha=alpha, looks=looks)
        assert found is not None
        told.append(found)
    return tuple(told)


def guarded(rule: str, true: float, sd: float, allowed: float, seed: int) -> Guarded:
    """One candidate under a rule."""
    looks = looked_at(true, sd, seed, every_look=rule == "interval")
    for told in looks:
        stands = RULES[rule](told, allowed)
        if stands.broken:
            return Guarded(ended="worse", brackets=told.num_brackets)
        if not stands.unproved:
            return Guarded(ended="adopted", brackets=told.num_brackets)
    return Guarded(ended="undecided", brackets=looks[-1].num_brackets)


def shares(rule: str, true: float, sd: float, allowed: float, candidates: int) -> tuple[dict[str, int], float]:
    """Of so many candidates: how many ended how, and their mean number of brackets."""
    found = [guarded(rule, true, sd, allowed, seed) for seed in range(candidates)]
    ends = [one.ended for one in found]
    return {end: ends.count(end) for end in ("adopted", "worse", "undecided")}, fmean(one.brackets for one in found)
