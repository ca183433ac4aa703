"""The lines around a line: up to three before it, known when it comes, and three after it, not yet known."""

from __future__ import annotations

from collections import deque

from assay.failures.lines import plain
from assay.records.failure import LogLine

NUM_AROUND = 3


class Around:
    """Keeps the last lines, and hands the next ones to whoever asked for them."""

    def __init__(self) -> None:
        self._recent: deque[tuple[int, str]] = deque(maxlen=NUM_AROUND)
        self._waiting: list[list[LogLine]] = []

    def before(self) -> list[LogLine]:
        """The last lines; the next ones are appended to the same list as they come."""
        lines = self.recent()
        self._waiting.append(lines)
        return lines

    def recent(self) -> list[LogLine]:
        """The last lines alone."""
        return [LogLine(number=number, text=plain(text)) for number, text in self._recent]

    def arrive(self, number: int, text: str) -> None:
        """A line comes: those who wait for lines after theirs get it."""
        if not self._waiting:
            return
        line = LogLine(number=number, text=plain(text))
        for lines in self._waiting:
            lines.append(line)
        self._waiting = [each for each in self._waiting if each[-1].number - each[0].number < 2 * NUM_AROUND]

    def passed(self, number: int, text: str) -> None:
        """A line was looked at."""
        self._recent.append((number, text))
