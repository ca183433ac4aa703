"""The verb that checks a launch command's flags against its engine: doctor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.flags.knowledge import Knowledge
    from assay.flags.object_history import Objects
    from assay.flags.words import Found
    from assay.records.device import Box
    from assay.records.doctor import DoctorReport, Evidence, Launch
    from assay.records.model_shape import ModelShape

_FRACTIONS = ("--mem-fraction-static", "--gpu-memory-utilization")
_FRACTION = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked."""

    words: Sequence[str]
    """The launch command: its words, or all of it as one text."""
    engine: str | None = None
    """Needed only for words that name no program."""
    engine_version: str | None = None
    """None: the installed one, the image's tag, or the newest that is recorded."""
    gpu: str | None = None
    gpus: int | None = None
    model: str | None = None
    """Name, file or folder; None: the one that the command serves, where it is known."""
    ask_installed: bool = True
    """Look for the engine on this machine."""


@dataclass(slots=True)
class _Known:
    """What the command is held against, and what is to be said about that."""

    knowledge: Knowledge
    version_from: str
    unread: Mapping[str, Evidence] = field(default_factory=dict)
    objects: Objects | None = None
    """What its JSON flags take, by the source of the installed engine."""
    notes: list[str] = field(default_factory=list)


def doctor(question: Question) -> DoctorReport:
    """Check a launch command: every flag, every variable, and what they mean together on this model and machine.

    The command is taken apart, never run. The engine that it names is asked for its help where it is installed.

    Raises:
        UsageError: the command starts no known engine, or a model, GPU or version is not known.
    """
    from assay.api.doctor_masks import masked, without_secrets
    from assay.api.doctor_options import read_options
    from assay.api.doctor_services import as_command
    from assay.flags.check import check
    from assay.flags.command import launch, model_of, parse
    from assay.flags.line_check import cut_off
    from assay.flags.object_history import recorded
    from assay.records.doctor import SEVERITIES, DoctorReport

    given = as_command(question.words, question.engine)
    found = parse(given.words, question.engine)
    known = _known(found, question)
    command = launch(found, known.knowledge)
    named = question.model or model_of(command, found.dialect, known.knowledge)
    shape = _shape(named, asked=question.model is not None)
    box = _box(question)
    file = read_options(command, known.knowledge)
    checked = check(
        command,
        known.knowledge,
        options=file.content,
        model=model_facts(shape) if shape else None,
        box=_box_facts(box, question) or _gpus_here(question, known),
        cache_tokens=_cache_tokens(shape, box, command, known.knowledge),
        unread=known.unread,
        objects=known.objects or recorded(found.dialect.engine, known.knowledge.version),
    )
    told = [*(one.flags for one in file.findings), *(one.flags for one in file.unread)]
    report = DoctorReport(
        engine=found.dialect.engine,
        version=known.knowledge.version,
        version_from=known.version_from,
        knowledge=known.knowledge.source,
        model=shape.name if shape else named,
        box=box.name if box else None,
        launch=without_secrets(command),
        findings=sorted(
            [*checked.findings, *file.findings, *cut_off(found.cut_off)],
            key=lambda one: SEVERITIES.index(one.severity),
        ),
        clean=[name for name in checked.clean if name not in {flag for flags in told for flag in flags}],
        undecided=[*checked.undecided, *file.unread],
        notes=[*given.notes, *known.notes, *file.notes],
    )
    return masked(report, command, file.content)


def _known(found: Found, question: Question) -> _Known:
    """Where the engine's flags are known from: as said, installed, the image's tag, the newest recorded."""
    from assay.flags.command import image_version
    from assay.flags.knowledge import from_history, of_named_version
    from assay.flags.versions import is_version

    engine = found.dialect.engine
    if question.engine_version is not None:
        return _recorded(of_named_version(engine, question.engine_version), "--engine-version")
    if found.image is not None:
        tag = image_version(found.image, found.dialect)
        if tag:
            return _recorded(from_history(engine, tag), f"tag of {found.image}")
    elif found.required and is_version(found.required):
        return _recorded(
            from_history(engine, found.required), f"{found.dialect.package}=={found.required} of the command"
        )
    elif question.ask_installed and not found.is_elsewhere and (installed := _installed(found)) is not None:
        return installed
    known = _recorded(from_history(engine), "newest recorded version")
    reason = "the engine is elsewhere" if found.is_elsewhere else "the engine was not found here"
    reason = f"the tag of {found.image} names no version" if found.image else reason
    known.notes.append(f"{reason}: checked against the newest recorded version; --engine-version names another")
    return known


def _recorded(knowledge: Knowledge, version_from: str) -> _Known:
    from assay.flags.versions import key, release

    known = _Known(knowledge=knowledge, version_from=version_from)
    if not knowledge.specs:
        raise UsageError(
            f"nothing is recorded of {knowledge.dialect.title}", hint="run this where the engine is installed"
        )
    oldest, newest = knowledge.past.checked[0], knowledge.past.newest
    if key(knowledge.version) < key(oldest):
        known.notes.append(f"{knowledge.version} is older than everything recorded; {oldest} stands for it")
    elif release(knowledge.version) > release(newest):
        known.notes.append(f"{knowledge.version} is newer than everything recorded; {newest} stands for it")
    return known


def _installed(found: Found) -> _Known | None:
    """The engine on this machine; None when it is not here. One whose help fails is known by its version."""
    from assay.api.doctor_installed import ask, unread_flags
    from assay.flags.knowledge import from_help, from_history
    from assay.flags.object_history import installed as objects_of

    installed = ask(found)
    if installed is None:
        return None
    if installed.specs:
        source = f"the help of the installed {found.dialect.title} {installed.version}"
        knowledge = from_help(found.dialect.engine, installed.version, installed.specs, source)
        known = _Known(knowledge=knowledge, version_from="installed here")
    else:
        known = _recorded(from_history(found.dialect.engine, installed.version), "installed here")
        reason = installed.problem or "no flag was found in its help"
        known.notes.append(f"the engine here does not say what it takes ({reason}): recorded flags were used")
    if installed.package is not None:
        known.unread = unread_flags(installed, found, known.knowledge)
        known.objects = objects_of(installed.package) if found.dialect.engine == "vllm" else None
    return known


def _shape(named: str | None, *, asked: bool) -> ModelShape | None:
    """The model's shape; of one that was not asked for, None when it is not known here."""
    from assay import models

    if named is None:
        return None
    spellings = [named] if asked else [named, named.rsplit("/", maxsplit=1)[-1].lower()]
    for spelling in spellings:
        try:
            return models.load(spelling)
        except UsageError:
            if asked:
                raise
    return None


def _box(question: Question) -> Box | None:
    from assay.probes.devices import box

    if question.gpu is None:
        return None
    return box(f"{question.gpus}x{question.gpu}" if question.gpus else question.gpu)


def model_facts(shape: ModelShape) -> dict[str, Any]:
    """What rules about flags ask of a model."""
    attention = next((group.attention for group in shape.layers if group.attention), None)
    return {
        "name": shape.name,
        "hidden": shape.hidden,
        "layers": shape.num_layers,
        "num_experts": shape.num_experts,
        "is_moe": shape.is_moe,
        "is_mla": attention is not None and attention.kind == "mla",
        "heads": attention.heads if attention else None,
        "kv_heads": attention.kv_heads if attention else None,
        "max_positions": shape.max_positions,
    }


def _box_facts(box: Box | None, question: Question) -> dict[str, Any] | None:
    if box is None:
        return {"count": question.gpus} if question.gpus else None
    link = box.device.link.lower()
    capability = box.device.fact("compute_capability")
    memory = box.device.fact("memory_bytes")
    return {
        "count": box.count,
        "name": box.device.name,
        "compute_capability": capability.value if capability else None,
        "nvlink": "nvlink" in link or "xgmi" in link if link else None,
        "memory_bytes": memory.value if memory else None,
        "vendor": "amd" if "xgmi" in link else "nvidia" if box.device.kind == "gpu" else "cpu",
    }


def _gpus_here(question: Question, known: _Known) -> dict[str, Any] | None:
    """The GPUs of this machine, when the engine was found here and no other box was named."""
    if not known.version_from.startswith("installed") or question.gpu is not None:
        return None
    from assay.probes.files import Files
    from assay.probes.gpus import read_gpus

    gpus = read_gpus(Files()).gpus
    if not gpus:
        return None
    first = gpus[0]
    return {
        "count": len(gpus),
        "name": first.name,
        "compute_capability": first.compute_capability,
        "nvlink": None if first.nvlinks_active is None else first.nvlinks_active > 0,
        "memory_bytes": first.memory_bytes,
        "vendor": "nvidia" if "nvidia" in first.name.lower() or first.compute_capability else None,
    }


def _cache_tokens(shape: ModelShape | None, box: Box | None, command: Launch, knowledge: Knowledge) -> int | None:
    """Tokens that the cache holds, by the same arithmetic as `assay estimate`; None when that is not possible."""
    if shape is None or box is None:
        return None
    from assay.flags.facts import Facts
    from assay.records.estimate import Layout
    from assay.roofline.memory import budget

    facts = Facts(command, knowledge)
    fraction = next((value for name in _FRACTIONS if (value := facts.value(name)) is not None), _FRACTION)
    dtype = str(facts.value("--kv-cache-dtype") or "")
    tp, pp = facts.names["tp"], facts.names["pp"]
    if not isinstance(fraction, float | int) or tp is None or pp is None or tp < 1 or pp < 1:
        return None
    try:
        tokens = budget(
            shape,
            box,
            Layout(tp=tp, pp=pp),
            memory_fraction=float(fraction),
            cache_bytes_per_element=1.0 if "fp8" in dtype else 2.0,
        ).cache_tokens
    except (UsageError, ValueError):
        return None
    return tokens or None
