"""Live progress on stderr: a bar over measuring seconds with the planner's own estimate, and results above it.

Drawn only when something happens, figures that move at most twice a second: a measured window sees no work of ours.
The one timer, of plain lines, is for phases that do not measure, and is called off before one that does.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from assay.records.text import shown
from assay.render.words import duration_words

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

MARKS = {True: "+", False: "!", None: "="}
"""Before a result: good, bad, neither. Colour says the same, never alone."""
STYLES = {True: "green", False: "yellow", None: ""}
MIN_REDRAW_S = 0.5
PATIENCE_S = 10.0
"""A phase that lasts longer is told where no bar shows it."""
AT_ONCE = ("soaking",)
"""Phases that always last."""
MEASURING = ("measuring", "warming up")
"""Phases in which nothing of ours may run, not even a timer; their step says how long they take."""
MOVED_SHARE = 0.1
"""By how much the expected total must have moved before the first estimate is shown beside it."""


WIDE, WIDE_BAR, NARROW_BAR = 100, 20, 10
"""Columns of a terminal from which on the bar is long, and the bar's columns."""
LEAST_STEP = 12
"""Columns below which a step's name is no help beside what is done in it."""


class QuietProgress:
    """Says nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to close."""

    def step(self, text: str, *, done_s: float, total_s: float) -> None:
        """A run begins."""

    def phase(self, text: str) -> None:
        """Within a run."""

    def result(self, text: str, *, good: bool | None = None) -> None:
        """Something was concluded."""


class PlainProgress(QuietProgress):
    """One line a step, and one for each phase of it that lasts; for logs and pipes."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._began = clock()
        self._patience_s = patience_s
        self._phase = ""
        self._told_later: threading.Timer | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing more is told."""
        self._leave_phase()

    def step(self, text: str, *, done_s: float, total_s: float) -> None:
        """Elapsed time, what is left, what is done now."""
        self._leave_phase()
        self._say(f"about {duration_words(max(0.0, total_s - done_s))} left  {text}")

    def phase(self, text: str) -> None:
        """Told once if it lasts, however often its figures change."""
        same = bool(self._phase) and text.partition(":")[0] == self._phase.partition(":")[0]
        if same:
            self._phase = text
            return
        self._leave_phase()
        self._phase = text
        if text.startswith(AT_ONCE):
            self._say(text)
        elif not text.startswith(MEASURING):
            self._told_later = threading.Timer(self._patience_s, self._say_phase)
            self._told_later.daemon = True
            self._told_later.start()

    def result(self, text: str, *, good: bool | None = None) -> None:
        """Marked with + for good and ! for bad."""
        self._say(f"{MARKS[good]} {text}")

    def _leave_phase(self) -> None:
        if self._told_later is not None:
            self._told_later.cancel()
        self._told_later, self._phase = None, ""

    def _say_phase(self) -> None:
        if self._phase:
            self._say(self._phase)

    def _say(self, text: str) -> None:
        elapsed = int(self._clock() - self._began)
        print(f"[{elapsed // 60:02d}:{elapsed % 60:02d}] {shown(text)}", file=self._stream, flush=True)


class RichProgress(QuietProgress):
    """A bar for people at a terminal: two lines that stay at the bottom, results scrolling by above them."""

    def __init__(self, console: Console | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        from rich.console import Console  # noqa: PLC0415 - only where a person looks
        from rich.live import Live  # noqa: PLC0415

        self._console = console or Console(stderr=True, highlight=False)
        self._clock = clock
        self._began = clock()
        self._drawn_at = -MIN_REDRAW_S
        self._step, self._phase = "starting", ""
        self._done_s, self._total_s = 0.0, 0.0
        self._first_total_s: float | None = None
        self._live = Live(
            get_renderable=self.view, console=self._console, auto_refresh=False, transient=True, redirect_stdout=False
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        self._live.stop()

    def step(self, text: str, *, done_s: float, total_s: float) -> None:
        """Move the bar; the total follows the planner."""
        self._step, self._phase = text, ""
        self._done_s, self._total_s = done_s, total_s
        if self._first_total_s is None:
            self._first_total_s = total_s
        self._redraw(now=True)

    def phase(self, text: str) -> None:
        """Say it behind the step: a new one at once, for it may last; new figures of the same only now and then."""
        same = text.partition(":")[0] == self._phase.partition(":")[0]
        self._phase = text
        self._redraw(now=not same)

    def result(self, text: str, *, good: bool | None = None) -> None:
        """A line above the bar."""
        from rich.text import Text  # noqa: PLC0415 - only where a person looks

        self._console.print(Text(f"{MARKS[good]} {shown(text)}", style=STYLES[good]))

    def view(self) -> RenderableType:
        """The two lines: how far and how long, then what is done right now."""
        from rich.console import Group  # noqa: PLC0415 - only where a person looks
        from rich.progress_bar import ProgressBar  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        total_s = max(self._total_s, self._done_s, 1.0)
        width = self._console.width
        line = Table.grid(padding=(0, 1))
        share = f"{100 * self._done_s / total_s:3.0f}%"
        bar = ProgressBar(total=total_s, completed=self._done_s, width=WIDE_BAR if width >= WIDE else NARROW_BAR)
        line.add_row(bar, Text(share), Text(self._estimate(), overflow="ellipsis", no_wrap=True))
        return Group(line, Text(shown(fitted(self._step, self._phase, width)), overflow="ellipsis", no_wrap=True))

    def _estimate(self) -> str:
        """What is left, and what was said at first once that has turned out to be wrong."""
        if self._first_total_s is None:
            return "how long it takes is not known yet"
        elapsed = duration_words(self._clock() - self._began)
        words = f"about {duration_words(max(0.0, self._total_s - self._done_s))} left, {elapsed} so far"
        moved = abs(self._total_s - self._first_total_s) > MOVED_SHARE * self._first_total_s
        first = f" (at first {duration_words(self._first_total_s)} in all)"
        return words + (first if moved else "")

    def _redraw(self, *, now: bool) -> None:
        at = self._clock()
        if now or at - self._drawn_at >= MIN_REDRAW_S:
            self._drawn_at = at
            self._live.refresh()


def fitted(step: str, phase: str, width: int) -> str:
    """A step and what is done in it, in one line: where that is too long the step is cut, which changes less often."""
    if not phase:
        return step
    room = width - len(phase) - len(": ")
    if len(step) <= room:
        return f"{step}: {phase}"
    return f"{step[: room - 1].rstrip(' :,')}\N{HORIZONTAL ELLIPSIS} {phase}" if room > LEAST_STEP else phase


def for_stream(*, plain: bool = False) -> QuietProgress:
    """The live bar at a terminal, plain lines elsewhere."""
    return RichProgress() if sys.stderr.isatty() and not plain else PlainProgress()
