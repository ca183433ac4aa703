"""What takes the place of a flag: tables of ours (`data/flags/renames.toml`), and the engines' own last words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from assay.flags import versions
from assay.flags.history import DATA
from assay.flags.knowledge import Knowledge


def successor_of(name: str, knowledge: Knowledge) -> str | None:
    """What takes the place of a flag in this version: by our table, else by the engine's own last word on it."""
    table = _holding(name, knowledge)
    named = [row["new"] for row in table if _exists(row["new"], knowledge)]
    if named:
        return str(named[-1])
    words = [span.spec.new for span in knowledge.past.of(name) if span.spec.new]
    current = knowledge.find(name)
    words = [*words, current.new] if current and current.new else words
    for word in reversed(words):
        if _exists(word, knowledge):
            return word
        further = successor_of(word.partition("=")[0].split()[0], knowledge) if word.split()[0] != name else None
        if further:
            return further
    return None


def _exists(word: str, knowledge: Knowledge) -> bool:
    name = word.partition("=")[0].split(" ")[0].partition("{")[0].partition(".")[0].rstrip("-")
    return knowledge.find(name) is not None or any(
        each.startswith(name + "-") for each in knowledge.names if "{" in word
    )


def note_on(name: str, knowledge: Knowledge) -> str:
    """What else is to be known of a flag that changed."""
    notes = [row.get("note") for row in _holding(name, knowledge) if row.get("note")]
    return f"; {notes[-1]}" if notes else ""


def source_of(name: str, knowledge: Knowledge) -> str | None:
    """Where our table has a change from."""
    rows = _holding(name, knowledge)
    return str(rows[-1]["source"]) if rows else None


def _holding(name: str, knowledge: Knowledge) -> list[dict[str, Any]]:
    return holding(knowledge.dialect.engine, name, knowledge.version)


def holding(table: str, name: str, version: str) -> list[dict[str, Any]]:
    """The rows about a name that hold in a version, oldest first."""
    return [row for row in renamed(table).get(name, []) if versions.within(version, row.get("since"), None)]


@lru_cache(maxsize=8)
def renamed(table: str) -> Mapping[str, list[dict[str, Any]]]:
    """Old name to rows of new names, oldest first: `[[sglang]] old, new, since, note, source`."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in _tables().get(table, []):
        found.setdefault(row["old"], []).append(row)
    return found


@lru_cache(maxsize=1)
def equivalents() -> tuple[Mapping[str, list[str]], ...]:
    """Groups of flags of several engines that say the same."""
    return tuple(_tables().get("equivalent", []))


@lru_cache(maxsize=1)
def _tables() -> Mapping[str, list[dict[str, Any]]]:
    return tomllib.loads((DATA / "renames.toml").read_text(encoding="utf-8"))
