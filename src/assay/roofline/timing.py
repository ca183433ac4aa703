"""From work to time: floors from what cannot be passed, expected times from what kernels reach."""

from __future__ import annotations

import math
from collections.abc import Iterable

from assay.records.device import Basis, Box
from assay.records.estimate import Bound, OpTime, Range
from assay.roofline import communication, efficiency
from assay.roofline.ceilings import Ceilings, Rate
from assay.roofline.efficiency import Kind
from assay.roofline.work import Work

_BASES: tuple[Basis, ...] = ("measured", "elsewhere", "spec", "assumed")
Speed = int
_FAST, _USUAL, _SLOW = 0, 1, 2


def kernel(work: Work, ceilings: Ceilings, resident: float) -> OpTime:
    """Time of an operation on the device.

    floor = max(operations / peak rate, unavoidable bytes / peak bandwidth). Expected = the larger of operations and
    bytes over what kernels reach of either, plus start and ramp of every call.

    Args:
        work: what is to be done.
        ceilings: the device.
        resident: part of the step's bytes that the last-level cache could keep from the step before.
    """
    rate = ceilings.flop.get(work.compute) if work.compute else None
    math_s, memory_s, fixed_s = (
        [part(work, ceilings, rate, speed) for speed in (_FAST, _USUAL, _SLOW)]
        for part in (_math_s, _memory_s, _fixed_s)
    )
    floor = 0.0 if work.avoidable else _floor_s(work, ceilings, rate, resident)
    times = [max(m, b) + f for m, b, f in zip(math_s, memory_s, fixed_s, strict=True)]
    kind: Bound = "compute" if math_s[_USUAL] > memory_s[_USUAL] else "memory"
    if fixed_s[_USUAL] > max(math_s[_USUAL], memory_s[_USUAL]):
        kind = "launch"
    bases: list[Basis] = [ceilings.read.basis] if work.bytes else []
    return OpTime(
        name=work.name,
        part=work.part,
        calls=work.calls,
        flops=work.flops,
        read_bytes=work.bytes,
        compute=ceilings.runs_as.get(work.compute) if work.compute else None,
        floor_s=floor,
        time_s=_range(floor, times),
        bound=kind,
        basis=_worst_last([*bases, *([rate.basis] if rate else [])]),
    )


def message(work: Work, box: Box, algorithms: Iterable[str]) -> OpTime:
    """Time of a collective: the link's floor, and the expected curve."""
    assert work.collective is not None
    each, basis = communication.collective_s(
        box, work.collective, work.world, work.message_bytes, algorithms=algorithms
    )
    floor = 0.0
    if not work.avoidable:
        floor = work.calls * communication.wire_floor_s(box, work.collective, work.world, work.message_bytes)
    return OpTime(
        name=work.name,
        part=work.part,
        calls=work.calls,
        flops=0.0,
        read_bytes=work.bytes,
        collective=work.collective,
        message_bytes=work.message_bytes,
        floor_s=floor,
        time_s=_range(floor, [work.calls * each.low, work.calls * each.mid, work.calls * each.high]),
        bound="communication",
        basis=[basis],
    )


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
            "time_s": add(one.time_s, other.time_s),
            "bound": larger.bound,
            "basis": _worst_last([*one.basis, *other.basis]),
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


def _math_s(work: Work, ceilings: Ceilings, rate: Rate | None, speed: Speed) -> float:
    if rate is None or not work.flops:
        return 0.0
    reached = _fast_first(rate.reached)[speed] * _fast_first(ceilings.profile.compute_share[work.kind])[speed]
    return work.flops * _padding(work.rows_per_expert, speed) / reached


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


def _memory_s(work: Work, ceilings: Ceilings, _: Rate | None, speed: Speed) -> float:
    if not work.bytes:
        return 0.0
    reached = _reached_read(work, ceilings)
    return work.bytes / (_fast_first(reached)[speed] * _read_share(work.kind, ceilings, speed))


def _reached_read(work: Work, ceilings: Ceilings) -> Range:
    """Passes over activations run out of the last-level cache while they fit there."""
    fits = work.kind in ("elementwise", "sampling") and work.bytes / work.calls <= ceilings.cache_bytes / 2
    return ceilings.cache_read if fits else ceilings.read.reached


def _read_share(kind: Kind, ceilings: Ceilings, speed: Speed) -> float:
    return _fast_first(ceilings.profile.read_share[kind])[speed]


def _fixed_s(work: Work, ceilings: Ceilings, _: Rate | None, speed: Speed) -> float:
    launch, ramp = ceilings.launch_s, ceilings.profile.ramp_s
    return work.calls * (_slow_last(launch)[speed] + _slow_last(ramp)[speed])


def _fast_first(rates: Range) -> tuple[float, float, float]:
    return rates.high, rates.mid, rates.low


def _slow_last(times: Range) -> tuple[float, float, float]:
    return times.low, times.mid, times.high


def _range(floor: float, times: list[float]) -> Range:
    low, mid, high = (max(floor, time) for time in times)
    return Range(low=low, mid=mid, high=high)


def _worst_last(bases: Iterable[Basis]) -> list[Basis]:
    found = set(bases)
    return [basis for basis in _BASES if basis in found]
