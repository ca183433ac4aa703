"""The same pipeline with fixed numbers of pairs: no early stop, and a baseline run for each candidate run.

Screen: every candidate gets `screen_pairs` pairs (baseline, candidate), one look. Those with an interval above zero and
an estimate worth having are measured again with `again_pairs` fresh pairs, the error rate shared out over them. The
noise is pooled over all pairs of a stage, so this design lacks nothing but the two savings. Calibration and
confirmation cost what they cost in the default campaign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.records.spec import Budget, Statistics
from assay.stats.sequential import student_quantile

BUDGET, STATISTICS = Budget(), Statistics()
PAIRS = range(2, 17)
POWER_CAMPAIGNS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A design with what it does."""

    screen_pairs: int
    again_pairs: int
    power: float
    """Share of the true gains that it adopts."""


def calibration_runs() -> int:
    """Runs of the A/A brackets."""
    return 2 * BUDGET.calibration_brackets + 1


def confirmation_runs() -> int:
    """Pairs of the final stack and the baseline."""
    return 2 * BUDGET.confirmation_brackets


def cheapest(effects: Sequence[float], *, sd: float, min_effect: float, power: float) -> Fixed | None:
    """The design with the fewest runs whose power is at least this; None: no allowed number of pairs has it."""
    found = []
    for screen_pairs in PAIRS:
        for again_pairs in PAIRS:
            reached = _passes(effects, sd, min_effect, screen_pairs, again_pairs)
            if reached >= power:
                cost, _ = mean_runs(effects, sd=sd, min_effect=min_effect, pairs=(screen_pairs, again_pairs))
                found.append((cost, Fixed(screen_pairs=screen_pairs, again_pairs=again_pairs, power=reached)))
                break
    return min(found, key=lambda one: one[0])[1] if found else None


def mean_runs(effects: Sequence[float], *, sd: float, min_effect: float, pairs: tuple[int, int]) -> tuple[float, float]:
    """Expected runs with this design: of the trials alone, and of a campaign with calibration and confirmation."""
    reached, adopted = _simulate(effects, sd, min_effect, *pairs)
    trials = 2 * pairs[0] * len(effects) + 2 * pairs[1] * float(reached.sum(axis=1).mean())
    return trials, trials + calibration_runs() + confirmation_runs() * float(adopted.any(axis=1).mean())


def _passes(effects: Sequence[float], sd: float, min_effect: float, screen_pairs: int, again_pairs: int) -> float:
    _, adopted = _simulate(effects, sd, min_effect, screen_pairs, again_pairs)
    return float(adopted[:, np.asarray(effects) > 0].mean())


def _simulate(
    effects: Sequence[float], sd: float, min_effect: float, screen_pairs: int, again_pairs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Who reached the second stage and who was adopted, each of shape (campaigns, candidates)."""
    rng = np.random.default_rng(1)
    true = np.asarray(effects)
    worth = math.log1p(min_effect)
    reached = _better(true, sd, worth, screen_pairs, np.full((POWER_CAMPAIGNS, 1), STATISTICS.screen_alpha), rng)
    shared = STATISTICS.adopt_alpha / np.maximum(1, reached.sum(axis=1, keepdims=True))
    return reached, reached & _better(true, sd, worth, again_pairs, shared, rng)


def _better(
    true: np.ndarray, sd: float, worth: float, pairs: int, alpha: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    shape = (POWER_CAMPAIGNS, len(true))
    pair_sd = math.sqrt(2) * sd
    degrees = len(true) * (pairs - 1)
    estimate = true + pair_sd / math.sqrt(pairs) * rng.standard_normal(shape)
    seen_sd = pair_sd * np.sqrt(rng.chisquare(degrees, (POWER_CAMPAIGNS, 1)) / degrees)
    values, place = np.unique(alpha, return_inverse=True)
    quantiles = np.array([-student_quantile(value / 2, degrees) for value in values])[place].reshape(alpha.shape)
    return (estimate - quantiles * seen_sd / math.sqrt(pairs) > 0) & (estimate >= worth)
