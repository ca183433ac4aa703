"""The studies: which worlds are simulated, and the smallest effect that can be found in each."""

from __future__ import annotations

import math
from dataclasses import replace

from benchmarks.verdicts.box import DRIFTS, LAWS, Drift
from benchmarks.verdicts.ours import Cell

from assay.records.spec import Budget, Statistics
from assay.stats.brackets import Noise
from assay.stats.sequential import min_detectable_effect
from assay.stats.spending import Looks, nominal_alpha

SDS = (0.005, 0.01, 0.015, 0.03)
NULLS = (0.0,) * 20
PEERS_WORTH, DEFAULT_WORTH = WORTHS = 0.01, 0.05
POWER_CANDIDATES = 10
MULTIPLES = (0, 1, 2, 4)
POWER_BOXES = ((0.01, PEERS_WORTH), (0.03, DEFAULT_WORTH))
"""Run-to-run noise, and the smallest effect worth adopting."""
SAVINGS: tuple[tuple[int | None, float | None], ...] = ((2, 0.0), (2, None), (3, None), (None, None))
"""`budget.block` and `statistics.give_up_below`; None: the default."""
SAVINGS_MULTIPLES = (0, 1, 2)
MIX = (*(0.0,) * 8, -0.03, *(math.log1p(gain) for gain in (0.01, 0.02, 0.04)))


def detectable(sd: float) -> float:
    """The minimum detectable effect (relative) that a calibration tells which hits the noise exactly."""
    budget, noise = Budget(), Noise(variance=sd**2, degrees_of_freedom=Budget().calibration_brackets)
    looks = Looks(budget.min_brackets, budget.max_brackets)
    alpha = nominal_alpha(budget.max_brackets, looks, Statistics().screen_alpha, prior_degrees=noise.degrees_of_freedom)
    return min_detectable_effect(noise, budget.max_brackets, alpha=alpha)


def nulls() -> list[Cell]:
    """Campaigns of 20 useless flags."""
    return [null_cell(sd, worth, drift) for worth in WORTHS for sd in SDS for drift in DRIFTS] + fast_drifts()


def null_cell(sd: float, worth: float, drift: Drift) -> Cell:
    """One of them."""
    return Cell(study="nulls", sd=sd, min_effect=worth, effects=NULLS, drift=drift)


def fast_drifts() -> list[Cell]:
    """A box that drifts in each run as much as the peers' short campaigns see: ours are longer, and see more of it."""
    return [
        replace(null_cell(sd, PEERS_WORTH, drift), drift_runs=len(NULLS) + 1)
        for sd in SDS[:2]
        for drift in DRIFTS
        if drift != "none"
    ]


def power() -> list[Cell]:
    """One useful flag among useless ones."""
    return [power_cell(sd, worth, multiple) for sd, worth in POWER_BOXES for multiple in MULTIPLES]


def power_cell(sd: float, worth: float, multiple: int) -> Cell:
    """The useful one gains so many times the minimum detectable effect."""
    gain = math.log1p(multiple * detectable(sd))
    return Cell(study="power", sd=sd, min_effect=worth, effects=(gain, *(0.0,) * (POWER_CANDIDATES - 1)))


def mix() -> list[Cell]:
    """Useless, harmful and useful ones together: coverage and headlines."""
    return [
        Cell(study="mix", sd=0.01, min_effect=PEERS_WORTH, effects=MIX, law=law, drift=drift)
        for law in LAWS
        for drift in DRIFTS
    ]


def savings() -> list[Cell]:
    """The power study's 1% box without what saves runs, and with one more of it each time."""
    return [savings_cell(block, below, multiple) for block, below in SAVINGS for multiple in SAVINGS_MULTIPLES]


def savings_cell(block: int | None, below: float | None, multiple: int) -> Cell:
    """One of them; with nothing changed it is the power study's own."""
    return replace(power_cell(*POWER_BOXES[0], multiple), block=block, give_up_below=below)


def guards() -> list[Cell]:
    """No campaigns: its table plays compositions by itself (`benchmarks.verdicts.guards`)."""
    return []


def leaks() -> list[Cell]:
    """No campaigns either (`benchmarks.verdicts.leaks`)."""
    return []


def errors() -> list[Cell]:
    """Nor here (`benchmarks.verdicts.soak_errors`)."""
    return []


def falls() -> list[Cell]:
    """Nor here (`benchmarks.verdicts.soak_falls`)."""
    return []


STUDIES = {
    "nulls": nulls,
    "power": power,
    "mix": mix,
    "savings": savings,
    "guards": guards,
    "leaks": leaks,
    "errors": errors,
    "falls": falls,
}
