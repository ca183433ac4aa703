"""Times and rates of a published measurement: its steps added up, one after the other or with prompts riding along.

In a mixed step an operation moves its weights once for decode and prompts together and adds up their arithmetic; so a
closed loop's floor is the larger of the two where weights dominate, and their sum where arithmetic does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from assay.records.device import Box
from assay.records.estimate import OperatingPoint, OpTime, Range, StepEstimate
from assay.records.published import HeldPoint, PublishedPoint, PublishedTable
from assay.roofline import calibration
from assay.roofline.calibration import Components
from assay.roofline.published import Work, measured_rate

Estimate = Callable[[OperatingPoint], StepEstimate]
"""`assay.roofline.step.estimate` with model, box, layout and cache filled in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """What a piece of work takes: steps added up, before they are turned into rates."""

    work: Work
    decode: list[tuple[StepEstimate, float]]
    prompts: list[tuple[StepEstimate, float]]


def times_of(work: Work, estimate: Estimate) -> Times:
    """Estimate every step of the work."""
    return Times(
        work=work,
        decode=[(estimate(point), weight) for point, weight in work.decode],
        prompts=[(estimate(point), weight) for point, weight in work.prompts],
    )


def held_point(table: PublishedTable, point: PublishedPoint, running: int, times: Times, box: Box) -> HeldPoint:
    """The published point beside the estimate."""
    tokens = times.work.tokens
    expected = expected_time_s(times, box, mixed=table.mixed_steps)
    least = replace(times, prompts=[]) if table.quantity == "tpot" else times  # a request may meet no other's prompt
    return HeldPoint(
        table=table.id,
        point=point,
        running=running,
        measured=measured_rate(table, point, running),
        ceiling=tokens / floor_s(least, box, mixed=table.quantity == "served"),
        expected=Range(low=tokens / expected.high, mid=tokens / expected.mid, high=tokens / expected.low),
    )


def expected_time_s(times: Times, box: Box, *, mixed: bool) -> Range:
    """Expected time of the work: steps one after the other, or prompts in the steps of decode."""
    apart = [
        sum(weight * getattr(step.time_s, part) for step, weight in (*times.decode, *times.prompts))
        for part in ("low", "mid", "high")
    ]
    if not mixed or not times.decode or not times.prompts:
        return Range(low=apart[0], mid=apart[1], high=apart[2])
    low = _shared_s(times, box, lambda op: op.time_s.low) + _overhead_s(times, lambda time: time.low)
    mid = _shared_s(times, box, lambda op: op.time_s.mid) + _overhead_s(times, lambda time: time.mid)
    return Range(low=low, mid=mid, high=apart[2])


def components_of(times: Times, box: Box, *, mixed: bool) -> Components:
    """The expected time by what bounds it: what a calibration corrects."""
    parts = Components()
    for step, weight in (*times.decode, *times.prompts):
        parts = parts.plus(calibration.components(step), weight)
    if not mixed or not times.decode or not times.prompts:
        return parts
    saved = parts.time_s - expected_time_s(times, box, mixed=True).mid
    # What steps share is the reading of weights: taken off the memory's part.
    return parts.plus(Components(memory=-min(saved, parts.memory)))


def floor_s(times: Times, box: Box, *, mixed: bool) -> float:
    """No engine does the work faster; a closed loop may compute prompts in the steps of decode."""
    if mixed and times.decode and times.prompts:
        return _shared_s(times, box, lambda op: op.floor_s)
    return sum(weight * step.floor_s for step, weight in (*times.decode, *times.prompts))


def _overhead_s(times: Times, part: Callable[[Range], float]) -> float:
    """The host's part of the steps of decode, in which the prompts ride along."""
    return sum(weight * part(step.overhead_s) for step, weight in times.decode)


def _shared_s(times: Times, box: Box, time_of: Callable[[OpTime], float]) -> float:
    """Time when prompts ride along: an operation moves its bytes once for both and adds up arithmetic and wire."""
    decode, prompts = _by_op(times.decode, box, time_of), _by_op(times.prompts, box, time_of)
    total = 0.0
    for name in decode.keys() | prompts.keys():
        (whole_d, sum_d), (whole_p, sum_p) = decode.get(name, (0.0, 0.0)), prompts.get(name, (0.0, 0.0))
        total += max(whole_d, whole_p, sum_d + sum_p)
    return total


def _by_op(
    steps: list[tuple[StepEstimate, float]], box: Box, time_of: Callable[[OpTime], float]
) -> dict[str, tuple[float, float]]:
    """Of each operation its time over the work, and the part of it that cannot be shared."""
    found: dict[str, tuple[float, float]] = {}
    for step, weight in steps:
        for op in step.ops:
            time = weight * time_of(op)
            whole, own = found.get(op.name, (0.0, 0.0))
            found[op.name] = (whole + time, own + time * _own_share(op, box))
    return found


def _own_share(op: OpTime, box: Box) -> float:
    """How much of an operation's time is its own even beside another batch: arithmetic, or bytes on the wire."""
    if op.part in {"communication", "attention_core"} or op.floor_s <= 0:
        return 1.0
    rates = [fact.value for fact in box.device.facts.get(f"{op.compute}_flop_per_s", [])]
    return min(1.0, op.flops / max(rates) / op.floor_s) if rates else 0.0
