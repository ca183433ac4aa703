"""The verb that plans: the improvement documents written and read back, and the plan in the record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.plan.hypotheses import Plan
    from assay.plan.situation import Situation
    from assay.records.hypothesis import Hypothesis
    from assay.records.machine import ModelFacts
    from assay.records.scoring import PredictionScore
    from assay.records.spec import CampaignSpec
    from assay.records.state import CampaignState


def plan(folder: Path, *, catalogue: Path | None = None) -> CampaignState:
    """Write the improvement documents and the plan into the record; read edited documents back.

    Args:
        folder: the campaign's folder, with its assay.toml.
        catalogue: a catalogue folder that replaces the built-in one.

    Raises:
        UsageError: assay.toml or a document is wrong, the spec changed after the first measurement, or the folder was
            planned for another machine than this one.
        EngineError: the engine is not there.

    A first plan that fails leaves no record: other commands would take it for a campaign. What was planned for this
    machine from elsewhere (`assay.api.plan_elsewhere`) is planned again; documents that a person edited stay.
    """
    from assay.api.plan_arrived import refuse_elsewhere
    from assay.api.plan_question import declared_spec
    from assay.store.record import SqliteRecord

    if not (folder / "assay.db").exists():
        declared_spec(folder)  # a question that is wrong leaves no record behind
        refuse_elsewhere(folder)
    with SqliteRecord(folder / "assay.db", create=True) as record, record.lock():
        is_first = not record.events()
        try:
            return _planned(folder, record, catalogue)
        except BaseException:
            if is_first:
                record.remove()
            raise


def _planned(folder: Path, record: Any, catalogue: Path | None) -> CampaignState:
    from assay.api.plan_arrived import withdraw
    from assay.api.plan_documents import abouts
    from assay.api.plan_question import declared_spec, declares_random_weights
    from assay.api.secret_flags import refuse_secret_deltas
    from assay.catalogue.documents import FolderDocuments
    from assay.plan.fold import fold, settled
    from assay.records.event import EventKind
    from assay.store.elsewhere_file import remove_elsewhere

    if not record.events():
        record.append(EventKind.CAMPAIGN_CREATED, _created(declared_spec(folder)))
    state = fold(record.events())
    declares = declares_random_weights(folder, state)
    documents = FolderDocuments(folder)
    passed_over, earlier = state.passed_over, state.earlier_scores
    reasoning: dict[str, Any] = {}
    if not state.planned:
        found = _found(folder, state, catalogue)
        refuse_secret_deltas(found.hypotheses)
        earlier = earlier_scores(state)
        dropped = withdraw(folder, documents)
        wanted = [one for one in found.hypotheses if one.id not in dropped.values()]
        documents.write(wanted, abouts(state, found, earlier))
        passed_over = found.passed_over
        reasoning = {"reasoning": found.reasoning.model_dump(mode="json")}
    hypotheses = [_searchable(state, hypothesis) for hypothesis in documents.read()]
    refuse_secret_deltas(hypotheses)
    if not state.planned or declares or settled(hypotheses, state.dials) != state.hypotheses:
        dumped = [hypothesis.model_dump(mode="json") for hypothesis in hypotheses]
        payload = {
            "hypotheses": dumped,
            "passed_over": passed_over,
            "earlier_scores": [one.model_dump(mode="json") for one in earlier],
            **reasoning,
            **({"random_weights": True} if declares else {}),
        }
        record.append(EventKind.PLAN_WRITTEN, payload)
        remove_elsewhere(folder)
        state = fold(record.events())
    return state


def _searchable(state: CampaignState, hypothesis: Hypothesis) -> Hypothesis:
    """A hypothesis whose dial cannot be searched here is blocked now: found out later, it would end the campaign."""
    dial = hypothesis.optimization.dial
    if dial is None or hypothesis.status != "planned" or hypothesis.id in state.dials:
        return hypothesis
    from assay.plan.dials import ground_of

    try:
        ground_of(state, dial)
    except UsageError as error:
        reason = f"its dial cannot be searched: {error.message}; {error.hint}"
        return hypothesis.model_copy(update={"status": "blocked", "blocked_reason": reason})
    return hypothesis


def earlier_scores(state: CampaignState) -> list[PredictionScore]:
    """What is remembered of predictions for machines of this class; recorded, so that the record alone decides."""
    from assay.records.scoring import MachineClass
    from assay.store.credibility_file import remembered

    own = MachineClass.of(state.machine, state.build, state.model)
    return [score for score in remembered() if score.machine_class == own]


def _created(spec: CampaignSpec) -> dict[str, Any]:
    from assay import __version__, wiring
    from assay.api.plan_question import checked_baseline, refuse_beyond_context
    from assay.store.spec_file import spec_hash

    engine = wiring.engine(spec.target.engine)
    build = engine.find(spec.target)
    spec = checked_baseline(engine, build, spec)
    model = engine.model(spec.target)
    refuse_beyond_context(spec, build, model)
    return {
        "spec": spec.model_dump(mode="json"),
        "spec_hash": spec_hash(spec),
        "machine": wiring.probe().machine().model_dump(mode="json"),
        "build": build.model_dump(mode="json"),
        "model": model.model_dump(mode="json"),
        **_shape(model),
        "assay_version": __version__,
    }


def _shape(model: ModelFacts) -> dict[str, Any]:
    """The model's shape, for whoever reads the record elsewhere; nothing where its files do not tell it."""
    from assay import models

    try:
        return {"shape": models.load(model.path).model_dump(mode="json")}
    except UsageError:
        return {}


def _found(folder: Path, state: CampaignState, catalogue: Path | None) -> Plan:
    from assay.api.plan_facts import situation_of, snapshot_here

    situation = situation_of(
        state.spec, state.machine, state.build, state.model, folder=folder, snapshot=snapshot_here(folder)
    )  # fmt: skip
    return plan_of(folder, situation, catalogue)


def plan_of(folder: Path, situation: Situation, catalogue: Path | None = None) -> Plan:
    """The campaign's catalogue held against a target.

    Raises:
        UsageError: an entry is broken, or policy.only names one that there is not.
    """
    from assay import wiring
    from assay.api.plan_findings import findings
    from assay.catalogue.loader import builtin_folder, load
    from assay.plan.hypotheses import build

    spec, engine_build = situation.spec, situation.build
    own = [catalogue or builtin_folder()] if catalogue or spec.policy.builtin_catalogue else []
    entries = load([*own, *(folder / name for name in spec.policy.catalogue)], spec.target.engine)
    engine = wiring.engine(spec.target.engine)
    return build(
        entries, spec, situation.machine, engine_build, situation.model,
        lambda flags: engine.check_flags(engine_build, flags), situation=situation, findings=findings(situation),
    )  # fmt: skip
