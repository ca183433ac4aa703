"""The points of a sweep as the terminal and the page show them."""

from __future__ import annotations

from dataclasses import dataclass

from assay.records.bench import BenchResult, SweepResult


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One load; medians, unless the name says otherwise."""

    name: str
    """Its concurrency or its rate."""
    valid: bool
    is_knee: bool
    tokens_per_s: float | None
    """Output tokens per second of all users together."""
    user_tokens_per_s: float | None
    """What one user sees while tokens stream: 1 / TPOT p50."""
    ttft_s: float | None
    tpot_s: float | None
    e2e_s: float | None
    e2e_p99_s: float | None

    @property
    def drawable(self) -> bool:
        """Whether it has a place in the curves: valid, and with both coordinates."""
        return self.valid and self.tokens_per_s is not None and self.user_tokens_per_s is not None


def sweep_points(sweep: SweepResult) -> list[SweepPoint]:
    """Every point in order."""
    return [_point(result, is_knee=index == sweep.knee) for index, result in enumerate(sweep.points)]


def point_name(result: BenchResult) -> str:
    """The load of one point: "16", or "4.5/s"."""
    arrival = result.spec.arrival
    return str(arrival.concurrency) if arrival.rate_per_s is None else f"{arrival.rate_per_s:g}/s"


def _point(result: BenchResult, *, is_knee: bool) -> SweepPoint:
    measures = result.measures
    tpot_s = measures.tpot.quantiles.p50_s if measures else None
    return SweepPoint(
        name=point_name(result),
        valid=result.valid,
        is_knee=is_knee,
        tokens_per_s=measures.output_tokens_per_s if measures else None,
        user_tokens_per_s=1 / tpot_s if tpot_s else None,
        ttft_s=measures.ttft.quantiles.p50_s if measures else None,
        tpot_s=tpot_s,
        e2e_s=measures.e2e.quantiles.p50_s if measures else None,
        e2e_p99_s=measures.e2e.quantiles.p99_s if measures else None,
    )
