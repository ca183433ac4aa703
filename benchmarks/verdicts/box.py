"""A box that measures the same configuration differently each time: run-to-run noise, and drift over the campaign."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Law = Literal["normal", "t4"]
Drift = Literal["none", "linear", "walk"]
LAWS: tuple[Law, ...] = ("normal", "t4")
DRIFTS: tuple[Drift, ...] = ("none", "linear", "walk")
DRIFT_TOTAL = 0.02
"""Of the log value over a campaign: where a linear drift ends, and the standard deviation of where a walk ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """What one seed makes of a machine."""

    sd: float
    """Run-to-run standard deviation of the log value; t4 is scaled to the same."""
    law: Law = "normal"
    drift: Drift = "none"
    length: int = 100
    """Runs after which the drift has reached its total; it goes on in the same way beyond."""
    seed: int = 0

    def logs(self, num_runs: int) -> NDArray[np.float64]:
        """What each run adds to the log value of its configuration, in the order of measuring."""
        return _noise(self, num_runs) + _drift(self, num_runs)


def _noise(box: Box, num_runs: int) -> NDArray[np.float64]:
    rng = np.random.default_rng([box.seed, 1])
    if box.law == "normal":
        return box.sd * rng.standard_normal(num_runs)
    return box.sd / math.sqrt(2) * rng.standard_t(4, num_runs)  # the variance of t with 4 degrees of freedom is 2


def _drift(box: Box, num_runs: int) -> NDArray[np.float64]:
    if box.drift == "none":
        return np.zeros(num_runs)
    if box.drift == "linear":
        return DRIFT_TOTAL / box.length * np.arange(num_runs, dtype=np.float64)
    rng = np.random.default_rng([box.seed, 2])
    steps = DRIFT_TOTAL / math.sqrt(box.length) * rng.standard_normal(num_runs)
    return np.cumsum(steps)


def shuffled(effects: tuple[float, ...], seed: int) -> list[float]:
    """Candidates' true log ratios in the order in which this campaign has them: no method may know it."""
    rng = np.random.default_rng([seed, 3])
    return [float(effect) for effect in rng.permutation(effects)]
