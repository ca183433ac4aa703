"""The seam between a load test and whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

LivePhase = Literal["warming up", "measuring", "draining"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A load test at one moment: what can be said without looking at every request.

    Rates and medians are of the last stretch, a second or so; what is not known (yet) is None.
    """

    at_s: float
    """Since the load began."""
    phase: LivePhase
    output_tokens_per_s: float
    requests_per_s: float
    in_flight: int
    wanted_in_flight: int | None
    """None: the arrival law has no fixed number of streams."""
    completed: int
    """Since the load began, like `failed`."""
    failed: int
    ttft_p50_s: float | None
    itl_p50_s: float | None
    client_busiest_share: float | None
    """CPU of the busiest load process, as a share of one core."""
    client_lag_s: float | None
    """The longest that any load process woke late."""
    left_s: float | None
    """Until the last window ends; None: not known, because the warm-up ends when the load is steady."""


class BenchProgress(Protocol):
    """Where a load test, a sweep or a comparison says what it is doing."""

    def phase(self, text: str, done_s: float, total_s: float | None) -> None:
        """A part of the work begins.

        Args:
            text: what is done now ("point 3 of 6: 16 streams", "A, run 2").
            done_s: seconds of the whole work that are behind.
            total_s: how long the whole will take by what is known now; None: not known.
        """

    def tick(self, live: Live) -> None:
        """The load a moment later; once or twice a second is enough."""

    def result(self, text: str, good: bool | None = None) -> None:
        """Something was concluded."""
