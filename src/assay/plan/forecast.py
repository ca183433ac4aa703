"""How much is left, and the next step in words: `assay next`, the progress bar's ETA, `assay plan`'s cost."""

from __future__ import annotations

from assay.plan.composing import promising
from assay.plan.evidence import A_A, CONFIRMATION, MAIN, composition, series_brackets
from assay.plan.next_step import next_step
from assay.plan.runs import median_run_s
from assay.plan.screening import open_candidates
from assay.plan.steps import AskApproval, Done, Finish, GiveUp, MakeRun, RecordCalibration, RecordScreen, Step
from assay.records.state import CampaignState
from assay.records.views import NextStep

EXPECTED_BRACKETS = 0.75
"""Share of the allowed brackets that an average trial is expected to use: clear cases stop early."""


def remaining_s(state: CampaignState) -> float:
    """Expected measuring time until the campaign ends, never more than the budget has left."""
    if state.headline is not None:
        return 0.0
    budget, run_s = state.spec.budget, median_run_s(state)
    main = series_brackets(state, MAIN)
    runs = 0.0
    if state.calibration is None:
        runs += 2 * max(0, budget.calibration_brackets - len(main.of(A_A))) + 1
    expected = max(1.0, EXPECTED_BRACKETS * budget.max_brackets)
    runs += sum(2 * max(0.5, expected - len(main.of(h.id))) for h in open_candidates(state))
    waiting = [h for h in promising(state) if h.id not in state.verdicts and h.status == "planned"]
    runs += sum(max(1.0, 5 - 2 * len(series_brackets(state, composition(h.id)))) for h in waiting)
    if state.stack or open_candidates(state) or waiting:
        runs += 2 * max(0, budget.confirmation_brackets - len(series_brackets(state, CONFIRMATION))) + 1
    return max(0.0, min(runs * run_s, budget.total_s - state.spent_s))


def describe_next(state: CampaignState) -> NextStep:
    """The next step, why it is the next, and what it should cost."""
    step = next_step(state)
    kind, text, why = _words(step)
    intent = step.intent if isinstance(step, MakeRun) else None
    return NextStep(
        kind=kind,
        purpose=intent.purpose if intent else None,
        candidate=intent.candidate if intent else None,
        text=text,
        why=why,
        expected_s=median_run_s(state) if intent else 0.0,
        remaining_s=remaining_s(state),
    )


def _words(step: Step) -> tuple[str, str, str]:
    match step:
        case MakeRun(intent=intent):
            return "run", f"run {intent.run_id}: {intent.arm.label}, attempt {intent.attempt}", intent.why
        case RecordCalibration(calibration=calibration):
            sd = 100 * calibration.bracket_sd
            return "calibrate", "close the calibration", f"all A/A brackets are in: one bracket's noise is {sd:.1f}%"
        case RecordScreen(result=result):
            return "screen", f"{result.candidate} goes on to composition", "its interval lies above zero"
        case Finish(headline=headline):
            return "finish", "write the headline", headline.sentence
        case AskApproval(ids=ids):
            why = "the policy asks for approval from this tier on: set `approved: true` in their documents"
            return "approve", f"waiting for approval of {', '.join(ids)}", why
        case GiveUp(reason=reason, hint=hint):
            return "give-up", reason, hint
        case Done():
            return "done", "nothing: the campaign is finished", "the headline is recorded"
        case _:
            return "verdict", f"{step.verdict.candidate}: {step.verdict.kind}", step.verdict.reason
