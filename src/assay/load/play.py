"""One load test as it passes: warm up until steady, measure the windows, look under load, stop.

    streams start --- warm-up ---|-- window --|-- window --|-- window --|-- under_load() --| stop
                                 steady       (back to back)                               streams are cut

The load is made by other processes (`fleet`); this one only listens, decides when the windows begin, and asks
whether the server is alive. Ctrl-C, a dead server and an error all leave by the same door: the processes are ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from assay.load.fleet import Fleet
from assay.load.metrics import NS, Windows
from assay.load.steady import is_steady
from assay.load.told import BIN_NS
from assay.records.bench import BenchSpec

POLL_S = 0.1
Phase = str
"""warming up, measuring, looking, draining."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """How a load test passed."""

    began_ns: int
    windows: Windows | None
    """None when the load never became steady."""
    counts: list[int]
    """Content chunks in successive stretches of the warm-up."""
    steady: bool
    died_ns: int | None
    """When the server was seen to be dead."""
    exhausted: bool
    """Whether the source ran out of requests before the windows were over."""
    clock_stepped: bool


@dataclass(slots=True)
class _Progress:
    began_ns: int
    counts: list[int] = field(default_factory=list)
    steady: bool = False
    windows: Windows | None = None
    died_ns: int | None = None
    exhausted: bool = False


class _Over(Exception):  # noqa: N818 - an outcome, caught in this module
    """The server died, or there is nothing more to send."""


class Play:
    """Lets one load test pass on a fleet."""

    def __init__(
        self,
        spec: BenchSpec,
        fleet: Fleet,
        alive: Callable[[], bool],
        under_load: Callable[[], None] | None = None,
        tick: Callable[[Phase, int], None] = lambda _phase, _began: None,
    ) -> None:
        """Prepare.

        Args:
            spec: windows and warm-up.
            fleet: load processes that are ready.
            alive: polled; False ends the load at once.
            under_load: called once in a thread after the windows, before the stop.
            tick: told every 100 ms in which phase the load is, and when it began.
        """
        self._spec, self._fleet = spec, fleet
        self._alive, self._under_load, self._tick = alive, under_load, tick
        self._phase = "warming up"
        self._at = _Progress(began_ns=0)

    def run(self) -> Played:
        """Warm-up to stop."""
        at = self._at = _Progress(began_ns=self._fleet.start())
        try:
            if self._spec.arrival.kind == "trace":
                self._whole_trace()
            else:
                at.steady = self._warm_up()
                if at.steady:
                    self._measure()
            if at.windows is not None and self._under_load is not None:
                self._look(self._under_load)
        except _Over:
            pass
        self._phase = "draining"
        self._tick(self._phase, at.began_ns)
        self._fleet.stop()
        return Played(
            began_ns=at.began_ns,
            windows=at.windows,
            counts=at.counts,
            steady=at.steady,
            died_ns=at.died_ns,
            exhausted=at.exhausted,
            clock_stepped=self._fleet.now().clock_stepped,
        )

    def _warm_up(self) -> bool:
        """Count stretches of half a window until all streams have begun and two agree; False when time is over."""
        spec, at = self._spec, self._at
        stretch_ns = max(round(min(spec.window_s, spec.warmup_max_s) / 2 * NS) // BIN_NS, 1) * BIN_NS
        first_ns = -(-at.began_ns // BIN_NS) * BIN_NS
        while True:
            start_ns = first_ns + len(at.counts) * stretch_ns
            end_ns = start_ns + stretch_ns
            if end_ns - first_ns > max(spec.warmup_max_s * NS, stretch_ns):
                return False
            self._until(end_ns + BIN_NS)  # the bins of a stretch come with the beat after it
            at.counts.append(self._fleet.arrived(start_ns, end_ns))
            warm = end_ns - at.began_ns >= spec.warmup_min_s * NS
            if warm and self._all_began() and is_steady(at.counts, self._tokens_per_request() / 2):
                return True

    def _tokens_per_request(self) -> float:
        """Chunks of a request: how coarsely arrivals clump."""
        now = self._fleet.now()
        return sum(self._at.counts) / max(now.completed, 1)

    def _all_began(self) -> bool:
        """Whether every stream has received something: until then the first prompts are still being read."""
        arrival, now = self._spec.arrival, self._fleet.now()
        if arrival.kind != "closed":
            return now.begun_streams > 0
        return now.begun_streams >= (arrival.concurrency or 1)

    def _measure(self) -> None:
        self._phase = "measuring"
        windows = Windows(
            start_ns=time.monotonic_ns(), length_ns=round(self._spec.window_s * NS), count=self._spec.windows
        )
        self._until(windows.end_ns)
        self._at.windows = windows

    def _whole_trace(self) -> None:
        """A trace is measured from its first request to the end of its last: it has no steady state to wait for."""
        self._phase = "measuring"
        at = self._at
        at.steady = True
        try:
            self._until(at.began_ns + round(self._spec.window_s * self._spec.windows * NS))
        except _Over:
            if at.died_ns is not None:
                raise
        at.exhausted = False
        at.windows = Windows(start_ns=at.began_ns, length_ns=time.monotonic_ns() - at.began_ns, count=1)

    def _look(self, under_load: Callable[[], None]) -> None:
        """Run `under_load` in its thread and keep the load going until it returns."""
        self._phase = "looking"
        failed: list[BaseException] = []

        def look() -> None:
            try:
                under_load()
            except BaseException as error:  # noqa: BLE001 - handed on to the caller below
                failed.append(error)

        thread = threading.Thread(target=look, name="assay-under-load", daemon=True)
        thread.start()
        while thread.is_alive():
            self._pass(POLL_S)
        if failed:
            raise failed[0]

    def _until(self, deadline_ns: int) -> None:
        """Listen to a moment, seeing to it meanwhile that the server lives."""
        while (left_ns := deadline_ns - time.monotonic_ns()) > 0:
            self._pass(min(left_ns / NS, POLL_S))

    def _pass(self, seconds: float) -> None:
        self._fleet.listen(seconds)
        self._tick(self._phase, self._at.began_ns)
        if not self._alive():
            self._at.died_ns = time.monotonic_ns()
            raise _Over
        if self._fleet.now().exhausted:
            self._at.exhausted = True
            raise _Over
