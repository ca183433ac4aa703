"""Flags whose value is a JSON object: its keys, at every depth, where the classes that it becomes are known.

They are read from the source of an installed vLLM, and recorded of wheels (`assay.flags.object_history`). The values,
and what is in an object of no known class, are the engine's own to judge.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.flags import versions
from assay.flags.knowledge import Knowledge
from assay.flags.object_history import Objects, lives
from assay.flags.spec import FlagSpec
from assay.flags.successors import renamed
from assay.flags.values import is_open
from assay.records.doctor import Evidence, Finding, GivenFlag, Kind, Undecided

INSIDE = "keys and values inside were not checked"
VALUES = "values inside were not checked"
PLAIN = "a word in place of JSON was not checked"
WHOLE = frozenset({"none", "null", "true", "false", "{}", "[]"})
_PAIRS = re.compile(r"\w{1,80}=[^=,{}\[\]\"]{1,200}(?:,\w{1,80}=[^=,{}\[\]\"]{1,200}){0,50}")
_COUNT = re.compile("[0-9]{1,18}")
_DEEPEST = 8
"""Classes inside of classes; no engine nests half as deep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """A flag with something inside."""

    flag: GivenFlag
    spec: FlagSpec
    content: Mapping[str, Any] | None
    """None: it is no object that can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrong:
    """A key that its object does not have."""

    path: str
    """Of the object, with a dot behind it; empty at the top."""
    key: str
    of: str
    """The object's class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """Of renames.toml."""

    instead: str
    source: str


def wrong_keys(flags: Sequence[GivenFlag], knowledge: Knowledge, objects: Objects | None) -> list[Finding]:
    """Keys that the engine's class does not have: it stops on them, or leaves them out."""
    return [
        _finding(given.flag, wrong, objects.flags[given.spec.name], objects, knowledge)
        for given in _objects(flags, knowledge, objects)
        if objects is not None and given.spec.name in objects.flags
        for wrong in _wrong(given.content or {}, objects.flags[given.spec.name], objects)
    ]


def pairs(flags: Sequence[GivenFlag], knowledge: Knowledge) -> list[Finding]:
    """`--limit-mm-per-prompt image=2,video=1`, which older versions read: it has to be JSON now."""
    last = knowledge.dialect.pairs_until
    if last and versions.within(knowledge.version, None, last):
        return []
    given = [one for one in _objects(flags, knowledge, None) if "." not in one.flag.name and len(one.flag.values) == 1]
    return [_pairs(one, knowledge) for one in given if _PAIRS.fullmatch(one.flag.values[0])]


def _pairs(given: _Given, knowledge: Knowledge) -> Finding:
    split = [pair.partition("=") for pair in given.flag.values[0].split(",")]
    number = {key: int(value) if _COUNT.fullmatch(value) else value for key, _, value in split}
    instead = f"{given.spec.name} '{json.dumps(number)}'"
    last = knowledge.dialect.pairs_until
    return Finding(
        kind="bad-value",
        severity="error",
        flags=[given.flag.name],
        what=f"takes JSON, and this is none{f'; {last} was the last checked version that read pairs' if last else ''}",
        evidence=[knowledge.evidence()],
        remedy=f"write {instead}",
        replacement=instead,
    )


def unchecked(flags: Sequence[GivenFlag], knowledge: Knowledge, objects: Objects | None) -> list[Undecided]:
    """Flags with a value of which not all is known to be right."""
    told: dict[str, Undecided] = {}
    for given in _objects(flags, knowledge, objects):
        of = objects.classes.get(objects.flags.get(given.spec.name, "")) if objects else None
        are_known = of is not None and of.extra != "taken" and given.content is not None
        reason = (VALUES if are_known else INSIDE) if given.content or _has_form(given.flag) else PLAIN
        told.setdefault(given.flag.name, Undecided(rule="json-keys", flags=[given.flag.name], reason=reason))
    return list(told.values())


def _objects(flags: Sequence[GivenFlag], knowledge: Knowledge, objects: Objects | None) -> Iterator[_Given]:
    for flag in flags:
        found = knowledge.resolve(flag.name)
        spec = found.spec
        if spec is None or (spec.kind != "json" and spec.name not in (objects.flags if objects else ())):
            continue
        if found.key is not None:
            yield _Given(flag=flag, spec=spec, content=_dotted(flag, found.key))
        elif any(not is_open(value) and not _is_whole(value) for value in flag.values):
            yield _Given(flag=flag, spec=spec, content=_object(flag.values[-1]))


def _dotted(flag: GivenFlag, key: str) -> Mapping[str, Any] | None:
    """`--flag.a.b value` as the object that it becomes; None for `-O3`."""
    if "." not in flag.name:
        return None
    value = flag.values[-1] if flag.values else ""
    content: Any = _object(value)
    content = value if content is None else content
    for name in reversed(key.removesuffix("+").split(".")):
        content = {name: content}
    return content if isinstance(content, dict) else None


def _object(value: str) -> Mapping[str, Any] | None:
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _has_form(flag: GivenFlag) -> bool:
    return not flag.values or flag.values[0].lstrip().startswith(("{", "["))


def _is_whole(value: str) -> bool:
    """Whether there is nothing inside."""
    plain = "".join(value.split()).lower()
    return plain in WHOLE or plain.replace(".", "", 1).lstrip("+-").isdigit()


def _wrong(content: Mapping[str, Any], of: str, objects: Objects, path: str = "") -> Iterator[_Wrong]:
    found = objects.classes.get(of)
    if found is None or path.count(".") > _DEEPEST:
        return
    for key, value in content.items():
        inside = found.keys.get(key.replace("-", "_") if found.dashes else key)
        if inside is None and found.extra != "taken" and not is_open(key):
            yield _Wrong(path=path, key=key.encode("utf-8", "backslashreplace").decode(), of=of)
        elif inside and isinstance(value, dict):
            yield from _wrong(value, inside, objects, f"{path}{key}.")


def _finding(flag: GivenFlag, wrong: _Wrong, top: str, objects: Objects, knowledge: Knowledge) -> Finding:
    kind, told = _by_life(wrong, knowledge)
    row = _renamed(wrong, objects, knowledge)
    meant = wrong.path + row.instead if row else _meant(wrong, top, objects) if kind == "unknown" else None
    ignored = objects.classes[wrong.of].extra == "ignored"
    near = f"nearest: {meant}" if kind == "unknown" and meant else ""
    unread = "" if objects.was_read else f"{knowledge.version} itself was not read"
    said = f"takes no key {wrong.path}{wrong.key}{', and leaves it out' if ignored else ''}"
    return Finding(
        kind="renamed" if row and kind == "removed" else kind,
        severity="warning" if ignored or unread else "error",
        flags=[flag.name],
        what="; ".join(part for part in (said, told, near, unread) if part),
        evidence=[
            Evidence(source=f"{objects.source} {wrong.of}", basis="source"),
            *([Evidence(source=row.source, basis="history")] if row else []),
        ],
        remedy=f"write {meant}{'' if row else ' if that was meant'}" if meant else "leave the key out",
    )


def _renamed(wrong: _Wrong, objects: Objects, knowledge: Knowledge) -> _Row | None:
    """What this version calls a key that has another name in an earlier or a later one."""
    keys = objects.classes[wrong.of].keys
    for old, rows in renamed(f"{knowledge.dialect.engine}_key").items():
        of, _, name = old.partition(".")
        for row in rows if of == wrong.of else ():
            if name == wrong.key and row["new"] in keys:
                return _Row(instead=row["new"], source=row["source"])
            if row["new"] == wrong.key and name in keys:
                return _Row(instead=name, source=row["source"])
    return None


def _by_life(wrong: _Wrong, knowledge: Knowledge) -> tuple[Kind, str]:
    """What the checked versions before and after this one say of a key."""
    runs = lives(knowledge.dialect.engine).runs(f"{wrong.of}.{wrong.key}")
    before, after = versions.around(knowledge.version, runs)
    if before:
        return "removed", f"{before} was the last checked version that has it"
    return ("not-yet", f"{after} is the first checked version that has it") if after else ("unknown", "")


def _meant(wrong: _Wrong, top: str, objects: Objects) -> str | None:
    """The key that was probably meant: the same one of another object of the flag, or the nearest of this object."""
    for path, key in _paths(top, objects):
        if key == wrong.key:
            return f"{path}{key}"
    near = difflib.get_close_matches(wrong.key, sorted(objects.classes[wrong.of].keys), n=1, cutoff=0.6)
    return f"{wrong.path}{near[0]}" if near else None


def _paths(top: str, objects: Objects) -> Iterator[tuple[str, str]]:
    """Every key of a flag's object and of the objects in it."""
    left = [("", top)]
    for path, of in left:  # grows while it is read
        for key, inside in objects.classes[of].keys.items():
            yield path, key
            if inside in objects.classes and path.count(".") < _DEEPEST:
                left.append((f"{path}{key}.", inside))
