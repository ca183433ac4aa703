"""Matches that the traceback which follows them may place, or place better.

Engines log what went wrong and then its traceback, and a process that a signal ends names the signal before its stack.
An exception that is raised again brings its callers only then: its first traceback goes no farther out than the `try`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from assay.failures.found import Found
from assay.failures.stages import Marker, narrower
from assay.records.failure import Cause

NEAR = 12
"""Lines between a message and the head of the traceback that belongs to it."""
MOST_WAITING = 64
CHAINED = re.compile(r"The above exception was the direct cause|During handling of the above exception")


class Untold:
    """By process: who waits for a traceback to begin, and who for it to end."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Found]] = {}
        self._told: dict[str, deque[Found]] = {}
        """What a process's last traceback has placed."""
        self._chained: dict[str, deque[Found]] = {}
        self._begun: dict[str, list[Found]] = {}

    def add(self, who: str, found: Found) -> None:
        """A match: one that no function places waits for a traceback, any other for a farther one."""
        kept = self._waiting if found.frames is None else self._told
        if who in kept or len(kept) < MOST_WAITING:
            kept.setdefault(who, deque(maxlen=MOST_WAITING)).append(found)

    def chains(self, who: str) -> None:
        """The exception of the last traceback is raised again."""
        if told := self._told.pop(who, None):
            self._chained[who] = told

    def begins(self, who: str, number: int) -> None:
        """A traceback of the process begins."""
        self._told.pop(who, None)
        near = [each for each in self._waiting.pop(who, ()) if number - each.line.number <= NEAR]
        near += self._chained.pop(who, ())
        if near:
            self._begun.setdefault(who, []).extend(near)

    def ends(self, who: str, marker: Marker | None) -> None:
        """It ends: its functions tell where the message came from."""
        begun = self._begun.pop(who, [])
        for each in begun:
            if marker and _places(marker, each):
                each.frames = narrower(each.frames, marker)
        if begun and (who in self._told or len(self._told) < MOST_WAITING):  # it may be raised again
            self._told.setdefault(who, deque(maxlen=MOST_WAITING)).extend(begun)

    def end(self, marker_of: Callable[[str], Marker | None]) -> None:
        """The log ends, and with it every traceback."""
        for who in list(self._begun):
            self.ends(who, marker_of(who))


def _places(marker: Marker, found: Found) -> bool:
    """A parent's traceback tells where it waited, not where its child was; what a module lacks, its import tells."""
    return not marker.is_weak or (marker.is_of_import and found.rule.cause == Cause.MISSING_DEPENDENCY)
