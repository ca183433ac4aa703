"""The record read as a state: one pure function from events to `CampaignState`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.errors import RecordError
from assay.plan.soak_reports import completed_headline
from assay.records.dials import DialResult
from assay.records.event import Event, EventKind
from assay.records.hypothesis import Hypothesis
from assay.records.machine import EngineBuild, Machine, ModelFacts
from assay.records.model_shape import ModelShape
from assay.records.reasoning import PlanReasoning
from assay.records.run import RunIntent, RunOutcome, ServerIdentity
from assay.records.scoring import PredictionScore
from assay.records.spec import CampaignSpec
from assay.records.state import Ablation, CampaignState, RunRecord, ScreenResult
from assay.records.verdict import Calibration, Headline, Verdict, VerdictKind


def fold(events: Iterable[Event]) -> CampaignState:
    """Apply every event in order.

    Raises:
        RecordError: the record does not begin with the creation of a campaign.
    """
    state: CampaignState | None = None
    for event in events:
        state = _created(event) if state is None else advance(state, event)
    if state is None:
        raise RecordError("the record is empty: no campaign was created in it", hint="start one with `assay plan`")
    return state


def advance(state: CampaignState, event: Event) -> CampaignState:
    """The state after one more event."""
    return state.model_copy(update={**_change(state, event), "num_events": event.seq, "last_hash": event.hash})


def _created(event: Event) -> CampaignState:
    if event.kind is not EventKind.CAMPAIGN_CREATED:
        raise RecordError(
            f"the record begins with {event.kind} at event {event.seq}, not with {EventKind.CAMPAIGN_CREATED}",
            hint="run `assay verify` to see what is damaged",
        )
    payload = event.payload
    return CampaignState(
        created_at_ns=event.at_ns,
        spec=_declared(payload["spec"]),
        spec_hash=payload["spec_hash"],
        machine=Machine.model_validate(payload["machine"]),
        build=EngineBuild.model_validate(payload["build"]),
        model=ModelFacts.model_validate(payload["model"]),
        shape=ModelShape.model_validate(payload["shape"]) if "shape" in payload else None,
        assay_version=payload["assay_version"],
        num_events=event.seq,
        last_hash=event.hash,
    )


def _declared(spec: dict[str, Any]) -> CampaignSpec:
    """The question as it was asked: an Assay that knew no soak declared none."""
    return CampaignSpec.model_validate({**spec, "budget": {"soak_s": 0.0, **spec.get("budget", {})}})


def _change(state: CampaignState, event: Event) -> dict[str, Any]:
    payload = event.payload
    match event.kind:
        case EventKind.PLAN_WRITTEN:
            return _planned(state, payload)
        case EventKind.RUN_INTENDED | EventKind.SERVER_STARTED | EventKind.RUN_MEASURED | EventKind.RUN_ENDED:
            return {"runs": _runs(state, event)}
        case EventKind.CALIBRATED:
            return {"calibration": Calibration.model_validate(payload["calibration"])}
        case EventKind.DIAL_SETTLED:
            result = DialResult.model_validate(payload["result"])
            dials = {**state.dials, result.candidate: result}
            return {"dials": dials, "hypotheses": settled(state.hypotheses, dials)}
        case EventKind.SCREENED:
            screened = ScreenResult.model_validate(payload["result"])
            return {"screened": {**state.screened, screened.candidate: screened}}
        case EventKind.VERDICT_REACHED:
            verdict = Verdict.model_validate(payload["verdict"])
            adopted = [verdict.candidate] if verdict.kind is VerdictKind.ADOPTED else []
            return {"verdicts": {**state.verdicts, verdict.candidate: verdict}, "stack": [*state.stack, *adopted]}
        case EventKind.ABLATED:
            return _ablated(state, Ablation.model_validate(payload["ablation"]))
        case EventKind.CAMPAIGN_FINISHED:
            return {"headline": completed_headline(state, Headline.model_validate(payload["headline"]))}
        case EventKind.CAMPAIGN_CREATED:
            raise RecordError(f"event {event.seq} creates a campaign again", hint="run `assay verify`")


def _planned(state: CampaignState, payload: dict[str, Any]) -> dict[str, Any]:
    """What a plan changes; what it does not say (plans of an older Assay say less) stays."""
    hypotheses = [Hypothesis.model_validate(item) for item in payload["hypotheses"]]
    kept = settled([*hypotheses, *_dropped_but_touched(state, hypotheses)], state.dials)
    earlier = [PredictionScore.model_validate(one) for one in payload.get("earlier_scores", [])]
    found = {
        "hypotheses": kept,
        "planned": True,
        "passed_over": payload.get("passed_over", state.passed_over),
        "earlier_scores": earlier or state.earlier_scores,
    }
    if payload.get("random_weights"):
        target = state.spec.target.model_copy(update={"random_weights": True})
        found["spec"] = state.spec.model_copy(update={"target": target})
    if "reasoning" in payload:
        found["reasoning"] = PlanReasoning.model_validate(payload["reasoning"])
    return found


def settled(hypotheses: list[Hypothesis], dials: dict[str, DialResult]) -> list[Hypothesis]:
    """Hypotheses with the flags that the searches of their dials found; the others as they are."""
    found = {name: result.flags for name, result in dials.items() if result.flags is not None}
    return [
        h.model_copy(update={"optimization": h.optimization.model_copy(update={"flags": found[h.id]})})
        if h.id in found
        else h
        for h in hypotheses
    ]


def _runs(state: CampaignState, event: Event) -> list[RunRecord]:
    payload = event.payload
    if event.kind is EventKind.RUN_INTENDED:
        intent = RunIntent.model_validate(payload["intent"])
        return [*state.runs, RunRecord(intent=intent, intended_at_ns=event.at_ns)]
    if event.kind is EventKind.SERVER_STARTED:
        return _with_run(state, payload["run_id"], server=ServerIdentity.model_validate(payload["server"]))
    outcome = RunOutcome.model_validate(payload["outcome"])
    if event.kind is EventKind.RUN_MEASURED:
        return _with_run(state, outcome.run_id, measured=outcome)
    return _with_run(state, outcome.run_id, outcome=outcome, ended_at_ns=event.at_ns)


def _ablated(state: CampaignState, ablation: Ablation) -> dict[str, Any]:
    change: dict[str, Any] = {"ablations": {**state.ablations, ablation.candidate: ablation}}
    if ablation.kept:
        return change
    old = state.verdicts[ablation.candidate]
    reason = f"adopted at first ({old.reason}), then taken out: {ablation.reason}"
    verdict = old.model_copy(update={"kind": VerdictKind.NO_EFFECT, "reason": reason})
    stack = [name for name in state.stack if name != ablation.candidate]
    return {**change, "stack": stack, "verdicts": {**state.verdicts, ablation.candidate: verdict}}


def _dropped_but_touched(state: CampaignState, new: list[Hypothesis]) -> list[Hypothesis]:
    """Hypotheses whose document is gone although runs or verdicts speak of them: kept, but not carried on."""
    known = {h.id for h in new}
    touched = {*state.verdicts, *state.screened, *(run.intent.candidate for run in state.runs)}
    return [
        h if h.id in state.verdicts else h.model_copy(update={"status": "cancelled"})
        for h in state.hypotheses
        if h.id in touched - known
    ]


def _with_run(state: CampaignState, run_id: str, **update: Any) -> list[RunRecord]:
    return [run.model_copy(update=update) if run.intent.run_id == run_id else run for run in state.runs]
