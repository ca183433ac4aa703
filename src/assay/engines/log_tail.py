"""A log that is being written, read on from where it was read last: engines that start for minutes write megabytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class _Place:
    """How far a file was read."""

    position: int = 0
    partial: bytes = b""


@dataclass(slots=True)
class _Watch:
    """What is being looked for, how far the log was searched, and whether it was there."""

    place: _Place
    found: bool = False


class LogTail:
    """The lines that a log has gained since the last look, and whether some line has ever been said."""

    def __init__(self, path: Path) -> None:
        """Remember the file; it may not be there yet."""
        self.path = path
        self._place = _Place()
        self._watches: dict[re.Pattern[str], _Watch] = {}

    def new_lines(self) -> list[str]:
        """Whole lines since the last call; a line that is still being written comes with the next."""
        return self._read_on(self._place)

    def has_said(self, pattern: re.Pattern[str]) -> bool:
        """Whether a whole line of this shape was ever written; each call searches what came since the one before."""
        watch = self._watches.setdefault(pattern, _Watch(_Place()))
        if not watch.found:
            watch.found = any(pattern.search(line) for line in self._read_on(watch.place))
        return watch.found

    def text(self) -> str:
        """All of it, also the line that is still being written; empty when it cannot be read.

        For what is done once a launch: everything that polls asks `new_lines` or `has_said`.
        """
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _read_on(self, place: _Place) -> list[str]:
        """Whole lines behind a place, which moves on; a file that became shorter is read from its beginning."""
        try:
            with self.path.open("rb") as source:
                if place.position > source.seek(0, 2):
                    place.position, place.partial = 0, b""
                source.seek(place.position)
                data = source.read()
        except OSError:
            return []
        place.position += len(data)
        *whole, place.partial = (place.partial + data).split(b"\n")
        return [line.decode("utf-8", "replace").rstrip("\r") for line in whole]
