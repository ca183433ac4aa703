"""A campaign that holds nothing but a search: every run is answered by a function of its setting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from assay.plan.dials import Method, Settled, next_point
from assay.plan.steps import MakeRun
from assay.records.base import Flags
from assay.records.dials import Dial, Knob
from assay.records.run import Failure, RunOutcome, RunStatus
from assay.records.spec import CampaignSpec, Objective, Target, Workload
from assay.records.state import CampaignState, RunRecord
from assay.units import NS_PER_S
from tests.unit.simulated_world import BUILD, MACHINE, MODEL, hypothesis, measures

Answer = float | Failure | RunStatus
HYPOTHESIS = hypothesis("dial", flags={})
SLOTS = Knob(name="slots", flag="--parallel", low=1, high=16, factor=2, memory="more")
BATCH = Knob(name="batch", flag="--ubatch-size", low=32, high=512, factor=2, memory="more")
DIAL = Dial(knobs=[SLOTS, BATCH])
BASELINE: Flags = {"--parallel": 1, "--ubatch-size": 512}


def start(*, baseline: Flags = BASELINE, min_effect: float = 0.05, **workload: Any) -> CampaignState:
    """A campaign that has run nothing."""
    spec = CampaignSpec(
        target=Target(flags=baseline),
        workload=Workload.model_validate({"concurrency": 16, **workload}),
        objective=Objective(min_effect=min_effect),
    )
    return CampaignState(
        created_at_ns=0, spec=spec, spec_hash="s", machine=MACHINE, build=BUILD, model=MODEL, assay_version="0"
    )


def ended(state: CampaignState, step: MakeRun, answer: Answer) -> CampaignState:
    """The state after a run: tokens/s, a failure, or a status without measures."""
    place = len(state.runs)
    common: dict[str, Any] = {"run_id": step.intent.run_id, "duration_s": 10.0}
    if isinstance(answer, Failure):
        outcome = RunOutcome(status=RunStatus.FAILED, reason=answer.line, failure=answer, **common)
    elif isinstance(answer, RunStatus):
        outcome = RunOutcome(status=answer, reason=f"made to be {answer}", **common)
    else:
        outcome = RunOutcome(status=RunStatus.OK, reason="every gate passed", measures=measures(answer), **common)
    run = RunRecord(
        intent=step.intent, outcome=outcome, intended_at_ns=place * NS_PER_S, ended_at_ns=(place + 1) * NS_PER_S
    )
    return state.model_copy(update={"runs": [*state.runs, run]})


def drive(
    state: CampaignState,
    truth: Callable[[Flags], Answer],
    *,
    dial: Dial = DIAL,
    noise: float = 0.01,
    drift: float = 0.0,
    seed: int = 1,
    method: Method = "surface",
) -> tuple[CampaignState, Settled]:
    """Search to the end; a number that `truth` gives is tokens/s, noise and drift are put on it."""
    while True:
        step = next_point(state, HYPOTHESIS, dial, method=method)
        if isinstance(step, Settled):
            return state, step
        answer = truth(step.intent.arm.flags)
        if isinstance(answer, float):
            place = len(state.runs)
            shift = noise * np.random.default_rng([seed, place]).standard_normal() + drift * place
            answer *= math.exp(shift)
        state = ended(state, step, answer)


def hill(flags: Flags) -> float:
    """Best at 8 slots and a batch of 128; 60% above the baseline."""
    slots, batch = math.log2(float(flags["--parallel"])), math.log2(float(flags["--ubatch-size"]))
    return 100 * math.exp(-0.05 * (slots - 3) ** 2 - 0.02 * (batch - 7) ** 2)


def settings_run(state: CampaignState) -> list[tuple[Any, Any]]:
    """Slots and batch of every run, in order."""
    return [(run.intent.arm.flags["--parallel"], run.intent.arm.flags["--ubatch-size"]) for run in state.runs]
