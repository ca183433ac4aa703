"""Lines to quote where no rule names a cause: they come nearest to one."""

from __future__ import annotations

from collections.abc import Callable

from assay.failures.found import Said
from assay.failures.lines import Line
from assay.failures.tracebacks import EXCEPTION


class Nearest:
    """Of one file, or of all."""

    def __init__(self) -> None:
        self.exception: Said | None = None
        """The first exception that no rule matches."""
        self.error: Said | None = None
        """The first line at the level of an error, likewise."""
        self.source: Said | None = None
        """The source line of the innermost call of the last traceback: all there is where a log was cut in it."""

    def hear(self, line: Line, said: Callable[[Line], Said]) -> bool:
        """Keep a line that no rule knows, if it is the first of its kind. Whether it tells of an error."""
        is_exception = bool(EXCEPTION.match(line.body))
        if is_exception and self.exception is None:
            self.exception = said(line)
        elif line.level == "error" and self.error is None:
            self.error = said(line)
        return is_exception or line.level == "error"

    def join(self, later: Nearest) -> None:
        """What the next file holds."""
        self.exception = self.exception or later.exception
        self.error = self.error or later.error
        self.source = later.source or self.source
