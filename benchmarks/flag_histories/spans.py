"""A recorded history with one more version in it, and how far one agrees with what is recorded.

The files are those of `assay.flags.history`: a line for each flag, with an entry for every unbroken run of checked
versions that take it alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.flag_histories.declared import Declared, Fields
from packaging.version import Version

Span = list[Any]
"""First checked version, last one, and what they take."""


@dataclass(slots=True)
class Recorded:
    """A history as its file has it."""

    about: dict[str, Any]
    flags: dict[str, list[Span]]

    @property
    def versions(self) -> list[str]:
        """Checked, oldest first."""
        return list(self.about["versions"])

    def at(self, version: str) -> dict[str, Fields]:
        """What a checked version takes, by main spelling."""
        place = self.versions.index(version)
        return {name: fields for name, spans in self.flags.items() if (fields := self._at(spans, place)) is not None}

    def with_version(self, version: str, found: Iterable[Declared]) -> Recorded:
        """The history with what a version takes, in place of what was recorded of it."""
        flags = [one for one in found if any(name.startswith("--") for name in one.names)]
        return self.with_rows(version, {self._main(one.names): one.fields() for one in flags})

    def with_rows(self, version: str, taken: Mapping[str, Fields]) -> Recorded:
        """The same of rows that are named already."""
        versions = sorted({*self.versions, version}, key=Version)
        before = {each: self.at(each) for each in self.versions if each != version} | {version: dict(taken)}
        names = sorted({name for each in before.values() for name in each})
        flags = {name: _spans(versions, {each: before[each].get(name) for each in versions}) for name in names}
        return Recorded({**self.about, "versions": versions}, flags)

    def _main(self, names: Sequence[str]) -> str:
        """The spelling under which a flag is known already, else its first long one."""
        known = next((name for name in names if name in self.flags), None)
        return known or next(name for name in names if name.startswith("--"))

    def _at(self, spans: list[Span], place: int) -> Fields | None:
        index = self.versions.index
        return next((fields for first, last, fields in spans if index(first) <= place <= index(last)), None)


def read(path: Path) -> Recorded:
    """A history's file."""
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    return Recorded(json.loads(head), dict(json.loads(line) for line in lines if line))


def write(path: Path, recorded: Recorded) -> None:
    """The file, a flag a line."""
    rows = [json.dumps(recorded.about)]
    rows += [json.dumps([name, spans], separators=(",", ":")) for name, spans in sorted(recorded.flags.items())]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def differences(recorded: Mapping[str, Fields], found: Mapping[str, Fields]) -> Iterator[str]:
    """What two readings of a version say otherwise of each other, a flag a line."""
    for name in sorted({*recorded, *found}):
        if name not in found:
            yield f"{name}: recorded, and not found"
        elif name not in recorded:
            yield f"{name}: found, and not recorded: {json.dumps(found[name])}"
        elif recorded[name] != found[name]:
            keys = sorted({*recorded[name], *found[name]})
            told = [
                f"{key} {json.dumps(recorded[name].get(key))} -> {json.dumps(found[name].get(key))}"
                for key in keys
                if recorded[name].get(key) != found[name].get(key) or (key in recorded[name]) != (key in found[name])
            ]
            yield f"{name}: {'; '.join(told)}"


def _spans(versions: Sequence[str], taken: Mapping[str, Fields | None]) -> list[Span]:
    spans: list[Span] = []
    for before, version in zip([None, *versions], versions, strict=False):
        fields = taken[version]
        if fields is None:
            continue
        if spans and spans[-1][1] == before and spans[-1][2] == fields:
            spans[-1][1] = version
        else:
            spans.append([version, version, fields])
    return spans
