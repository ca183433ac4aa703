"""Exceptions that Python passed over while it took an object away: no failures."""

from __future__ import annotations

import re

from assay.failures.lines import Line
from assay.failures.tracebacks import EXCEPTION

IGNORED = ("Exception ignored in", "Exception ignored while")
STOPS = ("KeyboardInterrupt", "SystemExit")
"""Exceptions that tell of no error."""
STAYS = re.compile(r"\b(?:CUDA|HIP) error: (?:an illegal|a misaligned|misaligned|device-side|unspecified launch)")
"""A kernel broke the device's context before: whoever calls the device next is told, also while it takes leave."""


class Ignored:
    """Remembers who wrote that the exception which comes next is ignored."""

    def __init__(self) -> None:
        self._who: str | None = None

    def awaits(self, who: str) -> bool:
        """Whether the traceback that a process begins is of such an exception."""
        return self._who == who

    def holds(self, line: Line) -> bool:
        """Whether a line tells of such an exception, or is it."""
        if line.body.startswith(IGNORED):
            self._who = line.who
        elif self._who == line.who and STAYS.search(line.body):
            self._who = None
            return False
        elif self._who == line.who and line.body.startswith(STOPS):
            self._who = None
        elif self._who != line.who or not EXCEPTION.match(line.body):
            return False
        else:
            self._who = None
        return True
