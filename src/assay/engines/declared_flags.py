"""Flags of an engine whose command line `assay.flags` describes: from its help to the words of a launch command.

For vLLM, SGLang and TensorRT-LLM. The installed build's own help says which flags there are; `assay.flags` knows how
the engine reads names (underscores, beginnings, `--no-`, `--flag.key`, `-O3`) and of which kind a value is.

How values are written in assay.toml and in the catalogue: true and false for switches; a number or text for one value;
several words of one flag as one text with blanks ("1 2 4 8"); JSON as text, or key by key (`"--flag.key" = 3`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from assay.engines.venv import interpreter_of, package
from assay.errors import EngineError, UsageError
from assay.flags import Knowledge, from_help
from assay.flags.existence import missing
from assay.flags.json_content import as_given, is_json
from assay.flags.json_keys import wrong_objects
from assay.flags.knowledge import Resolved
from assay.flags.object_history import Objects, installed, recorded
from assay.flags.spec import FlagSpec
from assay.flags.values import misuse
from assay.records.base import Flags, FlagValue
from assay.records.doctor import GivenFlag
from assay.records.machine import EngineBuild, FlagInfo

READ_FROM_SOURCE = frozenset({"vllm"})
"""Engines whose installed source says what its JSON flags take (`assay.flags.object_source`)."""
MANY = " ..."
"""How the placeholder of a flag that takes several words ends."""


def to_info(spec: FlagSpec) -> FlagInfo:
    """A flag as the record keeps it; `to_spec` is the way back."""
    value = None if spec.is_switch else spec.kind.upper() + (MANY if spec.many else "")
    return FlagInfo(
        names=[*spec.names, *([_negative(spec.name)] if spec.negatable else [])],
        value=f"[{value}]" if spec.optional and value else value,
        choices=list(spec.choices),
        default=None if spec.default is None else str(spec.default),
        help=f"deprecated; use {spec.new}" if spec.new else "deprecated" if spec.deprecated else "",
        removed=spec.removed,
    )


def to_spec(info: FlagInfo) -> FlagSpec:
    """The flag as `assay.flags` takes it."""
    positive = [name for name in info.names if not name.startswith("--no-")]
    return FlagSpec(
        names=tuple(positive or info.names),
        kind="switch" if info.value is None else "str",
        many=MANY in (info.value or ""),
        optional=(info.value or "").startswith("["),
        choices=tuple(info.choices),
        default=info.default,
        negatable=bool(positive) and len(positive) < len(info.names),
        deprecated=info.help.startswith("deprecated"),
        removed=info.removed,
    )


def knowledge_of(build: EngineBuild) -> Knowledge:
    """What the build takes, its own help joined with what is recorded of its version."""
    return _knowledge(build.engine, build.version, tuple(info.model_dump_json() for info in build.flags))


@lru_cache(maxsize=4)
def _knowledge(engine: str, version: str, infos: tuple[str, ...]) -> Knowledge:
    specs = [to_spec(FlagInfo.model_validate_json(text)) for text in infos]
    return from_help(engine, plain_version(version), specs, f"{version}: its own help")


def plain_version(version: str) -> str:
    """`vLLM 0.32.0+cpu` as `0.32.0+cpu`."""
    return version.rsplit(maxsplit=1)[-1]


def problem(build: EngineBuild, flags: Flags) -> str | None:
    """Why the build cannot take these flags: unknown, renamed, removed, ambiguous, a value missing, or not one.

    Keys and values inside of JSON flags count, by the doctor's own check; a key that the build leaves out without a
    word as well, since a candidate with it would be measured as if it did something.
    """
    known = knowledge_of(build)
    for name, value in flags.items():
        found = known.resolve(name)
        what = found.spec
        reason = _missing(name, found, known) if what is None else _misuse(name, value, found, what, build.engine)
        if reason is not None:
            return reason
    return _inside(build, flags, known)


def _inside(build: EngineBuild, flags: Flags, known: Knowledge) -> str | None:
    """The first key or value inside of a JSON flag that the build does not take; None too where it was not read."""
    given = [as_given(name, value) for name, value in flags.items()]
    if not any(is_json(flag, known) for flag in given):
        return None
    objects = _objects_of(build.engine, tuple(build.argv), known.version, is_here=build.launch is None)
    if objects is None or not objects.was_read:
        return None
    found = next(iter(wrong_objects(given, known, objects)), None)
    return f"{found.flags[0]} {found.what}: {found.remedy} ({found.evidence[0].source})" if found else None


@lru_cache(maxsize=8)
def _objects_of(engine: str, argv: tuple[str, ...], version: str, *, is_here: bool) -> Objects | None:
    """What JSON flags take, by the installed source where that is on this machine, else as recorded of the version.

    A build that is only recorded (`assay.api.catalogue.recorded_build`) is started by a bare word, or by a path of
    another machine, where another version may be here.
    """
    if not is_here or engine not in READ_FROM_SOURCE or len(Path(argv[0]).parts) == 1:
        return recorded(engine, version)
    with suppress(EngineError):
        python = argv[0] if Path(argv[0]).name.startswith("python") else interpreter_of(argv[0])
        here = package(python, engine)
        if here.version == version and here.folder is not None and (found := installed(here.folder)) is not None:
            return found
    return recorded(engine, version)


def canonical(build: EngineBuild, flags: Flags) -> Flags:
    """The flags under their main spelling, a negative switch as its positive one set to False; unknown ones stay."""
    known = knowledge_of(build)
    found: Flags = {}
    for name, value in flags.items():
        what = known.resolve(name)
        if what.spec is None:
            found[name] = value
        elif what.negated:
            found[what.spec.name] = not value if isinstance(value, bool) else value
        elif what.key is not None and what.spec.kind != "json":  # -O3
            found[what.spec.name] = _scalar(what.key)
        else:
            found[what.spec.name + (f".{what.key}" if what.key else "")] = value
    return found


def refuse_owned(build: EngineBuild, flags: Flags, owned: Iterable[str]) -> None:
    """Refuse the flags that Assay sets itself, in any of their spellings.

    Raises:
        UsageError: there is one.
    """
    ours = frozenset(owned)
    known = knowledge_of(build)
    given = []
    for name in flags:
        spec = known.resolve(name).spec
        if name in ours or (spec is not None and not ours.isdisjoint(spec.names)):
            given.append(name)
    if given:
        raise UsageError(f"{', '.join(sorted(given))}: Assay sets this itself", hint="remove it from target.flags")


def rendered(build: EngineBuild, flags: Flags) -> list[str]:
    """The flags as words of the command line."""
    known = knowledge_of(build)
    return [word for name, value in flags.items() for word in _words(name, value, known.resolve(name))]


def _words(name: str, value: FlagValue, found: Resolved) -> list[str]:
    spec = found.spec
    if isinstance(value, bool):
        if found.key is not None and spec is not None and not spec.is_switch:
            return [name, str(value).lower()] if "." in name else [name]  # a key of a JSON value, or -O3
        if value:
            return [name]
        return [_negative(spec.name)] if spec is not None and spec.negatable and not found.negated else []
    if spec is not None and spec.many:
        return [name, *str(value).split()]
    return [name, str(value)]


def _missing(name: str, found: Resolved, known: Knowledge) -> str:
    finding = missing(GivenFlag(name=name, values=[]), found, known)
    return f"{name} {finding.what}: {finding.remedy}"


def _misuse(name: str, value: FlagValue, found: Resolved, spec: FlagSpec, engine: str) -> str | None:
    if spec.removed:
        return f"{name} was removed in this build"
    if found.key is not None and spec.kind == "json":
        return None  # a key of it: `_inside`
    values = [] if isinstance(value, bool) else str(value).split() if spec.many else [str(value)]
    if found.key is not None:
        values = [found.key, *values]
    if value is False and (spec.is_switch or spec.optional):
        return None
    wrong = misuse(spec, values, engine)
    return None if wrong is None else f"{name} {wrong}"


def _negative(name: str) -> str:
    return f"--no-{name[2:]}"


def _scalar(text: str) -> FlagValue:
    return int(text) if text.isdigit() else text
