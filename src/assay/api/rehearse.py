"""The verb that rehearses a campaign in memory, and what a simulated target's step is made of."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.records.rehearsal import Outlook, StepFacts
    from assay.records.state import CampaignState
    from assay.rehearsal.outlook import Known

DEFAULT_RUN_SD = 0.015
"""Run-to-run noise where nothing was calibrated: between the 0.5% of a locked GPU and the 3% of a shared one."""


def rehearse(
    folder: Path,
    *,
    campaigns: int = 200,
    seed: int = 1,
    run_sd: float | None = None,
    launch_s: float | None = None,
    say: Callable[[str], None] = lambda _text: None,
) -> Outlook:
    """Dry-run the planned campaign in memory, many times; nothing is launched and the record is not touched.

    Args:
        folder: the campaign's; it has to be planned, if only for another machine.
        campaigns: how many worlds are drawn.
        seed: of all draws.
        run_sd: run-to-run noise (0.01 is 1%); the calibration's, or a stated default, when absent.
        launch_s: how long a launch takes; the record's, or a guess that is told with its range, when absent.
        say: told what is being done.

    Raises:
        UsageError: there is no planned campaign in this folder.
    """
    from assay.api.inspect import status
    from assay.api.plan_elsewhere import planned_elsewhere
    from assay.errors import UsageError
    from assay.rehearsal.outlook import rehearse as rehearsed

    away = planned_elsewhere(folder)
    state = away.state if away else status(folder)
    if not state.planned:
        raise UsageError(f"{folder} is not planned yet", hint="`assay plan` writes the hypotheses to rehearse")
    known = _known(state, run_sd, launch_s)
    return rehearsed(state.spec, state.hypotheses, known, campaigns=campaigns, seed=seed, say=say)


def step_facts(state: CampaignState) -> StepFacts | None:
    """Where a step of a simulated target's load goes; None for an engine that is real, or a target that cannot be.

    The load is the workload's: as many sequences as run at once, half of their answers made on average.
    """
    from assay.errors import AssayError
    from assay.render.words import is_simulated

    if not is_simulated(state):
        return None
    try:
        return _step_facts(state)
    except AssayError:
        return None


def _step_facts(state: CampaignState) -> StepFacts | None:
    from assay.api.plan_facts import shape_of
    from assay.plan.target_step import load_of
    from assay.probes.devices import box as named_box
    from assay.records.estimate import OperatingPoint
    from assay.records.rehearsal import StepFacts
    from assay.rehearsal.machine import element_bytes, layout_of
    from assay.roofline import mechanisms, memory, step

    given = {name.removeprefix("--").replace("-", "_"): value for name, value in state.spec.target.flags.items()}
    shape = state.shape or shape_of(state.model, state.spec, {})  # the file may be on the machine that measured
    if shape is None:
        return None
    box, layout = named_box(str(given["box"])), layout_of(given)
    element = element_bytes(given)
    budget = memory.budget(
        shape, box, layout, memory_fraction=float(given.get("mem_fraction_static", 0.9)),
        cache_bytes_per_element=element,
    )  # fmt: skip
    workload = state.spec.workload
    load = load_of(workload, caches_prefixes=False)  # the simulated engine has no prefix cache
    each = load.reserved_tokens
    limit = given.get("max_running_requests")
    running = max(1, min(workload.concurrency, budget.sequences(each), int(limit) if limit else workload.concurrency))
    point = OperatingPoint(phase="decode", sequences=running, context_tokens=load.context_tokens)
    found = step.estimate(shape, box, layout, point, cache_bytes_per_element=element)
    return StepFacts(
        step=found,
        memory=budget,
        machine=box.name,
        asked=workload.concurrency,
        tokens_each=each,
        running_limit=int(limit) if limit else None,
        ceilings=mechanisms.ceilings(found, shape, box, layout, cache_bytes_per_element=element),
    )


def _known(state: CampaignState, run_sd: float | None, launch_s: float | None) -> Known:
    from assay.plan.cost import guessed_launch, trial_cost
    from assay.plan.runs import median_run_s
    from assay.rehearsal.outlook import Known

    noise, freedom = "given with --noise", None
    if run_sd is None and state.calibration is not None:
        # A bracket is one run less the mean of two: its variance is 1.5 times a run's.
        run_sd, freedom = state.calibration.bracket_sd / math.sqrt(1.5), state.calibration.degrees_of_freedom
        noise = f"this campaign's calibration, {freedom:.0f} degrees of freedom"
    elif run_sd is None:
        run_sd, noise = DEFAULT_RUN_SD, "assumed: nothing is calibrated yet"
    starts = sorted(run.outcome.start_s for run in state.runs if run.outcome and run.outcome.start_s is not None)
    if starts and launch_s is None:
        return Known(
            run_sd=run_sd, run_sd_source=noise, run_sd_freedom=freedom, run_s=median_run_s(state),
            launch_s=starts[len(starts) // 2], run_s_source="the record's runs",
        )  # fmt: skip
    guess = guessed_launch(state.spec, state.model.size_bytes)
    span = (guess.low_s, guess.high_s)
    told = f"a launch guessed at {guess.expected_s:.3g} s ({span[0]:.3g} to {span[1]:.3g}): {guess.basis}"
    if launch_s is not None:
        told = "a launch as given with --launch"
    cost = trial_cost(state.spec, guess.expected_s if launch_s is None else launch_s)
    return Known(
        run_sd=run_sd, run_sd_source=noise, run_sd_freedom=freedom, run_s=cost.run_s + 1.0, launch_s=cost.launch_s,
        run_s_source=f"{told}, and the workload's windows", launch_range_s=span if launch_s is None else None,
    )  # fmt: skip
