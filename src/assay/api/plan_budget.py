"""What a plan's budget reaches for, told before anything is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.records.state import CampaignState


def assumed_launch_s(state: CampaignState) -> float:
    """What each launch is taken for in the time that is said to be left; 0 once runs were measured."""
    from assay.plan.cost import assumed_run_s

    if any(run.outcome and run.outcome.measures for run in state.runs):
        return 0.0
    return assumed_run_s(state.spec, state.model.size_bytes) - state.spec.workload.least_load_s


def slow_start(state: CampaignState) -> str | None:
    """What to say where a launch is expected to outlast its time limit; None where it is not, or one was measured."""
    from assay.plan.cost import START_S, guessed_launch
    from assay.render.words import duration_words

    target = state.spec.target
    if state.runs or target.engine not in START_S:
        return None
    guess = guessed_launch(state.spec, state.model.size_bytes)
    if guess.expected_s <= target.start_timeout_s:
        return None
    return (
        f"target.start_timeout_s is {duration_words(target.start_timeout_s)}, and a launch is expected to take "
        f"{duration_words(guess.expected_s)} ({guess.basis}): a server that is still loading would be called failed"
    )


def shortfall(state: CampaignState) -> str | None:
    """What to say where the budget has no time for what is asked: candidates, or their soaks; None where it has."""
    from assay.plan.cost import least_calibration_s
    from assay.render.words import duration_words

    budget, least_s = state.spec.budget, least_calibration_s(state.spec)
    total = f"budget.total_s is {duration_words(budget.total_s)}, and"
    if state.calibration is not None:
        return None
    if least_s > budget.total_s:
        return (
            f"{total} the calibration alone takes at least "
            f"{duration_words(least_s)} of load ({budget.calibration_brackets} brackets), launches not counted: "
            "no candidate will be tried"
        )
    return _too_short(state, total)


def _too_short(state: CampaignState, total: str) -> str | None:
    """The same by what launches are expected to take; the screen leaves composition and confirmation their time."""
    from assay.plan.runs import median_run_s
    from assay.plan.screening import reserved_runs
    from assay.plan.soaking import in_budget, kept_s
    from assay.render.words import duration_words

    budget, run_s = state.spec.budget, median_run_s(state)
    expected_s = (2 * budget.calibration_brackets + 1) * run_s
    launch_s = assumed_launch_s(state)
    guessed = f", if a launch takes {duration_words(launch_s)}" if launch_s else ""
    if expected_s > budget.total_s:
        return (
            f"{total} the calibration alone is expected to take {duration_words(expected_s)} "
            f"({budget.calibration_brackets} brackets), launches being a guess: probably no candidate will be tried"
        )
    kept = reserved_runs(state) * run_s
    least_s = expected_s + kept + 2 * run_s
    if least_s > budget.total_s:
        return (
            f"{total} the calibration (about {duration_words(expected_s)}), the time kept for composition and "
            f"confirmation (about {duration_words(kept)}) and one bracket of a candidate ({duration_words(2 * run_s)}) "
            f"take {duration_words(least_s)}{guessed}: probably no candidate will be tried; raise "
            f"budget.total_s, or lower budget.confirmation_brackets ({budget.confirmation_brackets}) or "
            f"budget.calibration_brackets ({budget.calibration_brackets})"
        )
    if budget.soak_s and not in_budget(state, expected_s + 2 * budget.soak_s):
        return (
            f"{total} soaks of budget.soak_s ({duration_words(budget.soak_s)}) of a candidate and of the baseline do "
            f"not fit beside the calibration (about {duration_words(expected_s)}) and the confirmation (about "
            f"{duration_words(kept_s(state))}): what is adopted will not be soaked; raise budget.total_s or lower "
            "budget.soak_s"
        )
    return None
