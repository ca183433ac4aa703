"""The last traceback of each process: its functions, its assertion, and whether a line is the source of a call.

Processes write their tracebacks between one another's lines; what the line says of its writer keeps them apart.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence

from assay.failures.lines import Line
from assay.failures.stages import (
    EMBEDDED_FRAME,
    FRAME,
    INNERMOST_FIRST,
    NOTEBOOK_FRAME,
    NOTEBOOK_LISTING,
    OF_ANOTHER_THREAD,
    TRACEBACK,
    Marker,
    of_frames,
)
from assay.records.failure import LogLine

MOST_FRAMES = 64
MOST_PROCESSES = 128
NEAREST = 4
"""Lines from the innermost function to the exception: its source, and the marks beneath."""
EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{1,60}(?:Error|Exception|Unsupported|Timeout|OutOfResources)\b"
    r"(?:\(\w{1,60}\))?(?=:|\s(?!\s{0,200}Traceback )|$)"
)
BARE_ASSERTION = re.compile(r"^AssertionError:?\s*$")
SOURCE = re.compile(r"^ {4,}\S")


class Tracebacks:
    """Memory does not grow with the log: so many processes, so many functions of each."""

    def __init__(self) -> None:
        self._frames: dict[str, deque[str]] = {}
        self._asserted: dict[str, tuple[Line, list[LogLine]]] = {}
        self._ignored: set[str] = set()
        """Processes whose last traceback is of an exception that Python passed over."""
        self._last: Line | None = None
        """The last function of a traceback that Python wrote."""
        self._called: str | None = None
        """Who wrote the line before, where that was a function of a traceback."""
        self._is_flat = False
        """The tracebacks lost their indentation on the way."""
        self._lists = False
        """The last function was written as notebooks do, with a listing of the source around the call."""
        self._is_embedded = False
        """The last line was a function as pybind11 writes it; nothing heads them that other lines do not hold."""
        self._threads: dict[str, bool] = {}
        """By process that a signal ended: whether the thread comes now that it ended in."""

    @property
    def awaits_source(self) -> bool:
        """The line before named a function: the next one of the same process is its source."""
        return self._called is not None

    def begin(self, line: Line, *, is_ignored: bool = False) -> bool:
        """A new traceback forgets the functions of the one before, unless Python ignores it. Whether one begins."""
        if INNERMOST_FIRST in line.body:
            return self._begin_thread(line)
        was_embedded, self._is_embedded = self._is_embedded, _is_embedded(line)
        if TRACEBACK not in line.body and (was_embedded or not self._is_embedded):
            return False
        self._ignored.discard(line.who)
        if is_ignored:
            self._ignored.add(line.who)
            return True
        self._of(line.who).clear()
        self._threads.pop(line.who, None)
        if not line.body.startswith(TRACEBACK):  # SGLang names the writer in the first line only
            self._of("").clear()
        return True

    def _begin_thread(self, line: Line) -> bool:
        """All threads of a process are told; the one counts in which the signal came."""
        is_it = not OF_ANOTHER_THREAD.match(line.body)
        if is_it:
            self._of(line.who).clear()
        if len(self._threads) < MOST_PROCESSES or line.who in self._threads:
            self._threads[line.who] = is_it
        return True

    def take(self, line: Line) -> bool:
        """Whether the line names a function of a traceback, which is kept."""
        frame = FRAME.match(line.body)
        if frame is None:
            return self._take_of_notebook(line)
        self._lists = False
        if line.who in self._ignored:
            return True
        function = f'{frame["path"]}", in {frame["name"]}'
        if frame["comma"] is None:
            if self._threads.get(line.who, True) and len(self._of(line.who)) < MOST_FRAMES:
                self._of(line.who).appendleft(function)
            return True
        self._of(line.who).append(function)
        self._last = line
        self._called, self._is_flat = line.who, not line.body.startswith(" ")
        return True

    def _take_of_notebook(self, line: Line) -> bool:
        """IPython and rich write functions in a form of their own, and list the source around each call."""
        if frame := NOTEBOOK_FRAME.match(line.body):
            name = frame["name"].rpartition(".")[2] if frame["name"] else "<module>"
            self._of(line.who).append(f'{frame["path"]}", in {name}')
            self._lists = True
            return True
        if self._is_embedded and (frame := EMBEDDED_FRAME.match(line.body)):
            if len(self._of(line.who)) < MOST_FRAMES:
                self._of(line.who).appendleft(f'{frame["path"]}", in {frame["name"]}')
            return True
        self._lists = self._lists and not EXCEPTION.match(line.body)
        return self._lists and bool(NOTEBOOK_LISTING.match(line.body))

    def source(self, line: Line) -> tuple[bool, bool]:
        """Whether the line after a function is its source (another process may write between), and is indented."""
        called, self._called = self._called, None
        if line.who != called or FRAME.match(line.body) or EXCEPTION.match(line.body):
            return False, False
        is_indented = bool(SOURCE.match(line.body))
        return is_indented or self._is_flat, is_indented

    def is_source(self, line: Line) -> bool:
        """Whether an indented line stands in a traceback."""
        return bool(SOURCE.match(line.body)) and bool(self._frames.get(line.who))

    def adopt(self, line: Line) -> None:
        """An exception that nobody signed, right below the functions of one process: it is that one's."""
        last = self._last
        if last and last.who and not line.who and line.number - last.number <= NEAREST and not self._frames.get(""):
            self._of("").extend(self._of(last.who))

    def keep_assertion(self, line: Line, around: list[LogLine]) -> bool:
        """What is asserted stands in the source line; the exception after it may say nothing. Whether there is room."""
        has_room = line.who in self._asserted or len(self._asserted) < MOST_PROCESSES
        if has_room:
            self._asserted[line.who] = line, around
        return has_room

    def assertion(self, line: Line) -> tuple[Line, list[LogLine]] | None:
        """What was asserted, for an exception without words."""
        return self._asserted.get(line.who) if BARE_ASSERTION.match(line.body) else None

    def marker(self, who: str) -> Marker | None:
        """The stage that a process's last traceback tells."""
        return of_frames(self._frames.get(who, ()))

    def of(self, who: str) -> Sequence[str]:
        """File and name of the functions of a process's last traceback, the innermost last."""
        return self._frames.get(who, ())

    def functions(self) -> Iterator[str]:
        """Of all processes' last tracebacks."""
        for frames in self._frames.values():
            yield from frames

    def _of(self, who: str) -> deque[str]:
        if who not in self._frames and len(self._frames) >= MOST_PROCESSES:
            self._frames.pop(next(iter(self._frames)))
        return self._frames.setdefault(who, deque(maxlen=MOST_FRAMES))


def _is_embedded(line: Line) -> bool:
    return ".py(" in line.body and EMBEDDED_FRAME.match(line.body) is not None
