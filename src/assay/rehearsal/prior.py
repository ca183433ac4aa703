"""What could be true of a plan's hypotheses: effects drawn from their predicted ranges, failures from priors.

A predicted range is read as the middle 80% of a normal distribution of the log ratio; with the prior of its tier a
hypothesis fails instead, in one of four ways. The priors are assumptions, told with every outlook.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from assay.records.failure import Cause
from assay.records.hypothesis import Hypothesis
from assay.records.run import Failure, RunIntent, RunOutcome, RunStatus
from assay.records.soak import MemoryTrend, Soak
from assay.records.state import CampaignState
from assay.rehearsal.world import Trouble, World, stands
from assay.stats.scoring import log_range, middle, spread
from assay.units import GIB_BYTES, MIB_BYTES

FAILING = {1: 0.10, 2: 0.25, 3: 0.50}
"""Prior of failing by tier: flags mostly start, layouts and artifacts often do not, new code seldom does."""
WAYS: dict[str, float] = {"blocked": 0.5, "unstable": 0.2, "not-applied": 0.2, "wrong-output": 0.1}
"""How what fails does fail."""
GROWTH_BYTES_PER_S, HELD_BYTES = MIB_BYTES, GIB_BYTES
"""Of every arm alike: any growth that is shown asks for the soak of what an arm stands on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truths:
    """One draw."""

    effects: dict[str, float] = field(default_factory=dict)
    """Log ratios."""
    failing: dict[str, str] = field(default_factory=dict)
    """Way of failing, by hypothesis."""


def draw(hypotheses: Sequence[Hypothesis], rng: np.random.Generator) -> Truths:
    """Truths for every hypothesis."""
    effects, failing = {}, {}
    for hypothesis in hypotheses:
        low, high = log_range(hypothesis.predicted)
        effects[hypothesis.id] = float(rng.normal(middle(low, high), spread(low, high)))
        if rng.random() < FAILING[hypothesis.optimization.tier]:
            failing[hypothesis.id] = str(rng.choice(list(WAYS), p=list(WAYS.values())))
    return Truths(effects=effects, failing=failing)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedWorld(World):
    """A world in which a run that ends early costs less."""

    launch_s: float = 0.0

    def answer(self, intent: RunIntent, state: CampaignState) -> RunOutcome:
        """How this run ends."""
        found = World.answer(self, intent, state)
        if found.status in {RunStatus.FAILED, RunStatus.NOT_APPLIED} and intent.candidate is not None:
            return found.model_copy(update={"duration_s": min(self.launch_s, self.duration_s)})
        return found.model_copy(update={"duration_s": found.duration_s + intent.soak_s}) if intent.soak_s else found


def world_of(truths: Truths, *, run_sd: float, run_s: float, launch_s: float, seed: int) -> PricedWorld:
    """The world in which these truths hold."""

    def trouble(intent: RunIntent, nth: int) -> Trouble:  # noqa: ARG001 - the shape of `World.trouble`
        ways = [truths.failing[name] for name in intent.arm.deltas if name in truths.failing]
        return _outcome(ways[0]) if ways else None

    return PricedWorld(
        effects=truths.effects, run_sd=run_sd, seed=seed, duration_s=run_s, trouble=trouble, launch_s=launch_s,
        soak=growing,
    )  # fmt: skip


def growing(intent: RunIntent, nth: int) -> Soak:
    """Every arm's memory grows alike in its soak, as llama.cpp's does: what it stands on is soaked, too."""
    rate = float(GROWTH_BYTES_PER_S)
    trend = MemoryTrend(
        where="server", num_samples=40, span_s=intent.soak_s, begin_bytes=HELD_BYTES,
        end_bytes=HELD_BYTES + round(rate * intent.soak_s), bytes_per_s=rate, low_bytes_per_s=rate,
        high_bytes_per_s=rate, tolerated_bytes_per_s=0.0, levels_off=False,
    )  # fmt: skip
    return stands(intent, nth).model_copy(update={"requests_per_s": 1.0, "memory": [trend]})


def _outcome(way: str) -> Trouble:
    match way:
        case "blocked":
            return Failure(stage="load", cause=Cause.INCOMPATIBLE, line="simulated: does not start", log="server.log")
        case "unstable":
            return Failure(stage="under-load", cause=Cause.ILLEGAL_ACCESS, line="simulated: dies", log="server.log")
        case "not-applied":
            return RunStatus.NOT_APPLIED
        case _:
            return RunStatus.WRONG_OUTPUT
