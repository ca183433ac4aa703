"""What is looked at while a load passes: the live display's figures, and the server's own counters."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from assay.load import bench_metrics as bm
from assay.load.fleet import Fleet
from assay.load.metrics import NS
from assay.load.server import Counters, Server
from assay.ports_bench import BenchProgress, Live
from assay.records.bench import BenchSpec

TICK_S = 0.5
BEAT_NS = 200_000_000
"""The newest arrivals are told with the next beat."""
TAIL_S = 1.0
"""The live display's rates are over this time."""


class Watch:
    """Looks at fleet and server while the load passes: the live display, and the server's own counters."""

    def __init__(self, spec: BenchSpec, fleet: Fleet, server: Server, progress: BenchProgress) -> None:
        self._spec, self._fleet, self._server, self._progress = spec, fleet, server, progress
        self._next_s = 0.0
        self._ttft: deque[int] = deque(maxlen=256)
        self._gaps: deque[int] = deque(maxlen=256)
        self._completed: deque[tuple[float, int]] = deque(maxlen=8)
        self._measuring_since_ns: int | None = None
        self.counters: list[tuple[int, int, Counters]] = []
        """(before, after, counters): the server's counters somewhere between two instants."""
        self._mute = False

    def tick(self, phase: str, began_ns: int) -> None:
        """Called every 100 ms."""
        now = self._fleet.now()
        self._ttft.extend(now.ttft_ns)
        self._gaps.extend(now.gap_ns)
        at_ns = time.monotonic_ns()
        if phase == "measuring" and self._measuring_since_ns is None:
            self._measuring_since_ns = at_ns
        if at_ns / NS < self._next_s:
            return
        self._next_s = at_ns / NS + TICK_S
        if phase == "measuring":
            self._ask()
        self._completed.append((at_ns / NS, now.completed))
        (first_s, first), (last_s, last) = self._completed[0], self._completed[-1]
        tail_ns = round(TAIL_S * NS)
        self._progress.tick(
            Live(
                at_s=(at_ns - began_ns) / NS,
                phase="warming up" if phase == "warming up" else "draining" if phase == "draining" else "measuring",
                output_tokens_per_s=self._fleet.arrived(at_ns - tail_ns - BEAT_NS, at_ns - BEAT_NS) / TAIL_S,
                requests_per_s=(last - first) / (last_s - first_s) if last_s > first_s else 0.0,
                in_flight=now.in_flight,
                wanted_in_flight=self._spec.arrival.concurrency if self._spec.arrival.kind == "closed" else None,
                completed=now.completed,
                failed=now.failed,
                ttft_p50_s=_median_s(self._ttft),
                itl_p50_s=_median_s(self._gaps),
                client_busiest_share=now.busiest_share,
                client_lag_s=now.lag_ns / NS,
                left_s=self._left_s(at_ns),
            )
        )

    def _ask(self) -> None:
        if self._mute:
            return
        before_ns = time.monotonic_ns()
        found = self._server.counters()
        self._mute = found is None
        if found is not None:
            self.counters.append((before_ns, time.monotonic_ns(), found))

    def _left_s(self, at_ns: int) -> float | None:
        if self._measuring_since_ns is None:
            return None
        return max(self._spec.window_s * self._spec.windows - (at_ns - self._measuring_since_ns) / NS, 0.0)


def _median_s(nanoseconds: Sequence[int]) -> float | None:
    median = bm.quantile(nanoseconds, 0.5)
    return None if median is None else median / NS
