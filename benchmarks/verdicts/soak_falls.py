"""Who is called unstable for falling in its soak (dying, or standing still), by how often arm and reference do.

Whole campaigns of the real planner with one candidate that gains enough to be adopted; soaks fall by chance.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from assay.records.run import RunIntent
from assay.records.soak import Soak
from assay.records.spec import MAIN_POINT, Budget, CampaignSpec
from assay.rehearsal.world import World, drive, hypothesis, start

FALLS = (
    (0.05, 0.05), (0.2, 0.2), (0.4, 0.4), (0.6, 0.6), (0.8, 0.8), (1.0, 1.0),
    (0.0, 0.5), (0.2, 0.0), (0.5, 0.0), (0.8, 0.0), (1.0, 0.0), (1.0, 0.2),
)  # fmt: skip
"""Of the soaks of an arm and of its reference, in how many the server falls: alike, and not alike."""
GAIN = 0.3
SOAK_S, RUN_S = 60.0, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallen:
    """Of so many campaigns."""

    kinds: Counter[str]
    """Verdicts on the candidate."""
    soaks: int
    """Of either arm, all of them."""


def fallen(own: float, base: float, campaigns: int) -> Fallen:
    """How campaigns end in which soaks of the arm and of the baseline fall with these chances, each by itself."""
    budget = Budget(total_s=1e6, calibration_brackets=2, confirmation_brackets=2, soak_s=SOAK_S)
    kinds: Counter[str] = Counter()
    soaks = 0
    for number in range(campaigns):
        rng = np.random.default_rng([round(1e6 * own), round(1e6 * base), number])
        journal = start([hypothesis("good")], CampaignSpec(budget=budget))
        drive(journal, _world(rng, own, base, number))
        state = journal.state
        kinds[str(state.verdicts["good"].kind)] += 1
        soaks += sum(run.intent.soak_s > 0 for run in state.runs)
    return Fallen(kinds=kinds, soaks=soaks)


def _world(rng: np.random.Generator, own: float, base: float, seed: int) -> World:
    def soak(intent: RunIntent, nth: int) -> Soak:  # noqa: ARG001 - the shape of `World.soak`
        falls = rng.random() < (own if intent.arm.deltas else base)
        died = "crashed at stage under-load" if falls else ""
        return Soak(point=MAIN_POINT, concurrency=8, soaked_s=intent.soak_s, requests=400, failed=0, died=died)

    return World(effects={"good": GAIN}, run_sd=0.01, seed=seed, duration_s=RUN_S, soak=soak)
