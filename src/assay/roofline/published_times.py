"""Times and rates of a published measurement: its steps added up, one after the other or with prompts riding along.

In a mixed step an operation moves its weights once for decode and prompts together and adds up their arithmetic
(`assay.roofline.mixed`). How many steps are mixed depends on how the prompts come; the floor supposes the best, that
every step of decode takes some along: it is the larger of the two where weights dominate, and their sum where
arithmetic does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from assay.records.device import Box
from assay.records.estimate import OperatingPoint, OpTime, Range, StepEstimate
from assay.records.published import HeldPoint, PublishedPoint, PublishedTable
from assay.roofline import calibration, timing
from assay.roofline.calibration import Components
from assay.roofline.published import Work, measured_rate

Estimate = Callable[[OperatingPoint], StepEstimate]
"""`assay.roofline.step.estimate` with model, box, layout and cache filled in."""
Mixed = Callable[[OperatingPoint, OperatingPoint], StepEstimate]
"""`assay.roofline.mixed.estimate` likewise: of a step of decode and of prompts in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """What a piece of work takes: steps added up, before they are turned into rates."""

    work: Work
    decode: list[tuple[StepEstimate, float]]
    prompts: list[tuple[StepEstimate, float]]
    riding: list[StepEstimate] = field(default_factory=list)
    """For each of the prompts' steps, the same in a step of decode: the middle one; empty where engines do not."""

    @property
    def ridden(self) -> tuple[StepEstimate, float]:
        """The step of decode that takes prompts along, and the share of the prompts' steps that find one."""
        steps, needed = (sum(weight for _, weight in some) for some in (self.decode, self.prompts))
        return self.decode[len(self.decode) // 2][0], min(1.0, steps / needed)


def times_of(work: Work, estimate: Estimate, mixed: Mixed | None = None) -> Times:
    """Estimate every step of the work; with `mixed`, prompts in the steps of decode as well."""
    points = [point for point, _ in work.decode]
    beside = points[len(points) // 2] if points else None
    return Times(
        work=work,
        decode=[(estimate(point), weight) for point, weight in work.decode],
        prompts=[(estimate(point), weight) for point, weight in work.prompts],
        riding=[mixed(beside, point) for point, _ in work.prompts] if mixed and beside else [],
    )


def held_point(table: PublishedTable, point: PublishedPoint, running: int, times: Times, box: Box) -> HeldPoint:
    """The published point beside the estimate."""
    tokens = times.work.tokens
    expected = expected_time_s(times, box)
    least = replace(times, prompts=[]) if table.quantity == "tpot" else times  # a request may meet no other's prompt
    return HeldPoint(
        table=table.id,
        point=point,
        running=running,
        measured=measured_rate(table, point, running),
        ceiling=tokens / floor_s(least, box, mixed=table.quantity == "served"),
        expected=Range(low=tokens / expected.high, mid=tokens / expected.mid, high=tokens / expected.low),
    )


def expected_time_s(times: Times, box: Box) -> Range:
    """Expected time of the work: steps one after the other, or with `riding` prompts in the steps of decode.

    The slow end has them apart all the same: a scheduler need not find room for them.
    """
    apart = apart_s(times)
    if not times.riding:
        return apart
    low = max(_riding_s(times, lambda time: time.low), floor_s(times, box, mixed=True))
    mid = _riding_s(times, lambda time: time.mid)
    return Range(low=low, mid=mid, high=max(mid, apart.high))


def apart_s(times: Times) -> Range:
    """Expected time where prompts have steps of their own."""
    return timing.add(*(step.time_s.scaled(weight) for step, weight in (*times.decode, *times.prompts)))


def components_of(times: Times) -> Components:
    """The expected time by what bounds it: what a calibration corrects."""
    parts = Components()
    for step, weight in times.decode:
        parts = parts.plus(calibration.components(step), weight)
    if not times.riding:
        for step, weight in times.prompts:
            parts = parts.plus(calibration.components(step), weight)
        return parts
    beside, share = times.ridden
    for (alone, weight), mixed in zip(times.prompts, times.riding, strict=True):
        parts = parts.plus(calibration.components(mixed), share * weight)
        parts = parts.plus(calibration.components(beside), -share * weight)
        parts = parts.plus(calibration.components(alone), (1 - share) * weight)
    return parts


def floor_s(times: Times, box: Box, *, mixed: bool) -> float:
    """No engine does the work faster; a closed loop may compute prompts in the steps of decode."""
    if mixed and times.decode and times.prompts:
        return _shared_s(times, box, lambda op: op.floor_s)
    return sum(weight * step.floor_s for step, weight in (*times.decode, *times.prompts))


def _riding_s(times: Times, part: Callable[[Range], float]) -> float:
    """Steps of decode, and what each of the prompts' steps adds to the one that takes it along."""
    beside, share = times.ridden
    total = sum(weight * part(step.time_s) for step, weight in times.decode)
    for (alone, weight), mixed in zip(times.prompts, times.riding, strict=True):
        added = part(mixed.time_s) - part(beside.time_s)
        total += weight * (share * added + (1 - share) * part(alone.time_s))
    return total


def _shared_s(times: Times, box: Box, time_of: Callable[[OpTime], float]) -> float:
    """Time at best: every operation moves its bytes once for both and adds up arithmetic and wire."""
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
