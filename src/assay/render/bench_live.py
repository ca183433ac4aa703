"""A load test while it runs, on stderr: a live panel at a terminal, a line every few seconds elsewhere.

Drawn only when the load reports, at most twice a second and never by a timer of our own: what draws is not what loads,
but it may share a core with it.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from assay.ports_bench import Live
from assay.records.text import shown
from assay.render.live_words import health_of, health_words, latency_words, left_words, rate_words, request_words
from assay.render.progress import MARKS, MIN_REDRAW_S, STYLES
from assay.render.text_plots import sparkline
from assay.render.words import duration_words, number_words

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

PLAIN_EVERY_S = 5.0
HISTORY = 48
"""Ticks in the sparkline."""
HEALTH_STYLES = {"ok": "green", "busy": "yellow", "SATURATED": "bold red", "not known yet": "dim"}


class QuietBench:
    """Says nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to close."""

    def phase(self, text: str, done_s: float, total_s: float | None) -> None:
        """A part of the work begins."""

    def tick(self, live: Live) -> None:
        """The load a moment later."""

    def result(self, text: str, good: bool | None = None) -> None:
        """Something was concluded."""


class PlainBench(QuietBench):
    """Lines for logs and pipes: one when something begins or ends, and one every few seconds in between."""

    def __init__(self, stream: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._began = clock()
        self._said_at = -PLAIN_EVERY_S
        self._live_phase = ""

    def phase(self, text: str, done_s: float, total_s: float | None) -> None:
        """What begins, and what is left of the whole."""
        left = "" if total_s is None else f"about {duration_words(max(0.0, total_s - done_s))} left  "
        self._live_phase = ""
        self._say(f"{left}{text}")

    def tick(self, live: Live) -> None:
        """The load in one line, when the last one is old or the load has gone on to its next phase."""
        if live.phase == self._live_phase and self._clock() - self._said_at < PLAIN_EVERY_S:
            return
        self._live_phase, self._said_at = live.phase, self._clock()
        health = f"client {health_words(live)}"
        self._say(f"{live.phase}: {rate_words(live)}; {latency_words(live)}; {health}; {left_words(live)}")

    def result(self, text: str, good: bool | None = None) -> None:
        """Marked with + for good and ! for bad."""
        self._say(f"{MARKS[good]} {text}")

    def _say(self, text: str) -> None:
        elapsed = int(self._clock() - self._began)
        print(f"[{elapsed // 60:02d}:{elapsed % 60:02d}] {shown(text)}", file=self._stream, flush=True)


class LiveBench(QuietBench):
    """A panel that stays at the bottom, results scrolling by above it."""

    def __init__(self, console: Console | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        from rich.console import Console  # noqa: PLC0415 - only where a person looks
        from rich.live import Live as Display  # noqa: PLC0415

        self._console = console or Console(stderr=True, highlight=False)
        self._clock = clock
        self._began = self._phase_at = clock()
        self._drawn_at = -MIN_REDRAW_S
        self._phase, self._done_s = "starting", 0.0
        self._total_s: float | None = None
        self._last: Live | None = None
        self._history: deque[float] = deque(maxlen=HISTORY)
        self._display = Display(
            get_renderable=self.view, console=self._console, auto_refresh=False, transient=True, redirect_stdout=False
        )

    def __enter__(self) -> Self:
        self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        self._display.stop()

    def phase(self, text: str, done_s: float, total_s: float | None) -> None:
        """Name it above the panel's lines and move the bar."""
        self._phase, self._done_s, self._total_s = text, done_s, total_s
        self._phase_at = self._clock()
        self._last = None
        self._redraw(now=True)

    def tick(self, live: Live) -> None:
        """Show it; the throughput joins the sparkline."""
        self._last = live
        self._history.append(live.output_tokens_per_s)
        self._redraw(now=False)

    def result(self, text: str, good: bool | None = None) -> None:
        """A line above the panel."""
        from rich.text import Text  # noqa: PLC0415 - only where a person looks

        self._console.print(Text(f"{MARKS[good]} {shown(text)}", style=STYLES[good]))

    def view(self) -> RenderableType:
        """The panel: how far, how fast, how long it takes, and whether the client keeps up."""
        from rich import box  # noqa: PLC0415 - only where a person looks
        from rich.console import Group  # noqa: PLC0415
        from rich.panel import Panel  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        lines: list[RenderableType] = [self._bar()]
        if self._last is not None:
            grid = Table.grid(padding=(0, 2))
            grid.add_column(no_wrap=True, min_width=9)
            grid.add_column(no_wrap=True, overflow="ellipsis")
            for name, words in self._rows(self._last):
                grid.add_row(Text(name, style="bold"), words)
            lines.append(grid)
        return Panel(Group(*lines), title=Text(shown(self._phase)), title_align="left", box=box.ROUNDED)

    def _bar(self) -> RenderableType:
        """Over the whole when its length is known, else over this load, else without an end."""
        from rich.progress_bar import ProgressBar  # noqa: PLC0415 - only where a person looks
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        done_s, total_s = self._reach()
        elapsed = f"{duration_words(self._clock() - self._began)} so far"
        if total_s is None:
            return Text(f"how long it takes is not known yet, {elapsed}")
        grid = Table.grid(padding=(0, 2))
        share = min(1.0, done_s / total_s) if total_s > 0 else 1.0
        left = f"about {duration_words(max(0.0, total_s - done_s))} left, {elapsed}"
        grid.add_row(ProgressBar(total=1.0, completed=share, width=24), Text(f"{100 * share:3.0f}%"), Text(left))
        return grid

    def _reach(self) -> tuple[float, float | None]:
        """Seconds done and in all."""
        if self._total_s is not None:
            return self._done_s + self._clock() - self._phase_at, self._total_s
        if self._last is None or self._last.left_s is None:
            return 0.0, None
        return self._last.at_s, self._last.at_s + self._last.left_s

    def _rows(self, live: Live) -> list[tuple[str, Text]]:
        from rich.text import Text  # noqa: PLC0415 - only where a person looks

        health = health_of(live)
        failed = (f"{live.failed:,} failed", "bold red" if live.failed else "")
        bars = sparkline(list(self._history), HISTORY)
        return [
            ("tokens/s", Text.assemble(f"{number_words(live.output_tokens_per_s):<8}", bars)),
            ("requests", Text.assemble(f"{request_words(live)}, {live.completed:,} done, ", failed)),
            ("latency", Text(latency_words(live))),
            ("client", Text(health_words(live), style=HEALTH_STYLES[health])),
            ("phase", Text(f"{live.phase}, {left_words(live)}")),
        ]

    def _redraw(self, *, now: bool) -> None:
        at = self._clock()
        if now or at - self._drawn_at >= MIN_REDRAW_S:
            self._drawn_at = at
            self._display.refresh()


def for_stream(*, plain: bool = False) -> QuietBench:
    """The live panel at a terminal, plain lines elsewhere."""
    return LiveBench() if sys.stderr.isatty() and not plain else PlainBench()
