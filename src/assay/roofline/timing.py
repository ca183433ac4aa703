"""From work to time: floors from what cannot be passed, expected times from what kernels reach."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from assay.records.device import Basis, Box
from assay.records.estimate import Bound, OpTime, Range
from assay.roofline import communication, efficiency
from assay.roofline.ceilings import Ceilings, Rate
from assay.roofline.work import Work

_BASES: tuple[Basis, ...] = ("measured", "elsewhere", "spec", "assumed")
Speed = int
_FAST, _USUAL, _SLOW = 0, 1, 2
Speeds = tuple[float, float, float]
_NO_TIME: Speeds = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one kind of operation: floor, and fast, usual and slow kernels, none below the floor."""

    floor_s: float
    low_s: float
    mid_s: float
    high_s: float
    bound: Bound


def kernel_cost(work: Work, ceilings: Ceilings, resident: float) -> Cost:
    """Seconds of an operation on the device.

    floor = max(operations / peak rate, unavoidable bytes / peak bandwidth). Expected = the larger of operations and
    bytes over what kernels reach of either, plus start and ramp of every call.

    Args:
        work: what is to be done.
        ceilings: the device.
        resident: part of the step's bytes that the last-level cache could keep from the step before.
    """
    rate = ceilings.flop.get(work.compute) if work.compute else None
    floor = 0.0 if work.avoidable else _floor_s(work, ceilings, rate, resident)
    math_s, memory_s, fixed_s = _math_s(work, ceilings, rate), _memory_s(work, ceilings), _fixed_s(work, ceilings)
    low, mid, high = (max(floor, max(m, b) + f) for m, b, f in zip(math_s, memory_s, fixed_s, strict=True))
    kind: Bound = "compute" if math_s[_USUAL] > memory_s[_USUAL] else "memory"
    if fixed_s[_USUAL] > max(math_s[_USUAL], memory_s[_USUAL]):
        kind = "launch"
    return Cost(floor, low, mid, high, kind)


def message_cost(work: Work, box: Box, algorithms: Iterable[str]) -> tuple[Cost, Basis]:
    """Seconds of a collective: the link's floor, and the expected curve with what it rests on."""
    assert work.collective is not None
    each, basis = communication.collective_s(
        box, work.collective, work.world, work.message_bytes, algorithms=algorithms
    )
    floor = 0.0
    if not work.avoidable:
        floor = work.calls * communication.wire_floor_s(box, work.collective, work.world, work.message_bytes)
    low, mid, high = (max(floor, work.calls * one) for one in (each.low, each.mid, each.high))
    return Cost(floor, low, mid, high, "communication"), basis


def kernel(work: Work, ceilings: Ceilings, resident: float) -> OpTime:
    """An operation on the device, as a record; arguments as of `kernel_cost`."""
    cost = kernel_cost(work, ceilings, resident)
    rate = ceilings.flop.get(work.compute) if work.compute else None
    return OpTime(
        name=work.name,
        part=work.part,
        calls=work.calls,
        flops=work.flops,
        read_bytes=work.bytes,
        compute=ceilings.runs_as.get(work.compute) if work.compute else None,
        floor_s=cost.floor_s,
        floor_bytes=0.0 if work.avoidable else work.floor_bytes * (1 - resident),
        time_s=Range(low=cost.low_s, mid=cost.mid_s, high=cost.high_s),
        bound=cost.bound,
        basis=[_binding(cost.bound, work, ceilings, rate)],
    )


def message(work: Work, box: Box, algorithms: Iterable[str]) -> OpTime:
    """A collective, as a record; arguments as of `message_cost`."""
    cost, basis = message_cost(work, box, algorithms)
    return OpTime(
        name=work.name,
        part=work.part,
        calls=work.calls,
        flops=0.0,
        read_bytes=work.bytes,
        collective=work.collective,
        message_bytes=work.message_bytes,
        floor_s=cost.floor_s,
        time_s=Range(low=cost.low_s, mid=cost.mid_s, high=cost.high_s),
        bound="communication",
        basis=[basis],
    )


def _binding(kind: Bound, work: Work, ceilings: Ceilings, rate: Rate | None) -> Basis:
    """What the ceiling that binds rests on: the others change nothing."""
    if kind == "launch":
        return ceilings.launch_basis
    if kind == "compute":
        return rate.basis if rate else "assumed"
    return ceilings.cache_basis if _fits_cache(work, ceilings) else ceilings.read.basis


def merge(ops: Iterable[OpTime]) -> list[OpTime]:
    """Operations of one name, from different groups of layers, as one; longest first."""
    found: dict[str, OpTime] = {}
    for op in ops:
        known = found.get(op.name)
        found[op.name] = op if known is None else _added(known, op)
    return sorted(found.values(), key=lambda op: -op.time_s.mid)


def _added(one: OpTime, other: OpTime) -> OpTime:
    larger = one if one.time_s.mid >= other.time_s.mid else other
    return one.model_copy(
        update={
            "calls": one.calls + other.calls,
            "flops": one.flops + other.flops,
            "read_bytes": one.read_bytes + other.read_bytes,
            "floor_s": one.floor_s + other.floor_s,
            "floor_bytes": one.floor_bytes + other.floor_bytes,
            "time_s": add(one.time_s, other.time_s),
            "bound": larger.bound,
            "basis": worst_last([*one.basis, *other.basis]),
        }
    )


def add(*ranges: Range) -> Range:
    """The sum, as if all were slow or fast together: wider than independent errors would be."""
    return Range(
        low=sum(one.low for one in ranges), mid=sum(one.mid for one in ranges), high=sum(one.high for one in ranges)
    )


def _floor_s(work: Work, ceilings: Ceilings, rate: Rate | None, resident: float) -> float:
    seconds = work.floor_bytes * (1 - resident) / ceilings.read.peak
    if ceilings.cache_read_peak:
        seconds += work.floor_bytes * resident / ceilings.cache_read_peak
    return max(seconds, work.floor_flops / rate.peak if rate else 0.0)


def _math_s(work: Work, ceilings: Ceilings, rate: Rate | None) -> Speeds:
    if rate is None or not work.flops:
        return _NO_TIME
    reached, shares = rate.reached, ceilings.profile.compute_share[work.kind]
    rows, flops = work.rows_per_expert, work.flops
    return (
        flops * _padding(rows, _FAST) / (reached.high * shares.high),
        flops * _padding(rows, _USUAL) / (reached.mid * shares.mid),
        flops * _padding(rows, _SLOW) / (reached.low * shares.low),
    )


def _padding(rows: float | None, speed: Speed) -> float:
    """Rows computed over rows wanted, when each expert's tokens are rounded up to a tile.

    Kernels choose the tile by the number of tokens: the smallest power of two that holds an expert's, between a least
    and a largest tile. With m tokens on average beyond that, about m/T + 1/2 tiles of T rows are used.
    """
    if rows is None:
        return 1.0
    least, most = efficiency.EXPERT_TILE_ROWS[speed]
    if rows < most:
        return float(max(least, 2.0 ** math.ceil(math.log2(rows)))) / rows
    return (rows + most / 2) / rows


def _memory_s(work: Work, ceilings: Ceilings) -> Speeds:
    """Passes over activations run out of the last-level cache while they fit there."""
    if not work.bytes:
        return _NO_TIME
    reached = ceilings.cache_read if _fits_cache(work, ceilings) else ceilings.read.reached
    shares = ceilings.profile.read_share[work.kind]
    return (
        work.bytes / (reached.high * shares.high),
        work.bytes / (reached.mid * shares.mid),
        work.bytes / (reached.low * shares.low),
    )


def _fits_cache(work: Work, ceilings: Ceilings) -> bool:
    return work.kind in ("elementwise", "sampling") and work.bytes / work.calls <= ceilings.cache_bytes / 2


def _fixed_s(work: Work, ceilings: Ceilings) -> Speeds:
    launch, ramp, calls = ceilings.launch_s, ceilings.profile.ramp_s, work.calls
    return calls * (launch.low + ramp.low), calls * (launch.mid + ramp.mid), calls * (launch.high + ramp.high)


def largest_bound(ops: Iterable[OpTime], overhead_s: float) -> Bound:
    """What bounds the largest part of a step's expected time; what the host takes counts as launches."""
    totals: dict[Bound, float] = {"launch": overhead_s}
    for op in ops:
        totals[op.bound] = totals.get(op.bound, 0.0) + op.time_s.mid
    return max(totals, key=lambda bound: totals[bound])


def worst_last(bases: Iterable[Basis]) -> list[Basis]:
    """Each once, the weakest last."""
    found = set(bases)
    return [basis for basis in _BASES if basis in found]
