"""Recorded histories: which checked version of an engine takes which flag, and how.

A file is JSON lines. The first says which versions were read and how; every other is `[flag, [[first, last, what it
takes], ...]]`, one entry for each unbroken run of checked versions that take it alike. `assay.flags.spec.read_spec`
reads what it takes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay.flags import versions
from assay.flags.spec import FlagSpec, read_spec

DATA = Path(__file__).parent.parent / "data" / "flags"


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive checked versions that take a flag alike."""

    first: str
    last: str
    spec: FlagSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is recorded of an engine."""

    engine: str
    checked: tuple[str, ...]
    """Versions that were read, oldest first."""
    source: str
    """How they were read."""
    medium: str
    """What was read: `wheel`, `help`, `source`."""
    spans: Mapping[str, tuple[Span, ...]]
    """By main spelling."""
    variables: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Environment variables, with the runs of checked versions whose source names them; empty: not recorded."""

    @property
    def newest(self) -> str:
        """The newest version that was read."""
        return self.checked[-1]

    def at(self, version: str) -> list[FlagSpec]:
        """Every flag of a version; of one that was not read, those of the newest read one before it."""
        stand = versions.standing_for(version, self.checked) or self.checked[0]
        return [
            span.spec
            for spans in self.spans.values()
            for span in spans
            if versions.in_run(stand, span.first, span.last)
        ]

    def takes(self, name: str, version: str) -> FlagSpec | None:
        """What a version takes under a name; None where it takes nothing, or that is not recorded."""
        stand = versions.standing_for(version, self.checked) if versions.is_version(version) else None
        lives = self.of(name) if stand is not None else ()
        return next((one.spec for one in lives if versions.in_run(stand or "", one.first, one.last)), None)

    def of(self, name: str) -> tuple[Span, ...]:
        """The life of a flag under any of its spellings; empty when no checked version ever had it."""
        if name in self.spans:
            return tuple(span for span in self.spans[name] if name in span.spec.names)
        found = [spans for spans in self.spans.values() if any(name in span.spec.names for span in spans)]
        return tuple(span for span in found[0] if name in span.spec.names) if found else ()

    def next_after(self, version: str) -> str | None:
        """The checked version after this one."""
        later = [each for each in self.checked if versions.key(each) > versions.key(version)]
        return later[0] if later else None


@lru_cache(maxsize=8)
def history(engine: str) -> History:
    """The recorded history of an engine; an empty one when nothing is recorded of it."""
    path = DATA / f"{engine}.jsonl"
    if not path.exists():
        return History(engine=engine, checked=("0",), source="nothing is recorded", medium="wheel", spans={})
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    about: dict[str, Any] = json.loads(head)
    return History(
        engine=engine,
        checked=tuple(about["versions"]),
        source=about["source"],
        medium=about.get("medium", "wheel"),
        spans=dict(_flag(json.loads(line)) for line in lines if line),
        variables=_variables(DATA / f"{engine}_environment.tsv"),
    )


def _flag(row: list[Any]) -> tuple[str, tuple[Span, ...]]:
    name, spans = row
    return name, tuple(Span(first, last, read_spec(name, fields)) for first, last, fields in spans)


def _variables(path: Path) -> dict[str, tuple[tuple[str, str], ...]]:
    if not path.exists():
        return {}
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:])
    return {name: tuple(_run(run) for run in runs.split()) for name, runs in rows}


def _run(text: str) -> tuple[str, str]:
    first, _, last = text.partition("..")
    return first, last or first
