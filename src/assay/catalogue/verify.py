"""Entries held against the recorded flags of every recorded version of their engines.

An error: a version inside of what the entry says lacks a flag or variable, refuses a value or a key of it, or reads it
nowhere (unless the entry is known to do nothing). A warning: a version outside would take it all the same, or takes it
under protest (deprecated). What is recorded: SGLang and vLLM wheels (flags, choices, keys of JSON flags, dead flags,
environment variables), the help of the embedded llama.cpp, the options of TensorRT-LLM's `trtllm-serve` in four
versions, and those of its YAML file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from assay.catalogue.entry_file import Entry, EntryFile
from assay.flags.dialect import dialects
from assay.flags.history import History, history
from assay.flags.json_content import as_given
from assay.flags.json_keys import wrong_objects
from assay.flags.knowledge import Knowledge, from_history
from assay.flags.object_history import recorded
from assay.flags.options import options, path_of
from assay.flags.spec import FlagSpec
from assay.flags.values import misuse
from assay.flags.versions import in_run
from assay.plan.situation import within
from assay.records.base import FlagValue
from assay.records.doctor import GivenFlag
from assay.records.hypothesis import Optimization

NOTHING = "known to do nothing"
"""How the expectation of an entry begins whose flags may be read by no code."""
FOREIGN = ("NCCL_", "OMP_", "CUDA_")
"""Variables of libraries, which no engine's source has to name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that an entry says and a version does not bear out."""

    severity: Literal["error", "warning"]
    entry: str
    engine: str
    versions: str
    """`0.5.4`, or `0.5.4 to 0.5.9`; empty: whichever."""
    what: str

    def __str__(self) -> str:
        return f"{self.entry}: {' '.join(each for each in (self.engine, self.versions) if each)}: {self.what}"


def verify(files: Sequence[EntryFile]) -> list[Problem]:
    """Every problem, errors first; neighbouring versions with the same problem are told once."""
    found = [
        problem
        for file in files
        for engine, variants in file.engines.items()
        if engine in dialects()
        for problem in _of_an_engine(file.id, engine, variants)
    ]
    return sorted(found, key=lambda one: one.severity)


def checked_versions(engine: str) -> tuple[str, ...]:
    """The versions of an engine that are recorded."""
    return history(engine).checked


def _of_an_engine(entry: str, engine: str, variants: Entry) -> Iterator[Problem]:
    past = history(engine)
    if not past.spans:
        return
    told: dict[tuple[Literal["error", "warning"], str], list[str]] = {}
    for version in past.checked:
        inside = [one for one in variants if within(version, one.versions) is not False]
        for severity, what in _best(inside, engine, version):
            told.setdefault((severity, what), []).append(version)
        if not inside and (names := _would_take(variants, engine, version)):
            told.setdefault(("warning", f"takes {names} too, which the entry does not say"), []).append(version)
    for (severity, what), versions in told.items():
        span = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
        yield Problem(severity=severity, entry=entry, engine=engine, versions=span, what=what)


def _best(inside: Entry, engine: str, version: str) -> list[tuple[Literal["error", "warning"], str]]:
    """What is wrong with the variant that a plan would take: the first that the version bears out, else the first."""
    each = [list(_inside(one, engine, version)) for one in inside]
    sound = (problems for problems in each if all(severity != "error" for severity, _ in problems))
    return next(sound, each[0] if each else [])


def _inside(one: Optimization, engine: str, version: str) -> Iterator[tuple[Literal["error", "warning"], str]]:
    known = _known(engine, version)
    for name, value in one.flags.items():
        is_option = bool(options(engine)) and "." in name
        yield from _option(engine, version, name, value) if is_option else _flag(one, known, name, value)
    for name in one.remove_flags:
        if not _ever(known.past, name):
            yield "error", f"has no {name} to remove, nor has any recorded version"
    for name in one.env:
        if known.past.variables and not name.startswith(FOREIGN) and not _names(known.past, name, version):
            yield "error", f"no file names the variable {name}"


def _option(
    engine: str, version: str, name: str, value: FlagValue
) -> Iterator[tuple[Literal["error", "warning"], str]]:
    """An entry of the engine's configuration file, written as a dotted flag."""
    known = options(engine).get(path_of(name))
    spec = known.spec if known else None
    if known is None or spec is None or known.is_in(version) is False:
        yield "error", f"has no option {name}"
    elif known.is_in(version) is None:
        yield "error", f"is older than the versions whose options are recorded: {name} may be called otherwise"
    elif not str(value).startswith("=") and (
        problem := misuse(spec, [str(value).lower() if isinstance(value, bool) else str(value)], engine)
    ):
        yield "error", f"{name} {problem}"


def _flag(
    one: Optimization, known: Knowledge, name: str, value: FlagValue
) -> Iterator[tuple[Literal["error", "warning"], str]]:
    found = known.resolve(name)
    spec = found.spec
    if spec is None or found.abbreviated:
        yield "error", f"has no {name}"
        return
    if spec.removed and not one.expectation.startswith("known"):
        yield "error", f"{name} is gone, and only parsed to say so"
    if spec.dead and not one.expectation.startswith(NOTHING):
        yield "error", f"{name} is read by no code"
    if not spec.dead and one.expectation.startswith(NOTHING) and known.past.medium == "wheel":
        yield "error", f"{name} is read, though the entry is known to do nothing"
    if spec.deprecated:
        yield "warning", f"{name} is deprecated" + (f": {spec.new}" if spec.new else "")
    if not one.expectation.startswith("known") and (problem := _misuse(known, spec, value, key=found.key)):
        yield "error", f"{name} {problem}"
    yield from _keys(known, name, value)


def _keys(known: Knowledge, name: str, value: FlagValue) -> Iterator[tuple[Literal["error", "warning"], str]]:
    """Keys of a JSON value that the version does not have (it refuses them, or leaves them out), and values."""
    is_expression = isinstance(value, str) and value.startswith("=")
    given = GivenFlag(name=name, values=[]) if is_expression else as_given(name, value)
    for found in wrong_objects([given], known, recorded(known.dialect.engine, known.version)):
        yield "error", f"{name} {found.what}"


def _misuse(known: Knowledge, spec: FlagSpec, value: FlagValue, *, key: str | None) -> str | None:
    if (key is not None and spec.kind == "json") or (isinstance(value, str) and value.startswith("=")):
        return None
    if value is False:
        return None if spec.is_switch and (spec.negatable or len(spec.names) > 1) else "cannot be switched off"
    return misuse(spec, [] if value is True else [str(value)], known.dialect.engine)


def _would_take(variants: Entry, engine: str, version: str) -> str:
    """Flags of the newest variant that a version has although the entry does not name it."""
    for one in variants:
        problems = [what for severity, what in _inside(one, engine, version) if severity == "error"]
        if (
            not problems
            and (one.flags or one.env)
            and not all(name.startswith(FOREIGN) for name in (*one.env, *one.flags))
        ):
            return ", ".join([*one.flags, *one.env])
    return ""


@lru_cache(maxsize=256)
def _known(engine: str, version: str) -> Knowledge:
    return from_history(engine, version)


def _ever(past: History, name: str) -> bool:
    return bool(past.of(name))


def _names(past: History, variable: str, version: str) -> bool:
    return any(in_run(version, first, last) for first, last in past.variables.get(variable, ()))
