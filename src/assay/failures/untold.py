"""Matches without a traceback of their own, which the traceback that follows them may place.

Engines log what went wrong and then its traceback, and a process that a signal ends names the signal before its stack.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from assay.failures.found import Found
from assay.failures.stages import Marker

NEAR = 12
"""Lines between a message and the head of the traceback that belongs to it."""
MOST_WAITING = 64


class Untold:
    """By process: who waits for a traceback to begin, and who for it to end."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Found]] = {}
        self._begun: dict[str, list[Found]] = {}

    def add(self, who: str, found: Found) -> None:
        """A match that no function places."""
        if who in self._waiting or len(self._waiting) < MOST_WAITING:
            self._waiting.setdefault(who, deque(maxlen=MOST_WAITING)).append(found)

    def begins(self, who: str, number: int) -> None:
        """A traceback of the process begins."""
        near = [each for each in self._waiting.pop(who, ()) if number - each.line.number <= NEAR]
        if near:
            self._begun.setdefault(who, []).extend(near)

    def ends(self, who: str, marker: Marker | None) -> None:
        """It ends: its functions tell where the message came from."""
        begun = self._begun.pop(who, [])
        if marker and not marker.is_weak:  # a parent's traceback tells where it waited, not where its child was
            for each in begun:
                each.frames = each.frames or marker

    def end(self, marker_of: Callable[[str], Marker | None]) -> None:
        """The log ends, and with it every traceback."""
        for who in list(self._begun):
            self.ends(who, marker_of(who))
