"""The verb that plans: the improvement documents written and read back, and the plan in the record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.api.init import SPEC
from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.plan.hypotheses import Plan
    from assay.ports import Engine
    from assay.records.hypothesis import Hypothesis
    from assay.records.machine import EngineBuild, ModelFacts
    from assay.records.scoring import PredictionScore
    from assay.records.spec import CampaignSpec
    from assay.records.state import CampaignState


def plan(folder: Path, *, catalogue: Path | None = None) -> CampaignState:
    """Write the improvement documents and the plan into the record; read edited documents back.

    Args:
        folder: the campaign's folder, with its assay.toml.
        catalogue: a catalogue folder that replaces the built-in one.

    Raises:
        UsageError: assay.toml or a document is wrong, or the spec changed after the first measurement.
        EngineError: the engine is not there.

    A first plan that fails leaves no record: other commands would take it for a campaign.
    """
    from assay.store.record import SqliteRecord

    if not (folder / "assay.db").exists():
        _spec(folder)  # a question that is wrong leaves no record behind
    with SqliteRecord(folder / "assay.db", create=True) as record, record.lock():
        is_first = not record.events()
        try:
            return _planned(folder, record, catalogue)
        except BaseException:
            if is_first:
                record.remove()
            raise


def assumed_launch_s(state: CampaignState) -> float:
    """What each launch is taken for in the time that is said to be left; 0 once runs were measured."""
    from assay.plan.cost import assumed_run_s

    if any(run.outcome and run.outcome.measures for run in state.runs):
        return 0.0
    return assumed_run_s(state.spec, state.model.size_bytes) - state.spec.workload.least_load_s


def shortfall(state: CampaignState) -> str | None:
    """What to say where the budget is spent before the first candidate is tried; None where it is not."""
    from assay.plan.cost import assumed_run_s, least_calibration_s
    from assay.plan.soaking import in_budget, kept_s
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
    expected_s = (2 * budget.calibration_brackets + 1) * assumed_run_s(state.spec, state.model.size_bytes)
    if expected_s > budget.total_s:
        return (
            f"{total} the calibration alone is expected to take {duration_words(expected_s)} "
            f"({budget.calibration_brackets} brackets), launches being a guess: probably no candidate will be tried"
        )
    if budget.soak_s and not in_budget(state, expected_s + 2 * budget.soak_s):
        return (
            f"{total} soaks of budget.soak_s ({duration_words(budget.soak_s)}) of a candidate and of the baseline do "
            f"not fit beside the calibration (about {duration_words(expected_s)}) and the confirmation (about "
            f"{duration_words(kept_s(state))}): what is adopted will not be soaked; raise budget.total_s or lower "
            "budget.soak_s"
        )
    return None


def _planned(folder: Path, record: Any, catalogue: Path | None) -> CampaignState:
    from assay.api.plan_documents import abouts
    from assay.api.secret_flags import refuse_secret_deltas
    from assay.catalogue.documents import FolderDocuments
    from assay.plan.fold import fold, settled
    from assay.records.event import EventKind

    if not record.events():
        record.append(EventKind.CAMPAIGN_CREATED, _created(_spec(folder)))
    state = fold(record.events())
    declares = _declares_random_weights(folder, state)
    documents = FolderDocuments(folder)
    passed_over, earlier = state.passed_over, state.earlier_scores
    reasoning: dict[str, Any] = {}
    if not state.planned:
        found = _found(folder, state, catalogue)
        refuse_secret_deltas(found.hypotheses)
        earlier = _earlier_scores(state)
        documents.write(found.hypotheses, abouts(state, found, earlier))
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


def _earlier_scores(state: CampaignState) -> list[PredictionScore]:
    """What is remembered of predictions for machines of this class; recorded, so that the record alone decides."""
    from assay.records.scoring import MachineClass
    from assay.store.credibility_file import remembered

    own = MachineClass.of(state.machine, state.build, state.model)
    return [score for score in remembered() if score.machine_class == own]


def _created(spec: CampaignSpec) -> dict[str, Any]:
    from assay import __version__, wiring
    from assay.plan.context import beyond_context
    from assay.store.spec_file import spec_hash

    engine = wiring.engine(spec.target.engine)
    build = engine.find(spec.target)
    _check_baseline(engine, build, spec)
    model = engine.model(spec.target)
    if problem := beyond_context(spec, build, model):
        raise UsageError(
            problem,
            hint="lower workload.shared_prefix_tokens, input_tokens or output_tokens, or give the server more context",
        )
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


def _check_baseline(engine: Engine, build: EngineBuild, spec: CampaignSpec) -> None:
    """The baseline's flags must exist in this build, under the spellings that conditions and deltas use."""
    from assay.api.secret_flags import refuse_secret_flags

    flags = spec.target.flags
    if spec.target.launch != build.launch:
        raise UsageError(
            f"target.launch: the {engine.name} adapter starts its server as a plain process only",
            hint="remove target.launch; docs/engines.md says which adapters take one",
        )
    engine.argv(build, spec.target.model, flags, 1)  # refuses flags that Assay sets itself
    refuse_secret_flags(flags, "target.flags")
    if reason := engine.check_flags(build, flags):
        raise UsageError(f"target.flags: {reason}", hint="mend it in assay.toml; the build's own --help is the list")
    for name, long_name in zip(flags, engine.canonical(build, flags), strict=True):
        if name != long_name:
            raise UsageError(
                f"target.flags: {name} is written {long_name} in assay.toml",
                hint="use the long spelling, and true or false for switches",
            )


def _found(folder: Path, state: CampaignState, catalogue: Path | None) -> Plan:
    from assay import wiring
    from assay.api.plan_facts import findings, situation_of, snapshot_here
    from assay.catalogue.loader import builtin_folder, load
    from assay.plan.hypotheses import build

    spec = state.spec
    own = [catalogue or builtin_folder()] if catalogue or spec.policy.builtin_catalogue else []
    extra = [folder / name for name in spec.policy.catalogue]
    engine = wiring.engine(spec.target.engine)
    entries = load([*own, *extra], spec.target.engine)
    situation = situation_of(
        spec, state.machine, state.build, state.model, folder=folder, snapshot=snapshot_here(folder)
    )  # fmt: skip
    return build(
        entries, spec, state.machine, state.build, state.model,
        lambda flags: engine.check_flags(state.build, flags), situation=situation, findings=findings(situation),
    )  # fmt: skip


def _declares_random_weights(folder: Path, state: CampaignState) -> bool:
    """Whether assay.toml says of a campaign that exists that its weights are random; any other change is refused.

    It moves no threshold and changes no measured number: it only says what the answers are worth. Who finds out late
    that a checkpoint was made up may say so at any time; to take it back would need another model.
    """
    spec = _spec(folder, declared=state.spec)
    declares = spec.target.random_weights and not state.spec.target.random_weights
    if declares:
        spec = spec.model_copy(update={"target": spec.target.model_copy(update={"random_weights": False})})
    _refuse_changed_spec(folder, spec, state)
    return declares


def _refuse_changed_spec(folder: Path, spec: CampaignSpec, state: CampaignState) -> None:
    """The question and its thresholds are declared before the first measurement, and stand."""
    from assay.store.spec_declared import differences

    if changed := differences(spec, state.spec):
        raise UsageError(
            f"{folder / SPEC} changed after the campaign was created: {'; '.join(changed)}",
            hint="undo the change, or ask the new question in a new folder: thresholds are not moved after measuring",
        )


def _spec(folder: Path, *, declared: CampaignSpec | None = None) -> CampaignSpec:
    from assay.store.spec_file import read_spec

    if not (folder / SPEC).exists():
        raise UsageError(f"{folder} has no {SPEC}", hint="write one with `assay init`")
    return read_spec(folder / SPEC, declared=declared)
