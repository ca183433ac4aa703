"""Exceptions that Python passed over while it took an object away: no failures."""

from __future__ import annotations

from assay.failures.lines import Line
from assay.failures.tracebacks import EXCEPTION

IGNORED = ("Exception ignored in", "Exception ignored while")


class Ignored:
    """Remembers who wrote that the exception which comes next is ignored."""

    def __init__(self) -> None:
        self._who: str | None = None

    def holds(self, line: Line) -> bool:
        """Whether a line tells of such an exception, or is it."""
        if line.body.startswith(IGNORED):
            self._who = line.who
        elif self._who != line.who or not EXCEPTION.match(line.body):
            return False
        else:
            self._who = None
        return True
