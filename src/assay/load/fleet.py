"""The load processes of one test, seen from the controlling process: started together, heard, stopped together."""

from __future__ import annotations

import selectors
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from assay.errors import AssayError, EngineError, MeasurementError, RecordError, UsageError
from assay.load.kernel_socket import BIN_SHIFT, NUM_BINS
from assay.load.lag import Lag
from assay.load.told import BIN_NS, Beat, Ended, Job
from assay.process import Piped

START_S = 60.0
STOP_S = 30.0
START_MARGIN_NS = 20_000_000
ERRORS: dict[str, type[AssayError]] = {
    kind.__name__: kind for kind in (UsageError, EngineError, MeasurementError, RecordError)
}
"""What a load process may refuse its job with."""
SILENCE_S = 15.0
"""A process that says nothing for so long hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """All processes together, as of their last beats."""

    in_flight: int
    begun_streams: int
    completed: int
    failed: int
    exhausted: bool
    clock_stepped: bool
    ttft_ns: list[int]
    """Some of the newest."""
    gap_ns: list[int]
    lag_ns: int
    """Worst since the last beat."""
    busiest_share: float
    """CPU share of the busiest process since its last beat."""
    rss_bytes: int


class Fleet:
    """Load processes; `close` ends them whatever happened."""

    def __init__(self, jobs: Sequence[Job], folder: Path, *, cpus: set[int] | None = None) -> None:
        """Start a process for each job and wait until all are ready.

        Raises:
            AssayError: a process refused its job, or did not start.
        """
        self._folder = folder
        self._selector = selectors.DefaultSelector()
        self._workers: list[Piped] = []
        self._beats: dict[int, Beat] = {}
        self._heard_s: dict[int, float] = {}
        self._shares: dict[int, float] = {}
        self._ready: set[int] = set()
        self.ended: dict[int, Ended] = {}
        self.cpu_marks: list[tuple[int, int, int]] = []
        """(process, instant, CPU nanoseconds so far) of every beat."""
        self.rss_marks: list[tuple[int, int]] = []
        """(instant, resident bytes) of every beat."""
        self.bins: Counter[int] = Counter()
        """Content chunks by number of their 50 ms bin, over all processes."""
        try:
            for number, job in enumerate(jobs):
                worker = Piped("assay.load.worker", [], folder / f"load-{number}.log", cpus=cpus)
                self._workers.append(worker)
                self._selector.register(worker, selectors.EVENT_READ, number)
                worker.tell(msgspec.json.encode(job))
            self._wait(lambda: len(self._ready) == len(jobs), START_S, "did not get ready")
        except BaseException:
            self.close()
            raise

    def start(self) -> int:
        """Let all begin at one instant; returns it."""
        began_ns = time.monotonic_ns() + START_MARGIN_NS
        for worker in self._workers:
            worker.tell(b"start %d" % began_ns)
        self._heard_s = dict.fromkeys(range(len(self._workers)), time.monotonic())
        return began_ns

    def listen(self, timeout_s: float) -> None:
        """Take in what the processes say, for at most so long.

        Raises:
            EngineError: one of them ended or fell silent.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            left_s = deadline - time.monotonic()
            for key, _ in self._selector.select(max(left_s, 0)):
                self._hear(int(key.data))
            if left_s <= 0:
                break
        silent = [
            n for n, heard in self._heard_s.items() if n not in self.ended and time.monotonic() - heard > SILENCE_S
        ]
        if silent:
            raise EngineError(
                f"load process {silent[0]} has said nothing for {SILENCE_S:g} s", hint=self._where(silent[0])
            )

    def stop(self) -> None:
        """Cut what is in flight and wait until every process has written its last request."""
        for worker in self._workers:
            worker.tell(b"stop")
        self._wait(lambda: len(self.ended) == len(self._workers), STOP_S, "did not stop")

    def close(self) -> None:
        """End all processes. Idempotent."""
        for worker in self._workers:
            worker.end()
        self._workers = []
        self._selector.close()

    def now(self) -> Now:
        """All processes together."""
        beats = list(self._beats.values())
        return Now(
            in_flight=sum(beat.in_flight for beat in beats),
            begun_streams=sum(beat.begun_streams for beat in beats),
            completed=sum(beat.completed for beat in beats),
            failed=sum(beat.failed for beat in beats),
            exhausted=len(beats) == len(self._workers) and all(beat.exhausted for beat in beats),
            clock_stepped=any(beat.clock_stepped for beat in beats),
            ttft_ns=[value for beat in beats for value in beat.ttft_ns],
            gap_ns=[value for beat in beats for value in beat.gap_ns],
            lag_ns=max((beat.lag_ns for beat in beats), default=0),
            busiest_share=max(self._shares.values(), default=0.0),
            rss_bytes=sum(beat.rss_bytes for beat in beats),
        )

    def arrived(self, start_ns: int, end_ns: int) -> int:
        """Content chunks in [start, end), to the bin."""
        return sum(self.bins[number] for number in range(start_ns // BIN_NS, end_ns // BIN_NS))

    def cpu_s(self, start_ns: int, end_ns: int) -> list[float]:
        """CPU seconds of each process between two instants, interpolated between beats."""
        return [
            (_at(marks, end_ns) - _at(marks, start_ns)) / 1e9
            for number in range(len(self.ended) or len(self._workers))
            if (marks := [(at, cpu) for who, at, cpu in self.cpu_marks if who == number])
        ]

    def lags(self) -> list[Lag]:
        """Every look at the event loops."""
        return [Lag(at_ns, late_s) for ended in self.ended.values() for at_ns, late_s in ended.lags]

    def read_delay_s(self, share: float) -> float | None:
        """Quantile of how long bytes had waited in the socket before they were read; None without kernel stamps."""
        totals = [sum(counts) for counts in zip(*(e.delays for e in self.ended.values() if e.delays), strict=True)]
        wanted, seen = share * sum(totals), 0
        for number, count in enumerate(totals):
            seen += count
            if count and seen >= wanted:
                return ((number + 1) << BIN_SHIFT) / 1e9
        return None if not totals else (NUM_BINS << BIN_SHIFT) / 1e9

    @property
    def stamped_by_kernel(self) -> bool:
        """Whether (all but one in a hundred) reads carried the kernel's stamp."""
        with_stamp = sum(sum(ended.delays) for ended in self.ended.values())
        return with_stamp > 0 and sum(e.without_stamp for e in self.ended.values()) * 100 <= with_stamp

    def _hear(self, number: int) -> None:
        said = self._workers[number].lines()
        if said is None:
            self._selector.unregister(self._workers[number])
            if number not in self.ended:
                raise EngineError(f"load process {number} ended by itself", hint=self._where(number))
            return
        self._heard_s[number] = time.monotonic()
        for line in said:
            self._take(number, line)

    def _take(self, number: int, line: bytes) -> None:
        message = msgspec.json.decode(line)
        if "ready" in message:
            self._ready.add(number)
        elif "error" in message:
            raise ERRORS.get(message["kind"], MeasurementError)(message["error"], hint=message["hint"])
        elif "ended" in message:
            self.ended[number] = msgspec.convert(message, Ended)
        else:
            self._take_beat(number, msgspec.json.decode(line, type=Beat))

    def _take_beat(self, number: int, beat: Beat) -> None:
        before = self._beats.get(number)
        if before is not None and beat.at_ns > before.at_ns:
            self._shares[number] = (beat.cpu_ns - before.cpu_ns) / (beat.at_ns - before.at_ns)
        self._beats[number] = beat
        self.bins.update(beat.bins)
        self.cpu_marks.append((number, beat.at_ns, beat.cpu_ns))
        self.rss_marks.append((beat.at_ns, sum(b.rss_bytes for b in self._beats.values())))

    def _wait(self, done: Callable[[], bool], patience_s: float, what: str) -> None:
        deadline = time.monotonic() + patience_s
        while not done():
            if time.monotonic() > deadline:
                raise EngineError(f"a load process {what} within {patience_s:g} s", hint=self._where(0))
            for key, _ in self._selector.select(0.1):
                self._hear(int(key.data))

    def _where(self, number: int) -> str:
        return f"read {self._folder / f'load-{number}.log'}"


def _at(marks: list[tuple[int, int]], at_ns: int) -> float:
    """CPU time at an instant, between the two marks around it."""
    before = max((mark for mark in marks if mark[0] <= at_ns), default=marks[0])
    after = min((mark for mark in marks if mark[0] > at_ns), default=marks[-1])
    if after[0] <= before[0]:
        return before[1]
    return before[1] + (after[1] - before[1]) * min(max(at_ns - before[0], 0) / (after[0] - before[0]), 1.0)
