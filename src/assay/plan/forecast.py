"""The next step in words, with what it and the rest will cost: `assay next`."""

from __future__ import annotations

from assay.plan.next_step import next_step
from assay.plan.reading import Reading
from assay.plan.remaining import remaining_s
from assay.plan.runs import has_measured, median_run_s
from assay.plan.screening import open_candidates
from assay.plan.steps import (
    AskApproval,
    Done,
    Finish,
    GiveUp,
    MakeRun,
    RecordAblation,
    RecordCalibration,
    RecordDial,
    RecordScreen,
    Step,
)
from assay.plan.worth import ranked
from assay.records.state import CampaignState
from assay.records.views import NextStep


def describe_next(state: CampaignState) -> NextStep:
    """The next step, why it is the next, and what it should cost."""
    state = Reading.of(state)
    step = next_step(state)
    kind, text, why = _words(step)
    intent = step.intent if isinstance(step, MakeRun) else None
    return NextStep(
        kind=kind,
        purpose=intent.purpose if intent else None,
        candidate=intent.candidate if intent else None,
        text=text,
        why=why,
        expected_s=median_run_s(state) + intent.soak_s if intent else 0.0,
        remaining_s=remaining_s(state),
        times_assumed=not has_measured(state),
        candidates=ranked(state, open_candidates(state)) if state.calibration and kind in {"run", "verdict"} else [],
        simulated=state.is_simulated,
        detectable=state.calibration.min_detectable_effect if state.calibration else None,
    )


def _words(step: Step) -> tuple[str, str, str]:
    match step:
        case MakeRun(intent=intent):
            return "run", f"run {intent.run_id}: {intent.arm.label}, attempt {intent.attempt}", intent.why
        case RecordCalibration(calibration=calibration):
            sd = 100 * calibration.bracket_sd
            return "calibrate", "close the calibration", f"all A/A brackets are in: one bracket's noise is {sd:.1f}%"
        case RecordDial(result=result):
            return "dial", f"the search of {result.candidate} is over", result.reason
        case RecordScreen(result=result):
            return "screen", f"{result.candidate} goes on to composition", "its interval lies above zero"
        case RecordAblation(ablation=ablation):
            return "ablate", f"{ablation.candidate}: {'kept' if ablation.kept else 'taken out'}", ablation.reason
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
