"""What to do next: one pure function of the campaign's state.

The order of a campaign: calibrate (A/A) -> screen every candidate in bracketed rounds -> test the promising ones
again on top of the stack, best lower bound first -> take each member of the stack out once (ablation) -> confirm the
stack against the original baseline -> finish.
Because the decision rests on the record alone, a killed campaign goes on exactly where it was.
"""

from __future__ import annotations

import re

from assay.plan.ablation import next_ablation
from assay.plan.arms import baseline_arm
from assay.plan.composing import next_composition
from assay.plan.confirming import next_confirmation
from assay.plan.dependencies import in_vain
from assay.plan.evidence import calibrate
from assay.plan.implied import next_implied
from assay.plan.reading import Reading
from assay.plan.runs import MAX_ATTEMPTS, candidates_turn, failed_in_a_row, intent, median_run_s
from assay.plan.screening import next_screen, open_candidates, unapproved
from assay.plan.series import A_A, MAIN, series_brackets, valid_runs, why_not_counted
from assay.plan.steps import AskApproval, Done, GiveUp, MakeRun, RecordCalibration, Step
from assay.plan.verdicts import RETRY_CAUSES, blocked_at_plan_time
from assay.records.run import Purpose, RunStatus
from assay.records.state import CampaignState

REFUSED = re.compile(r"\bhttp-4(?:00|13|22)\b")
"""What a request is answered with that no server would ever take."""


def next_step(state: CampaignState, *, first_run: int = 0) -> Step:
    """Decide the next step from the record alone.

    Args:
        state: the campaign as recorded.
        first_run: number of runs recorded before this session: a baseline that failed then is given another chance.
    """
    if state.headline is not None:
        return Done()
    state = Reading.of(state)
    for hypothesis in state.hypotheses:
        if hypothesis.status == "blocked" and hypothesis.id not in state.verdicts:
            return blocked_at_plan_time(hypothesis)
    if step := in_vain(state) or next_implied(state):
        return step
    if stuck := _baseline_is_stuck(state, first_run):
        return stuck
    if state.calibration is None:
        return _next_calibration(state)
    return (
        _unapproved(state)
        or next_screen(state)
        or next_composition(state)
        or next_ablation(state)
        or next_confirmation(state)
    )


def _next_calibration(state: CampaignState) -> Step:
    wanted = state.spec.budget.calibration_brackets
    have = len(series_brackets(state, MAIN).of(A_A))
    if have >= wanted and (calibration := calibrate(state)) is not None:
        return RecordCalibration(calibration=calibration)
    runs = valid_runs(state, MAIN)
    a_a_turn = candidates_turn(runs)
    why = f"learning this box's noise: bracket {have + 1} of {wanted} of the baseline against itself"
    return MakeRun(
        intent=intent(
            state,
            purpose=Purpose.CALIBRATION,
            series=MAIN,
            candidate=A_A if a_a_turn else None,
            arm=baseline_arm(state.spec.target),
            why=why,
        )
    )


def _baseline_is_stuck(state: CampaignState, first_run: int) -> GiveUp | None:
    """A baseline that failed or was invalid too often ends the session: nothing could be compared."""
    failures = failed_in_a_row(state, first_run)
    if not failures:
        return None
    last = failures[-1]
    failure = last.outcome.failure if last.outcome else None
    certain = failure is not None and failure.cause not in RETRY_CAUSES
    if len(failures) < MAX_ATTEMPTS and not certain:
        return None
    why = why_not_counted(state, last)
    hint = (
        f"read {failure.log}; start the baseline by hand with the command in runs/{last.intent.run_id}/command.json"
        if failure
        else _hint(state, why or "")
    )
    return GiveUp(
        reason=f"the baseline failed {_times(len(failures))}; last: {why}",
        hint=hint,
        engine_failed=all(run.outcome and run.outcome.status is RunStatus.FAILED for run in failures),
    )


def _hint(state: CampaignState, why: str) -> str:
    """What to do about runs that are no measurement, though the server lived."""
    if REFUSED.search(why):
        return (
            "the server refuses the requests themselves; where they are too long for its context, ask with a smaller "
            "workload.shared_prefix_tokens, input_tokens or output_tokens, or with more context, in a new folder"
        )
    if state.left_s < 2 * median_run_s(state):
        return (
            "budget.total_s is spent, and stands once a campaign is begun: quiet the machine, and ask in a new folder "
            "with a larger one (assay.toml)"
        )
    return (
        f"quiet the machine, then `assay run` again ({state.left_s:.0f} s of the budget are left: runs whose gates "
        "failed are not charged to it); or ask with wider windows (assay.toml) in a new folder"
    )


def _unapproved(state: CampaignState) -> AskApproval | None:
    """Asked when all else is screened, and before composition: the error rate is shared out over all who reach it."""
    waiting = [h.id for h in unapproved(state)]
    return AskApproval(ids=waiting) if waiting and not open_candidates(state) else None


def _times(count: int) -> str:
    return "and would fail the same way again" if count == 1 else f"{count} times in a row"
