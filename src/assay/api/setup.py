"""Verbs that come before measuring: init, assess, plan."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.api.launch import split
from assay.errors import AssayError, EngineError, UsageError

if TYPE_CHECKING:
    from assay.plan.hypotheses import Plan
    from assay.ports import Engine
    from assay.records.assessment import Assessment
    from assay.records.hypothesis import Hypothesis
    from assay.records.machine import EngineBuild
    from assay.records.scoring import PredictionScore
    from assay.records.spec import CampaignSpec
    from assay.records.state import CampaignState

SPEC = "assay.toml"
PYTHON_ENGINES = frozenset({"vllm", "sglang", "trtllm-serve"})
"""Programs that have subcommands, only one of which serves."""


def init(folder: Path, spec: CampaignSpec) -> Path:
    """Write a commented assay.toml; refuses to overwrite one.

    Raises:
        UsageError: there is one already.
    """
    from assay.store.spec_file import write_spec

    folder.mkdir(parents=True, exist_ok=True)
    write_spec(folder / SPEC, spec)
    return folder / SPEC


def init_from_command(folder: Path, command: str, *, name: str | None = None) -> Path:
    """Write assay.toml from today's launch command, given as one string.

    The string is split as a shell would split it, and never given to one. Flags get the long spellings of the
    program that the command names.

    Raises:
        UsageError: it names no model, or cannot be split.
    """
    from assay import wiring
    from assay.api.command_target import target_of
    from assay.records.spec import CampaignSpec, Target

    if (python_engine := target_of(command)) is not None:
        return init(folder, CampaignSpec(name=name or folder.name, target=python_engine))
    words = split(command)
    executable, flags = words[0], read_flags(words[1:])
    model = next((flags.pop(key) for key in ("--model", "-m") if key in flags), None)
    flags = {name: value for name, value in flags.items() if name not in wiring.engine("llamacpp").owned}
    if not isinstance(model, str) and Path(executable).name in PYTHON_ENGINES:
        raise UsageError(
            f"{command} starts no server whose model is known", hint="give the whole command, as `vllm serve MODEL`"
        )
    if not isinstance(model, str):
        raise UsageError(f"no --model in: {command}", hint="Assay serves a local GGUF file: add `--model FILE.gguf`")
    target = Target(model=str(Path(model).expanduser().resolve()), executable=executable, flags=flags)
    engine = wiring.engine(target.engine)
    with suppress(EngineError):  # not on this machine: `assay plan` will say so, and check the spellings where it is
        target = target.model_copy(update={"flags": engine.canonical(engine.find(target), target.flags)})
    return init(folder, CampaignSpec(name=name or folder.name, target=target))


def init_from_url(
    folder: Path, url: str, *, name: str | None = None, model: str | None = None, api_key_env: str | None = None
) -> Path:
    """Write assay.toml from what a running server says of itself.

    A llama.cpp server is started again with changes; every other one is measured and left as it is.

    Args:
        folder: where.
        url: of any OpenAI-compatible server.
        name: of the campaign.
        model: as the server lists it; needed where it serves several.
        api_key_env: name of the environment variable that holds the server's key.

    Raises:
        UsageError: nobody answers there, or it serves several models and none was named.
    """
    from assay.api.init_url import target_at
    from assay.records.spec import CampaignSpec

    target = target_at(url, model=model, api_key_env=api_key_env)
    return init(folder, CampaignSpec(name=name or folder.name, target=target))


def assess(folder: Path | None = None, *, machine: Path | None = None, save: Path | None = None) -> Assessment:
    """Take stock of the machine, the engine and the model; with a folder, of its target and its record.

    Args:
        folder: a campaign's.
        machine: a file that `save` wrote: that machine is analysed, and neither engine nor model are looked for.
        save: where to write what was seen of this machine, without secrets.

    Raises:
        UsageError: the machine's file cannot be read, or both files were given.
        RecordError: `save` cannot be written.
    """
    from assay.probes.findings import findings
    from assay.records.assessment import Assessment
    from assay.store.machine_file import read_machine, write_machine

    if machine and save:
        raise UsageError(f"{machine} is saved already: --machine and --save contradict", hint="copy the file")
    if machine:
        seen = read_machine(machine)
        elsewhere = "not looked for: the machine is in a file"
        return Assessment(
            machine=seen.machine, build=None, build_problem=elsewhere, model=None, model_problem=elsewhere,
            findings=findings(seen), record=None, snapshot=seen, machine_file=str(machine),
        )  # fmt: skip
    found = _assess_here(folder)
    if save and found.snapshot:
        write_machine(save, found.snapshot)
    return found


def _assess_here(folder: Path | None) -> Assessment:
    from assay import wiring
    from assay.probes.findings import findings
    from assay.probes.machine import MachineProbe
    from assay.records.assessment import Assessment
    from assay.records.spec import CampaignSpec
    from assay.store.spec_file import read_spec

    spec = read_spec(folder / SPEC) if folder and (folder / SPEC).exists() else CampaignSpec()
    engine = wiring.engine(spec.target.engine)
    build = build_problem = model = model_problem = None
    try:
        build = engine.find(spec.target)
    except AssayError as error:
        build_problem = f"{error.message}; {error.hint}"
    try:
        model = engine.model(spec.target)
    except AssayError as error:
        model_problem = f"{error.message}; {error.hint}"
    seen = MachineProbe(folder=folder if folder and folder.is_dir() else None).stock()
    return Assessment(
        machine=seen.machine,
        build=build,
        build_problem=build_problem,
        model=model,
        model_problem=model_problem,
        findings=findings(seen),
        record=_record_sentence(folder),
        snapshot=seen,
    )


def plan(folder: Path, *, catalogue: Path | None = None) -> CampaignState:
    """Write the improvement documents and the plan into the record; read edited documents back.

    Args:
        folder: the campaign's folder, with its assay.toml.
        catalogue: a catalogue folder that replaces the built-in one.

    Raises:
        UsageError: assay.toml or a document is wrong, or the spec changed after the first measurement.
        EngineError: the engine is not there.
    """
    from assay.store.record import SqliteRecord

    if not (folder / "assay.db").exists():
        _spec(folder)  # a question that is wrong leaves no record behind
    with SqliteRecord(folder / "assay.db", create=True) as record, record.lock():
        return _planned(folder, record, catalogue)


def _planned(folder: Path, record: Any, catalogue: Path | None) -> CampaignState:
    from assay.api.plan_documents import abouts
    from assay.api.secret_flags import refuse_secret_deltas
    from assay.catalogue.documents import FolderDocuments
    from assay.plan.fold import fold, settled
    from assay.records.event import EventKind

    if not record.events():
        record.append(EventKind.CAMPAIGN_CREATED, _created(_spec(folder)))
    state = fold(record.events())
    _refuse_changed_spec(folder, _spec(folder, declared=state.spec), state)
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
    if not state.planned or settled(hypotheses, state.dials) != state.hypotheses:
        dumped = [hypothesis.model_dump(mode="json") for hypothesis in hypotheses]
        payload = {
            "hypotheses": dumped,
            "passed_over": passed_over,
            "earlier_scores": [one.model_dump(mode="json") for one in earlier],
            **reasoning,
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
    from assay.store.spec_file import spec_hash

    engine = wiring.engine(spec.target.engine)
    build = engine.find(spec.target)
    _check_baseline(engine, build, spec)
    return {
        "spec": spec.model_dump(mode="json"),
        "spec_hash": spec_hash(spec),
        "machine": wiring.probe().machine().model_dump(mode="json"),
        "build": build.model_dump(mode="json"),
        "model": engine.model(spec.target).model_dump(mode="json"),
        "assay_version": __version__,
    }


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


def _record_sentence(folder: Path | None) -> str | None:
    from assay.api.inspect import status

    if folder is None or not (folder / "assay.db").exists():
        return None
    state = status(folder)
    done = sum(1 for run in state.runs if run.outcome)
    return (
        f"{done} runs, {len(state.verdicts)} verdicts of {len(state.hypotheses)} hypotheses, {state.num_events} events"
    )


def read_flags(words: list[str]) -> dict[str, Any]:
    """`--name value`, `--name=value` and bare `--name`, with numbers as numbers."""
    flags: dict[str, Any] = {}
    name: str | None = None
    for word in words:
        is_flag = word.startswith("-") and not _is_number(word)
        if is_flag and "=" in word:
            key, value = word.split("=", 1)
            flags[key], name = as_value(value), None
        elif is_flag:
            flags[word], name = True, word
        elif name is None:
            raise UsageError(f"{word!r} in the launch command belongs to no flag", hint="quote values with spaces")
        else:
            flags[name], name = as_value(word), None
    return flags


def as_value(text: str) -> int | float | str:
    """A word of a command: a number where it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _is_number(text: str) -> bool:
    return not isinstance(as_value(text), str)


__all__ = ["assess", "init", "init_from_command", "init_from_url", "plan"]
