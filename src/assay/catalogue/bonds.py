"""What entries say of one another, and of engines: names that nobody has, and circles that would wait for ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from assay.catalogue.entry_file import EntryFile
from assay.catalogue.verify import Problem
from assay.records.hypothesis import Optimization


def bonds(
    files: Sequence[EntryFile], others: Iterable[EntryFile], adapters: Mapping[str, frozenset[str]]
) -> list[Problem]:
    """Problems of `files`, errors first.

    Args:
        files: the entries to look at.
        others: entries that they may name as well.
        adapters: engines that a campaign can have, each with the flags that Assay sets itself.
    """
    known = {one.id: one for one in (*others, *files)}
    found = [problem for file in files for problem in _of(file, known, adapters)]
    return sorted(found, key=lambda one: one.severity)


def _of(file: EntryFile, known: Mapping[str, EntryFile], adapters: Mapping[str, frozenset[str]]) -> Iterator[Problem]:
    for engine, variants in file.engines.items():
        if engine not in adapters:
            what = f"no such engine; known: {', '.join(sorted(adapters))}"
            yield Problem(severity="warning", entry=file.id, engine=engine, versions="", what=what)
        for one in variants:
            yield from _named(one, engine, known)
            if owned := [name for name in one.flags if name in adapters.get(engine, frozenset())]:
                what = f"Assay sets {', '.join(owned)} itself"
                yield Problem(severity="error", entry=file.id, engine=engine, versions=one.versions, what=what)
        if circle := _circle(file.id, engine, known):
            what = f"requires itself: {' > '.join(circle)}"
            yield Problem(severity="error", entry=file.id, engine=engine, versions="", what=what)


def _named(one: Optimization, engine: str, known: Mapping[str, EntryFile]) -> Iterator[Problem]:
    for key, names in (("requires", one.requires), ("excludes", one.excludes)):
        for name in names:
            if name not in known:
                what = f"{key} {name}, and no entry has that id"
                yield Problem(severity="warning", entry=one.id, engine=engine, versions=one.versions, what=what)


def _circle(start: str, engine: str, known: Mapping[str, EntryFile]) -> list[str] | None:
    """The way by which an entry requires itself."""
    ways, seen = [[start]], {start}
    while ways:
        way = ways.pop()
        for name in _required(way[-1], engine, known):
            if name == start:
                return [*way, name]
            if name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return None


def _required(name: str, engine: str, known: Mapping[str, EntryFile]) -> list[str]:
    file = known.get(name)
    return [each for one in file.engines.get(engine, []) for each in one.requires] if file else []
