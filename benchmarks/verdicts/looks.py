"""Coverage at the worst stopping time: does an interval miss the truth at any look at all?

The series of a screen (blocks of `budget.block` candidates between baseline runs, the noise lent by everything else) is
carried to the last bracket of every candidate, whatever the intervals say. Whoever stops when it suits them can miss no
oftener than this.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.verdicts.box import Box

from assay.records.spec import Budget, Statistics
from assay.stats.brackets import Brackets, Point, brackets, pool, residual_noise, successive_noise
from assay.stats.sequential import effect
from assay.stats.spending import Looks

A_A = "a/a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """Of one simulated screen."""

    candidates: int
    at_some_look: int
    at_last_look: int


def runs_of_screen(num_candidates: int, budget: Budget) -> list[str | None]:
    """Who is measured when; None: the baseline."""
    order: list[str | None] = [None, *[A_A, None] * budget.calibration_brackets]
    for _ in range(budget.max_brackets):
        for place in range(0, num_candidates, budget.block):
            order += [f"c{i}" for i in range(place, min(place + budget.block, num_candidates))]
            order.append(None)
    return order


def screen(num_candidates: int, box: Box) -> Missed:
    """One screen of candidates without effect."""
    budget = Budget()
    order = runs_of_screen(num_candidates, budget)
    points = [Point(candidate=who, log_value=float(log)) for who, log in zip(order, box.logs(len(order)), strict=True)]
    ever, last = set(), set()
    for end in range(2, len(points) + 1):
        if points[end - 1].candidate is not None:
            continue
        closed = points[:end]
        block = [p.candidate for p in closed[-1 - budget.block : -1] if p.candidate not in {None, A_A}]
        found = brackets(closed) if block else None
        for name in block:
            missed, is_last = _look(found, closed, str(name), budget)
            if missed:
                ever.add(name)
                last |= {name} if is_last else set()
    return Missed(candidates=num_candidates, at_some_look=len(ever), at_last_look=len(last))


def _look(found: Brackets | None, closed: list[Point], name: str, budget: Budget) -> tuple[bool, bool]:
    assert found is not None
    own = found.of(name)
    if len(own) < budget.min_brackets:
        return False, False
    others = found.keep([i for i, who in enumerate(found.candidates) if who != name])
    baseline = [point.log_value for point in closed if point.candidate is None]
    lent = pool(residual_noise(others, known_zero=[A_A]), successive_noise(baseline))
    looks = Looks(budget.min_brackets, budget.max_brackets)
    told = effect(own, lent, alpha=Statistics().screen_alpha, looks=looks)
    assert told is not None
    return not told.low <= 0.0 <= told.high, len(own) == budget.max_brackets
