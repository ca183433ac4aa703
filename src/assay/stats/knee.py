"""The knee of a load sweep: the load beyond which latency grows faster than throughput."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MIN_POINTS = 3
MIN_FALL = 0.1
"""Share of its maximum that power must lose beyond it: less is within the scatter of single runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """Where the knee is, or why there is none."""

    index: int | None
    """Into the sequences as given; None: the sweep does not show one."""
    reason: str


def knee(throughputs: Sequence[float | None], latencies: Sequence[float | None]) -> Knee:
    """Find the point of the greatest power, throughput / latency.

    Up to it, each percent of latency buys more than a percent of throughput; beyond it, less. By Little's law the load
    is throughput x latency, so it is also the last point up to which throughput grew by at least half of what the load
    did (in logarithms). Unlike the distance to a chord (Kneedle, Satopaa et al. 2011) it does not move when a point is
    added at either end of the sweep, and it needs no smoothing and no scale.

    Source: Giessler, Haenle, Koenig, Pade 1978 ("power"); Kleinrock 1979, "Power and deterministic rules of thumb for
    probabilistic problems in computer communications": for M/M/1 the maximum lies where one customer is in the system,
    for a deterministic closed system where every server is just busy.

    Args:
        throughputs: in order of load; any unit. None: not measured, the point is passed over.
        latencies: of whole requests, in the same order; any unit.
    """
    powers = {
        index: throughput / latency
        for index, (throughput, latency) in enumerate(zip(throughputs, latencies, strict=True))
        if throughput is not None and latency is not None and latency > 0
    }
    if len(powers) < MIN_POINTS:
        return Knee(index=None, reason=f"{len(powers)} measured points; a knee takes {MIN_POINTS} or more")
    order = list(powers)
    best = max(order, key=powers.__getitem__)
    beyond = [index for index in order if index > best]
    if not beyond:
        return Knee(index=None, reason="throughput still grows faster than latency at the highest load; go higher")
    fall = 1 - min(powers[index] for index in beyond) / powers[best] if powers[best] else 0.0
    if fall < MIN_FALL:
        return Knee(index=None, reason="throughput and latency grow alike up to the highest load; go higher")
    if best == order[0]:
        return Knee(index=None, reason="latency grows faster than throughput from the lowest load on; go lower")
    return Knee(index=best, reason=_reason(throughputs, latencies, best, beyond[0]))


def _reason(throughputs: Sequence[float | None], latencies: Sequence[float | None], at: int, following: int) -> str:
    more_throughput, more_latency = _growth(throughputs, at, following), _growth(latencies, at, following)
    return (
        "throughput over latency is greatest here: to the next load throughput changes by "
        f"{more_throughput:+.0f}%, latency by {more_latency:+.0f}%"
    )


def _growth(values: Sequence[float | None], at: int, following: int) -> float:
    """Percent."""
    before, after = values[at], values[following]
    assert before is not None
    assert after is not None
    return 100 * (after / before - 1)
