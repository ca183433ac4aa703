"""How late the event loop is: a stamp that is taken late is the client's error, so it has to be known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

PERIOD_S = 0.05


class Lag(NamedTuple):
    """How much later than asked the loop woke us, and when."""

    at_ns: int
    late_s: float


class LagWatch:
    """Notes the lag of the running loop every 50 ms, from its making until `stop`.

    A bare timer callback and not a task that sleeps: half the wake-ups, which are most of what an idle client costs.
    """

    def __init__(self) -> None:
        self.lags: list[Lag] = []
        self._loop = asyncio.get_running_loop()
        self._due_ns = 0
        self._timer: asyncio.TimerHandle | None = None
        self._wind()

    def stop(self) -> None:
        """Note nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _wind(self) -> None:
        self._due_ns = time.monotonic_ns() + round(PERIOD_S * 1e9)
        self._timer = self._loop.call_later(PERIOD_S, self._ring)

    def _ring(self) -> None:
        now_ns = time.monotonic_ns()
        self.lags.append(Lag(now_ns, max(now_ns - self._due_ns, 0) / 1e9))
        self._wind()


def worst_lag_s(lags: Sequence[Lag], start_ns: int, end_ns: int) -> float:
    """Longest lag of the wake-ups whose wait overlaps [start, end).

    With no wake-up at all in that time, the loop was stuck for all of it.
    """
    overlapping = [lag.late_s for lag in lags if lag.at_ns >= start_ns and lag.at_ns - lag.late_s * 1e9 < end_ns]
    return max(overlapping, default=(end_ns - start_ns) / 1e9)
