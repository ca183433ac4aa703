"""How long a collective takes: measured points, alpha and beta outside of them, an assumed ring where nothing is known.

Bus bandwidth is used as nccl-tests define it: time = alpha + volume factor * message / bus bandwidth, with the message
that one rank contributes. Source of the factors: NVIDIA nccl-tests, doc/PERFORMANCE.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from assay.records.device import Basis, Box, Collective, LinkCurve
from assay.records.estimate import Range
from assay.roofline import efficiency

DEFAULT_ALGORITHMS: frozenset[str] = frozenset({"default", "nccl", "rccl"})
"""What an engine uses without being asked; every other algorithm has to be switched on."""


def volume_factor(collective: Collective, world: int) -> float:
    """Bytes on the busiest link over the bytes that one rank contributes, for a ring.

    all_reduce 2(w-1)/w; reduce_scatter and all_to_all (w-1)/w of a message that holds every rank's part; all_gather
    w-1 times the one part contributed; point_to_point 1.
    """
    share = (world - 1) / world
    factors = {
        "all_reduce": 2 * share,
        "reduce_scatter": share,
        "all_to_all": share,
        "all_gather": world - 1.0,
        "point_to_point": 1.0,
    }
    return factors[collective]


def collective_s(
    where: Box | Sequence[LinkCurve],
    collective: Collective,
    world: int,
    message_bytes: float,
    *,
    algorithms: Iterable[str] = DEFAULT_ALGORITHMS,
) -> tuple[Range, Basis]:
    """Expected time of one collective call in seconds, and what it rests on.

    Of the curves of the allowed algorithms whose `max_message_bytes` allows the message, the fastest counts: this is
    what makes an algorithm for small messages inert in a large batch. Without a curve for this collective and world,
    the bus bandwidth and latency of the nearest curve are taken (assumed), else a ring over `link_bytes_per_s`.

    Args:
        where: a box, or its curves alone.
        collective: which.
        world: ranks that take part; 1 costs nothing.
        message_bytes: what one rank contributes.
        algorithms: names of `LinkCurve.algorithm` in use.
    """
    if world <= 1 or message_bytes <= 0:
        return Range(low=0.0, mid=0.0, high=0.0), "spec"
    curves = list(where.curves if isinstance(where, Box) else where)
    allowed = frozenset(algorithms)
    times = [
        (curve_s(curve, message_bytes), curve.basis)
        for curve in curves
        if curve.collective == collective and curve.world == world and _acts(curve, allowed, message_bytes)
    ]
    if times:
        time, basis = min(times)
        return efficiency.CURVE_SPREADS[basis].scaled(time), basis
    near = _nearest([curve for curve in curves if _acts(curve, allowed, message_bytes)], collective, world)
    if near is not None:
        time = near.latency_s + volume_factor(collective, world) * message_bytes / near.bus_bytes_per_s
        return efficiency.CURVE_SPREADS["assumed"].scaled(time), "assumed"
    return _assumed_ring(where, collective, world, message_bytes), "assumed"


def curve_s(curve: LinkCurve, message_bytes: float) -> float:
    """Time of a message on one curve: log-log between its points, alpha and beta outside, never falling with size."""
    line = curve.latency_s + volume_factor(curve.collective, curve.world) * message_bytes / curve.bus_bytes_per_s
    points = curve.points
    if not points:
        return line
    if message_bytes <= points[0].message_bytes:
        return min(line, points[0].time_s)
    if message_bytes >= points[-1].message_bytes:
        return max(line, points[-1].time_s)
    right = bisect_left([point.message_bytes for point in points], message_bytes)
    before, after = points[right - 1], points[right]
    part = math.log(message_bytes / before.message_bytes) / math.log(after.message_bytes / before.message_bytes)
    return float(before.time_s * (after.time_s / before.time_s) ** part)


def wire_floor_s(box: Box, collective: Collective, world: int, message_bytes: float) -> float:
    """What the link's data sheet allows at best: no latency, and sums made inside the switch where it can.

    An NVLink switch of generation 4 and later adds up in transit, so that a rank sends and receives its message once
    (factor 1 instead of 2(w-1)/w). Without a known link: 0, because nothing can be said.
    """
    if world <= 1:
        return 0.0
    best = max((fact.value for fact in box.device.facts.get("link_bytes_per_s", [])), default=None)
    if best is None:
        return 0.0
    factor = volume_factor(collective, world)
    if collective == "all_reduce" and in_switch_sums(box):
        factor = min(factor, 1.0)
    measured = max((curve.bus_bytes_per_s for curve in box.curves if curve.collective == collective), default=0.0)
    return factor * message_bytes / max(best, measured)


def has_fabric(box: Box) -> bool:
    """Whether the devices have a link of NVLink's class, over which all-to-all back ends run."""
    return any(name in box.device.link.lower() for name in ("nvlink", "xgmi", "infinity fabric"))


def in_switch_sums(box: Box) -> bool:
    """Whether the link can add up in the switch (NVLink SHARP, since the fourth generation)."""
    return any(f"nvlink {generation}" in box.device.link.lower() for generation in (4, 5, 6))


def _acts(curve: LinkCurve, algorithms: frozenset[str], message_bytes: float) -> bool:
    small_enough = curve.max_message_bytes is None or message_bytes <= curve.max_message_bytes
    return curve.algorithm in algorithms and small_enough


def _nearest(curves: list[LinkCurve], collective: Collective, world: int) -> LinkCurve | None:
    """The curve to borrow from: of the same collective if possible, then of the nearest world."""
    return min(
        curves,
        key=lambda curve: (curve.collective != collective, abs(math.log(curve.world / world)), -curve.bus_bytes_per_s),
        default=None,
    )


def _assumed_ring(where: Box | Sequence[LinkCurve], collective: Collective, world: int, message_bytes: float) -> Range:
    fact = where.device.fact("link_bytes_per_s") if isinstance(where, Box) else None
    link = fact.value if fact else efficiency.UNKNOWN_LINK_BYTES_PER_S
    wire = volume_factor(collective, world) * message_bytes / link
    alpha, share = efficiency.COLLECTIVE_LATENCY_S, efficiency.LINK_SHARE
    return Range(
        low=alpha.low + wire / share.high, mid=alpha.mid + wire / share.mid, high=alpha.high + wire / share.low
    )
