"""The entries of an engine's configuration file, each told with its path: renamed, removed, not there yet, no value.

TensorRT-LLM refuses an entry that it does not know, and only after the model's files were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assay.flags import versions
from assay.flags.options import CHECKED, Option, near, options
from assay.flags.successors import holding, renamed
from assay.flags.values import misuse, same
from assay.records.doctor import Evidence, Finding, GivenFlag, Undecided

TABLE = "trtllm_option"
"""Of renames.toml."""
_MOST_UNKNOWN = 300
"""Unknown entries that a near name is sought for: more than there are options are no typing errors, and take long."""


def check_options(
    engine: str, version: str, content: Mapping[str, Any], flag: str, given: Mapping[str, GivenFlag] | None = None
) -> tuple[list[Finding], list[Undecided]]:
    """What is wrong with the entries of a file, and which are not recorded.

    Args:
        engine: whose file it is.
        version: of the engine.
        content: of the file.
        flag: that names the file, as it was written.
        given: the flags of the command by every name that they have: the file's values are taken over theirs.
    """
    findings: list[Finding] = []
    undecided: list[Undecided] = []
    for path, value in _entries(engine, content):
        found = _one(engine, version, path, value, flag, seek_near=len(undecided) < _MOST_UNKNOWN)
        if isinstance(found, Finding):
            findings.append(found)
        elif found is not None:
            undecided.append(found)
    return [*findings, *_given_twice(content, flag, given or {})], undecided


def _entries(engine: str, content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every entry, sections before what is in them; of what is in a section that nobody knows nothing can be told."""
    sections = {*options(engine), *(name.rpartition(".")[0] for name in renamed(TABLE))}
    for key, value in content.items():
        path = f"{prefix}{key}"
        yield path, value
        if isinstance(value, Mapping) and path in sections:
            yield from _entries(engine, value, f"{path}.")


def _one(engine: str, version: str, path: str, value: Any, flag: str, *, seek_near: bool) -> Finding | Undecided | None:
    if row := _renamed(path, version):
        return _changed(path, row, flag)
    known = options(engine).get(path)
    if known is None:
        return _unknown(engine, path, flag, seek_near=seek_near)
    if known.is_in(version) is False:
        return _of_another_version(path, known, version, flag)
    problem = None if isinstance(value, Mapping | list) or value is None else misuse(known.spec, [_text(value)], engine)
    if problem is None:
        return None
    was_read = versions.standing_for(version, CHECKED) == CHECKED[-1]
    return Finding(
        kind="bad-value",
        severity="error" if was_read else "warning",
        flags=[path, flag],
        what=problem if was_read else f"{problem} (so in {CHECKED[-1]}, the only version whose values were read)",
        evidence=[_evidence(CHECKED[-1])],
        remedy="correct the value",
    )


def _renamed(path: str, version: str) -> dict[str, Any] | None:
    """The newest change of a name that holds in this version."""
    return next(reversed(holding(TABLE, path, version)), None)


def _changed(path: str, row: Mapping[str, Any], flag: str) -> Finding:
    new, note = row["new"], f"; {row['note']}" if row.get("note") else ""
    return Finding(
        kind="renamed" if new else "removed",
        severity="error",
        flags=[path, flag],
        what=f"{'is now ' + new if new else 'was removed'}{note}",
        evidence=[Evidence(source=row["source"], basis="history")],
        remedy=f"write {new}" if new else "leave it out",
        replacement=new or None,
    )


def _of_another_version(path: str, known: Option, version: str, flag: str) -> Finding:
    stand = versions.standing_for(version, CHECKED)
    coming = known.first and versions.key(stand or version) < versions.key(known.first)
    what = (
        f"does not exist yet: {known.first} is the first checked version that has it"
        if coming
        else f"was removed: {known.last} was the last checked version that has it"
    )
    return Finding(
        kind="not-yet" if coming else "removed",
        severity="error" if stand is not None and versions.release(stand) == versions.release(version) else "warning",
        flags=[path, flag],
        what=what,
        evidence=[_evidence(stand or CHECKED[0])],
        remedy=f"upgrade to {known.first}, or leave it out" if coming else "leave it out",
    )


def _unknown(engine: str, path: str, flag: str, *, seek_near: bool) -> Finding | Undecided | None:
    section = path.rpartition(".")[0]
    if section and section not in options(engine):
        return None  # the section is told
    meant = near(engine, path) if seek_near else None
    if meant is None:
        return Undecided(rule="options", flags=[path, flag], reason="no recorded version has this option")
    return Finding(
        kind="unknown",
        severity="warning",
        flags=[path, flag],
        what=f"is in no recorded version; nearest: {meant}",
        evidence=[_evidence(", ".join(CHECKED))],
        remedy=f"write {meant} if that was meant",
        replacement=meant,
    )


def _given_twice(content: Mapping[str, Any], flag: str, given: Mapping[str, GivenFlag]) -> Iterator[Finding]:
    """The file counts: trtllm-serve reads it over the flags."""
    for name, one in given.items():
        value = content.get(name.lstrip("-"))
        if value is None or isinstance(value, Mapping | list) or not one.values or same(one.values[-1], value):
            continue
        yield Finding(
            kind="repeated",
            severity="warning",
            flags=[one.name, flag],
            what=f"is {one.values[-1]} here and {_text(value)} in the file; the file counts",
            evidence=[Evidence(source="NVIDIA/TensorRT-LLM, release notes of 0.20", basis="rule")],
            remedy="keep one",
        )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _evidence(version: str) -> Evidence:
    return Evidence(source=f"options of TensorRT-LLM {version}, as recorded", basis="history")
