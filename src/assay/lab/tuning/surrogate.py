"""What the measurements so far say of those not made: a log-linear model over values and pairs of values.

log(time) = offset of the number of tokens + log(rough guess) + an effect of every value + one of every pair of values,
by ridge regression. Tiles, warps and stages act on each other two at a time (what a tile needs in registers depends on
the warps, what it needs in shared memory on the stages), and hardly three at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from assay.lab.tuning.space import RANGES, Config, Problem, guess_s

Array = npt.NDArray[np.float64]
RIDGE_SINGLE, RIDGE_PAIR = 0.5, 2.0
"""How strongly effects are held towards none, in units of one measurement's weight."""
NEIGHBOUR_WEIGHT = 0.35
"""Of measurements at the neighbouring numbers of tokens: alike, not the same."""
RECENT = 2
"""Neighbours that are looked back to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was measured at one number of tokens."""

    problem: Problem
    times_s: dict[Config, float]


def ranked(candidates: Iterable[Config], here: Evidence, neighbours: Sequence[Evidence]) -> list[Config]:
    """Candidates by what the model expects, fastest first.

    Args:
        candidates: not yet measured.
        here: the number of tokens that is searched.
        neighbours: those searched before, the latest last.
    """
    wanted = list(candidates)
    used = [one for one in (*neighbours[-RECENT:], here) if one.times_s]
    if not used or not wanted:
        return wanted
    matrix = np.concatenate([_features(list(each.times_s), place, len(used)) for place, each in enumerate(used)])
    answers = np.concatenate([_residuals(each) for each in used])
    weights = [1.0 if each is here else NEIGHBOUR_WEIGHT for each in used]
    scale = np.sqrt(np.repeat(weights, [len(each.times_s) for each in used]))
    matrix *= scale[:, None]
    held = np.diag(_ridge(len(used)))
    effects = np.linalg.solve(matrix.T @ matrix + held, matrix.T @ (answers * scale))
    expected = _features(wanted, len(used) - 1, len(used)) @ effects
    expected += np.log([guess_s(one, here.problem) for one in wanted])
    return [wanted[place] for place in np.lexsort((np.arange(len(wanted)), expected))]


def _residuals(one: Evidence) -> Array:
    """What the rough guess leaves to be explained."""
    return np.array([math.log(time_s / guess_s(config, one.problem)) for config, time_s in one.times_s.items()])


def _features(configs: Sequence[Config], group: int, groups: int) -> Array:
    """One-hot rows: the number of tokens, every value, every pair of values."""
    places = np.array([[_place(value, RANGES[at]) for at, value in enumerate(astuple(one))] for one in configs])
    every = np.arange(len(configs))
    singles = sum(map(len, RANGES))
    pairs = sum(len(a) * len(b) for a, b in combinations(RANGES, 2))
    found = np.zeros((len(configs), groups + singles + pairs))
    found[:, group] = 1.0
    at = groups
    for direction, values in enumerate(RANGES):
        found[every, at + places[:, direction]] = 1.0
        at += len(values)
    for first, second in combinations(range(len(RANGES)), 2):
        found[every, at + places[:, first] * len(RANGES[second]) + places[:, second]] = 1.0
        at += len(RANGES[first]) * len(RANGES[second])
    return found


def _ridge(groups: int) -> list[float]:
    singles = sum(map(len, RANGES))
    pairs = sum(len(a) * len(b) for a, b in combinations(RANGES, 2))
    return [1e-3] * groups + [RIDGE_SINGLE] * singles + [RIDGE_PAIR] * pairs


@lru_cache(maxsize=1024)
def _place(value: int, values: tuple[int, ...]) -> int:
    """The nearest of the grid: an engine's default may lie beside it."""
    return min(range(len(values)), key=lambda place: abs(math.log(values[place] / value)))
