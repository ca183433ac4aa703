"""Recorded keys and values of the objects that flags take as JSON: `data/flags/<engine>_json_keys.jsonl`.

A file like a history: every line is a flag, a class or a key of one, with an entry for each unbroken run of checked
versions that have it alike (`assay.flags.object_source.Rows` says what stands in an entry).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from assay.flags import versions
from assay.flags.history import DATA
from assay.flags.json_values import Takes
from assay.flags.object_source import Rows, of_package

Extra = Literal["refused", "ignored", "taken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectClass:
    """What one kind of object takes."""

    extra: Extra
    """What becomes of a key that it does not have."""
    dashes: bool = False
    """Keys are taken with `-` for `_`."""
    keys: Mapping[str, str]
    """Each with the class of the object that it holds; empty: nothing is known of what is inside."""
    values: Mapping[str, Takes] = field(default_factory=dict)
    """What those keys take of which that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """What the JSON flags of one version take."""

    flags: Mapping[str, str]
    """The class that each makes, by main spelling."""
    classes: Mapping[str, ObjectClass]
    source: str
    was_read: bool
    """This very version was, not one before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """In which checked versions there was what."""

    checked: tuple[str, ...] = ()
    rows: Mapping[str, list[tuple[str, str, dict[str, Any]]]] = field(default_factory=dict)

    def at(self, version: str) -> Rows:
        """Of a checked version."""
        return {
            name: row
            for name, runs in self.rows.items()
            for first, last, row in runs
            if versions.in_run(version, first, last)
        }

    def takes(self, name: str) -> list[tuple[str, str, Takes]]:
        """What a key takes in each of its runs, where that is known."""
        return [(first, last, one) for first, last, row in self.rows.get(name, []) if (one := Takes.of(row))]

    def runs(self, name: str) -> list[tuple[str, str]]:
        """The runs of checked versions that have a flag, a class or a key."""
        return [(first, last) for first, last, _ in self.rows.get(name, [])]


@lru_cache(maxsize=128)
def recorded(engine: str, version: str) -> Objects | None:
    """What is recorded of this version, or of the checked one that stands for it; None where nothing is."""
    past = lives(engine)
    stand = versions.standing_for(version, past.checked)
    if stand is None:
        return None
    was_read = versions.release(stand) == versions.release(version)
    return _objects(past.at(stand), f"{engine} {stand} wheel: keys of", was_read=was_read)


def installed(package: Path) -> Objects | None:
    """What the source of an installed vLLM says; None where it cannot be read."""
    rows = of_package(package)
    return _objects(rows, f"{package}: keys of", was_read=True) if rows else None


@lru_cache(maxsize=4)
def lives(engine: str) -> Lives:
    """What is recorded of an engine; empty where nothing is."""
    path = DATA / f"{engine}_json_keys.jsonl"
    if not path.exists():
        return Lives()
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    return Lives(checked=tuple(json.loads(head)["versions"]), rows=dict(json.loads(line) for line in lines if line))


def _objects(rows: Rows, source: str, *, was_read: bool) -> Objects:
    keys: dict[str, dict[str, str]] = {}
    values: dict[str, dict[str, Takes]] = {}
    for name, row in rows.items():
        of, dot, key = name.partition(".")
        if dot:
            keys.setdefault(of, {})[key] = str(row.get("class", ""))
        if dot and (found := Takes.of(row)) is not None:
            values.setdefault(of, {})[key] = found
    return Objects(
        flags={name: str(row["class"]) for name, row in rows.items() if name.startswith("--")},
        classes={
            name: ObjectClass(
                extra=row["extra"],
                dashes=bool(row.get("dashes")),
                keys=keys.get(name, {}),
                values=values.get(name, {}),
            )
            for name, row in rows.items()
            if "extra" in row
        },
        source=source,
        was_read=was_read,
    )
