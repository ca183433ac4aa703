"""Flags whose value is a JSON object: its keys and values, at every depth, where the classes that it becomes are known.

They are read from the source of an installed vLLM, and recorded of wheels (`assay.flags.object_history`). Values whose
type no class declares, and what is in an object of no known class, are the engine's own to judge.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.flags import versions
from assay.flags.json_content import DEEPEST, Entry, Given, entries, given_objects, has_form
from assay.flags.knowledge import Knowledge
from assay.flags.object_history import Objects, lives
from assay.flags.successors import renamed
from assay.flags.values import is_open
from assay.records.doctor import Evidence, Finding, GivenFlag, Kind, Undecided
from assay.records.secret_names import is_secret_key

INSIDE = "keys and values inside were not checked"
VALUES = "values inside were not checked"
PLAIN = "a word in place of JSON was not checked"
_PAIRS = re.compile(r"\w{1,80}=[^=,{}\[\]\"]{1,200}(?:,\w{1,80}=[^=,{}\[\]\"]{1,200}){0,50}")
_COUNT = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """Of renames.toml."""

    instead: str
    source: str


def wrong_objects(flags: Sequence[GivenFlag], knowledge: Knowledge, objects: Objects | None) -> list[Finding]:
    """Keys that the engine's class does not have (it stops on them, or leaves them out), and values that it refuses."""
    if objects is None:
        return []
    return [
        found
        for given in given_objects(flags, knowledge, objects)
        if (top := objects.flags.get(given.spec.name)) is not None
        for entry in entries(given.content or {}, top, objects)
        if (found := _judged(entry, given.flag, top, objects, knowledge)) is not None
    ]


def _judged(entry: Entry, flag: GivenFlag, top: str, objects: Objects, knowledge: Knowledge) -> Finding | None:
    of = objects.classes[entry.of]
    if entry.key not in of.keys:
        is_taken = of.extra == "taken" or is_open(entry.key)
        return None if is_taken else _bad_key(flag, entry, top, objects, knowledge)
    takes = of.values.get(entry.key)
    problem = takes.problem(entry.value) if takes else None
    if problem and is_secret_key(f"{entry.path}{entry.key}"):
        problem = "does not take this value (not shown: the key is one of secrets)"
    return _bad_value(flag, entry, f"{entry.path}{entry.key} {problem}", objects, knowledge) if problem else None


def pairs(flags: Sequence[GivenFlag], knowledge: Knowledge) -> list[Finding]:
    """`--limit-mm-per-prompt image=2,video=1`, which older versions read: it has to be JSON now."""
    last = knowledge.dialect.pairs_until
    if last and versions.within(knowledge.version, None, last):
        return []
    given = [
        one for one in given_objects(flags, knowledge, None) if "." not in one.flag.name and len(one.flag.values) == 1
    ]
    return [_pairs(one, knowledge) for one in given if _PAIRS.fullmatch(one.flag.values[0])]


def _pairs(given: Given, knowledge: Knowledge) -> Finding:
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
    for given in given_objects(flags, knowledge, objects):
        name = objects.flags.get(given.spec.name, "") if objects else ""
        of = objects.classes.get(name) if objects else None
        are_known = of is not None and of.extra != "taken" and given.content is not None
        if (
            are_known
            and objects
            and all(_is_known(one, objects) for one in entries(given.content or {}, name, objects))
        ):
            continue
        reason = (VALUES if are_known else INSIDE) if given.content or has_form(given.flag) else PLAIN
        told.setdefault(given.flag.name, Undecided(rule="json-keys", flags=[given.flag.name], reason=reason))
    return list(told.values())


def _is_known(entry: Entry, objects: Objects) -> bool:
    """Whether a value was held against something, the content of an object and of a list with it."""
    of = objects.classes[entry.of]
    if entry.value is None or (isinstance(entry.value, list | dict) and not entry.value):
        return True
    if isinstance(entry.value, dict):
        return bool(of.keys.get(entry.key))
    takes = of.values.get(entry.key)
    if takes is None or is_open(str(entry.value)):
        return False
    return not isinstance(entry.value, list) or takes.items is not None


def _bad_value(flag: GivenFlag, wrong: Entry, problem: str, objects: Objects, knowledge: Knowledge) -> Finding:
    runs = lives(knowledge.dialect.engine).takes(f"{wrong.of}.{wrong.key}")
    fitting = [(first, last) for first, last, takes in runs if takes.choices and not takes.problem(wrong.value)]
    before, after = versions.around(knowledge.version, fitting)
    told = f"{after} is the first checked version that takes it" if after else ""
    told = f"{before} was the last checked version that took it" if before and not after else told
    takes = objects.classes[wrong.of].values[wrong.key]
    near = None if told else takes.near(wrong.value)
    unread = "" if objects.was_read else f"{knowledge.version} itself was not read"
    return Finding(
        kind="bad-value",
        severity="warning" if unread else "error",
        flags=[flag.name],
        what="; ".join(part for part in (problem, told, unread) if part),
        evidence=[Evidence(source=f"{objects.source} {wrong.of}", basis="source")],
        remedy=f"write {near} if that was meant" if near else "correct the value",
        replacement=near,
    )


def _bad_key(flag: GivenFlag, wrong: Entry, top: str, objects: Objects, knowledge: Knowledge) -> Finding:
    kind, told = _by_life(wrong, knowledge)
    row = _renamed(wrong, objects, knowledge)
    meant = wrong.path + row.instead if row else _meant(wrong, top, objects) if kind == "unknown" else None
    ignored = objects.classes[wrong.of].extra == "ignored"
    near = f"nearest: {meant}" if kind == "unknown" and meant else ""
    unread = "" if objects.was_read else f"{knowledge.version} itself was not read"
    key = wrong.key.encode("utf-8", "backslashreplace").decode()
    said = f"takes no key {wrong.path}{key}{', and leaves it out' if ignored else ''}"
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


def _renamed(wrong: Entry, objects: Objects, knowledge: Knowledge) -> _Row | None:
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


def _by_life(wrong: Entry, knowledge: Knowledge) -> tuple[Kind, str]:
    """What the checked versions before and after this one say of a key."""
    runs = lives(knowledge.dialect.engine).runs(f"{wrong.of}.{wrong.key}")
    before, after = versions.around(knowledge.version, runs)
    if before:
        return "removed", f"{before} was the last checked version that has it"
    return ("not-yet", f"{after} is the first checked version that has it") if after else ("unknown", "")


def _meant(wrong: Entry, top: str, objects: Objects) -> str | None:
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
            if inside in objects.classes and path.count(".") < DEEPEST:
                left.append((f"{path}{key}.", inside))
