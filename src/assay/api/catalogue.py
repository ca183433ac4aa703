"""The verbs that look at the catalogue: list, show, check; and what of it applies to a target that need not be here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.catalogue.entry_file import EntryFile
    from assay.catalogue.verify import Problem
    from assay.flags.knowledge import Knowledge
    from assay.plan.hypotheses import Plan
    from assay.records.base import Flags
    from assay.records.machine import EngineBuild, ModelFacts
    from assay.records.model_shape import ModelShape
    from assay.records.spec import CampaignSpec

ENGINES = ("llamacpp", "vllm", "sglang", "trtllm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which entries are listed."""

    engine: str | None = None
    tier: int | None = None
    mechanism: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetQuestion:
    """A target that the catalogue is applied to; nothing of it has to be on this machine."""

    engine: str | None = None
    version: str | None = None
    """None: the newest that is recorded."""
    model: str | None = None
    """Name, file or folder; None: the one that the launch command names."""
    on: str | None = None
    """A box such as `8xRTX-PRO-6000`; None: this machine."""
    launch: str = ""
    """Today's launch command: its flags are the baseline."""
    concurrency: int = 8
    input_tokens: int = 512
    output_tokens: int = 256
    shared_prefix_tokens: int = 0
    """Before the tokens of a prompt that are its own: alike for all requests."""
    objective: str = "output_tokens_per_s"
    folders: Sequence[Path] = field(default_factory=tuple)


def files(folders: Sequence[Path] = ()) -> list[EntryFile]:
    """Every entry: Assay's own, and those of more folders.

    Raises:
        UsageError: an entry is broken.
    """
    from assay.catalogue.loader import builtin_folder, load_files

    return load_files([builtin_folder(), *folders])


def folders_of(campaign: Path) -> list[Path]:
    """The folders of entries that a campaign adds to Assay's own; none where there is no campaign.

    Raises:
        UsageError: its assay.toml cannot be read.
    """
    from assay.store.spec_file import read_spec

    spec = campaign / "assay.toml"
    return [campaign / name for name in read_spec(spec).policy.catalogue] if spec.exists() else []


def listed(wanted: Wanted, folders: Sequence[Path] = ()) -> list[EntryFile]:
    """The entries that fit, by tier and id.

    Raises:
        UsageError: an entry is broken.
    """
    found = [one for one in files(folders) if _fits(one, wanted)]
    return sorted(found, key=lambda one: (_first(one).tier, one.id))


def shown(name: str, folders: Sequence[Path] = ()) -> EntryFile:
    """One entry.

    Raises:
        UsageError: there is none of this name.
    """
    from difflib import get_close_matches

    known = {one.id: one for one in files(folders)}
    if name not in known:
        near = get_close_matches(name, known, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "`assay catalogue` lists them"
        raise UsageError(f"the catalogue has no entry {name!r}", hint=hint)
    return known[name]


def checked(folder: Path) -> list[Problem]:
    """What is wrong with a folder of entries: its names, and its flags in every recorded version of their engines.

    Raises:
        UsageError: a file cannot be read as an entry; names file and key.
    """
    from assay import wiring
    from assay.api.secret_flags import refuse_secrets_of
    from assay.catalogue.bonds import bonds
    from assay.catalogue.loader import builtin_folder, load_files
    from assay.catalogue.names import names
    from assay.catalogue.reported import reported
    from assay.catalogue.verify import verify

    if folder.is_file():
        raise UsageError(f"{folder} is a file", hint=f"give its folder: assay catalogue check {folder.parent}")
    found = load_files([folder])
    if not found:
        raise UsageError(f"{folder} holds no entry (*.toml)", hint="docs/catalogue-entry.md shows a whole one")
    refuse_secrets_of(one for file in found for variants in file.engines.values() for one in variants)
    adapters = {name: wiring.engine(name).owned for name in wiring.engine_names()}
    others = load_files([builtin_folder()])
    problems = [
        *bonds(found, others, adapters), *names(found), *reported(found, log_facts()), *verify(found),
    ]  # fmt: skip
    return sorted(problems, key=lambda one: one.severity)


def log_facts() -> dict[str, frozenset[str]]:
    """By engine: the facts that its adapter reads out of a log, all of them."""
    from assay.engines import llamacpp_log, sglang_log, trtllm_log, vllm_log

    return {
        "llamacpp": frozenset(llamacpp_log.FACTS),
        "rehearsal": frozenset(),
        "sglang": frozenset(sglang_log.FACTS),
        "trtllm": frozenset(trtllm_log.FACTS),
        "vllm": frozenset({*vllm_log.FACTS, vllm_log.MOE_PLUGIN_FACT}),
    }


def applied(question: TargetQuestion) -> Plan:
    """What of the catalogue applies to a target, with ranges and reasons; from recorded flags, without the engine.

    Raises:
        UsageError: model, box, engine or launch command are not known.
    """
    from assay import wiring
    from assay.api.plan_facts import situation_of, snapshot_here
    from assay.api.plan_findings import findings
    from assay.plan.hypotheses import build

    known, flags, env, named = _launched(question)
    model = question.model or named
    if model is None:
        raise UsageError("no model is named", hint="give --model, or a launch command that names one with --launch")
    spec = _spec(question, known.dialect.engine, model, flags, env)
    machine = wiring.probe().machine()
    engine_build, facts = recorded_build(known), facts_of(model)
    situation = situation_of(
        spec, machine, engine_build, facts, snapshot=None if question.on else snapshot_here(Path()), on=question.on
    )
    entries = [one.engines[spec.target.engine] for one in files(question.folders) if spec.target.engine in one.engines]
    adapter = wiring.engine(spec.target.engine)
    return build(
        entries, spec, machine, engine_build, facts, lambda given: adapter.check_flags(engine_build, given),
        situation=situation, findings=findings(situation),
    )  # fmt: skip


def recorded_build(known: Knowledge) -> EngineBuild:
    """An engine as its recorded version tells it: for a target that is not here."""
    from assay.engines.declared_flags import to_info
    from assay.records.machine import EngineBuild

    return EngineBuild(
        engine=known.dialect.engine,
        argv=[known.dialect.engine],
        version=known.version,
        source=known.source,
        flags=[to_info(spec) for spec in known.specs],
    )


def _fits(one: EntryFile, wanted: Wanted) -> bool:
    first = _first(one)
    return (
        (wanted.engine is None or wanted.engine in one.engines)
        and (wanted.tier is None or first.tier == wanted.tier)
        and (wanted.mechanism is None or wanted.mechanism in {first.mechanism_id, first.ceiling})
    )


def _first(one: EntryFile) -> Any:
    return next(iter(one.engines.values()))[0]


def _launched(question: TargetQuestion) -> tuple[Knowledge, Flags, dict[str, str], str | None]:
    """The engine's flags, and the baseline that the launch command says."""
    from assay.api.command_words import as_value
    from assay.flags.command import launch, model_of, parse
    from assay.flags.knowledge import of_named_version

    if not question.launch:
        if question.engine is None:
            raise UsageError("no engine is named", hint="give --engine, or a launch command with --launch")
        return of_named_version(question.engine, question.version), {}, {}, None
    found = parse([question.launch], question.engine)
    known = of_named_version(found.dialect.engine, question.version)
    command = launch(found, known)
    named = model_of(command, found.dialect, known)
    skipped = {spec for name in known.dialect.model if (spec := known.find(name))}
    flags: Flags = {}
    for flag in command.flags:
        resolved = known.resolve(flag.name)
        if resolved.spec in skipped:
            continue
        name = flag.name if resolved.spec is None or resolved.key else resolved.spec.name
        flags[name] = not resolved.negated if not flag.values else as_value(" ".join(flag.values))
    return known, flags, dict(command.environment), named


def _spec(question: TargetQuestion, engine: str, model: str, flags: Flags, env: dict[str, str]) -> CampaignSpec:
    from assay.records.spec import CampaignSpec

    return CampaignSpec.model_validate(
        {
            "target": {"engine": engine, "model": model, "flags": flags, "env": env},
            "workload": {
                "concurrency": question.concurrency,
                "input_tokens": (question.input_tokens, question.input_tokens),
                "output_tokens": (question.output_tokens, question.output_tokens),
                "shared_prefix_tokens": question.shared_prefix_tokens,
            },
            "objective": {"metric": question.objective},
        }
    )


def facts_of(model: str) -> ModelFacts:
    """A model as its shape tells it: for one whose files are not here.

    Raises:
        UsageError: no model of this name, file or folder is known.
    """
    from assay import models
    from assay.records.machine import ModelFacts

    shape: ModelShape = models.load(model)
    return ModelFacts(
        path=model,
        sha256="",
        size_bytes=round(shape.weight_bytes),
        architecture=shape.architecture,
        quantization="",
        num_layers=shape.num_layers,
        context_length=shape.max_positions,
        num_experts=shape.num_experts or None,
        name=shape.name,
    )
