"""One step of a model on a box: what each rank does, how long it takes at best, and how long it is expected to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from assay.records.device import Box
from assay.records.estimate import Host, HostTime, Layout, OperatingPoint, OpTime, Range, Routing, StepEstimate
from assay.records.model_shape import LayerGroup, ModelShape
from assay.roofline import attention, ceilings, collectives, experts, glue, matmuls, pipeline, timing
from assay.roofline import calibration as calibrations
from assay.roofline import host as hosts
from assay.roofline.calibration import Calibration
from assay.roofline.ceilings import Ceilings
from assay.roofline.communication import DEFAULT_ALGORITHMS
from assay.roofline.work import Share, Work


def estimate(
    shape: ModelShape,
    box: Box,
    layout: Layout,
    point: OperatingPoint,
    *,
    routing: Routing | None = None,
    cache_bytes_per_element: float = 2.0,
    calibration: Calibration | None = None,
    algorithms: Iterable[str] = DEFAULT_ALGORITHMS,
    host: Host | None = None,
) -> StepEstimate:
    """Floors and expected times of one step.

    The floor of the step is the sum of its operations' floors: within one batch each operation needs the result of the
    one before. Only work of two batches at once, or communication hidden behind it, could be faster; and, in a model
    with experts, tokens that touch fewer of them than `experts.fewest_distinct` says. Ranges of operations are added as
    if all kernels were fast or slow together.

    Args:
        shape: the model.
        box: the devices.
        layout: how the model is spread; not checked (`layouts.check` does).
        point: what is computed.
        routing: how tokens spread over experts; uniform by default.
        cache_bytes_per_element: 2 for a BF16 cache, 1 for FP8.
        calibration: factors that a few measurements gave.
        algorithms: communication algorithms in use (`LinkCurve.algorithm`).
        host: how the engine schedules and launches; None: as engines of today do by default.

    Raises:
        UsageError: the device lacks a fact without which nothing can be said.
    """
    routing = routing or Routing()
    limits = ceilings.of(box.device)
    share, host = share_of(layout, point), host or hosts.UNKNOWN
    works = list(works_of(shape, box, layout, point, routing, cache_bytes_per_element, limits.cache_bytes, host))
    resident = resident_share(works, layout, limits)

    def timed(each: Iterable[Work]) -> list[OpTime]:
        return timing.merge(
            timing.message(work, box, algorithms) if work.collective else timing.kernel(work, limits, resident)
            for work in each
        )

    ops = timed(works)
    if layout.pp > 1:
        if point.phase == "prefill":
            cut = works_of(
                shape, box, layout, point, routing, cache_bytes_per_element, limits.cache_bytes, host,
                finest_share(layout, point),
            )  # fmt: skip
            ops = _with_floors(ops, timed(cut))
        waiting = pipeline.wait(shape, layout, point, ops)
        ops = sorted([*ops, *([waiting] if waiting else [])], key=lambda op: -op.time_s.mid)
    found = summed(shape, layout, point, routing, ops, host, host_time(limits, host, share, point, ops))
    notes = _notes(shape, box, layout, point, limits, resident)
    told = found.model_copy(update={"notes": [*notes, *shape.assumed]})
    return told if calibration is None else calibrations.apply(told, calibration)


def resident_share(works: Iterable[Work], layout: Layout, limits: Ceilings) -> float:
    """Part of what a step must read that the last-level cache could keep from the step before."""
    touched = sum(work.floor_bytes for work in works if not work.avoidable) / layout.pp
    return min(1.0, limits.cache_bytes / touched) if touched else 0.0


def host_time(limits: Ceilings, host: Host, share: Share, point: OperatingPoint, ops: list[OpTime]) -> HostTime:
    """What the host does in the step."""
    captured = hosts.is_captured(host, share.tokens, with_prompts=point.phase == "prefill")
    return hosts.time_of(limits, host, share.sequences, hosts.calls(ops), captured=captured)


def share_of(layout: Layout, point: OperatingPoint) -> Share:
    """What one attention rank of a pipeline stage computes at a time.

    Pipeline stages work on different micro-batches of whole sequences, so that a step over all layers takes a
    micro-batch of 1/pp of them; what stages wait for each other is `pipeline.wait`.
    """
    return _share(layout, point, math.ceil(math.ceil(point.sequences / layout.dp) / layout.pp))


def finest_share(layout: Layout, point: OperatingPoint) -> Share:
    """The same if prompts were cut so finely that no stage ever waits: what the floor of a prefill takes."""
    return _share(layout, point, math.ceil(point.sequences / layout.dp) / layout.pp)


def _share(layout: Layout, point: OperatingPoint, per_stage: float) -> Share:
    return Share(
        sequences=per_stage,
        new_tokens=point.new_tokens,
        context_tokens=point.context_tokens,
        all_sequences=min(per_stage * layout.dp, max(per_stage, point.sequences / layout.pp)),
    )


def works_of(
    shape: ModelShape,
    box: Box,
    layout: Layout,
    point: OperatingPoint,
    routing: Routing,
    cache_bytes_per_element: float,
    last_level_cache_bytes: float,
    host: Host,
    share: Share | None = None,
) -> Iterator[Work]:
    """Everything that the busiest rank of each stage does, all stages after each other."""
    share = share or share_of(layout, point)
    yield from matmuls.outer(shape, layout, share, point.phase, last_level_cache_bytes)
    yield from glue.of_step(shape, share, point.phase, host)
    yield from collectives.of_step(shape, layout, share, point.phase)
    for group in shape.layers:
        for work in _layer(
            shape, box, group, layout, share, point, routing, cache_bytes_per_element, last_level_cache_bytes, host
        ):
            yield work.times(group.count)


def _layer(
    shape: ModelShape,
    box: Box,
    group: LayerGroup,
    layout: Layout,
    share: Share,
    point: OperatingPoint,
    routing: Routing,
    element_bytes: float,
    cache_bytes: float,
    host: Host,
) -> Iterator[Work]:
    mixer = group.attention
    yield from matmuls.of_layer(group.matrices, mixer, layout, share, cache_bytes)
    yield from matmuls.routed_experts(shape, group.matrices, layout, share, routing, cache_bytes)
    if mixer is not None:
        yield from attention.core(mixer, group.matrices, layout, share, point.phase, element_bytes)
    yield from glue.of_layer(shape, group.matrices, mixer, layout, share, host)
    yield from collectives.of_layer(shape, box, group.matrices, mixes=mixer is not None, layout=layout, share=share)


def summed(
    shape: ModelShape,
    layout: Layout,
    point: OperatingPoint,
    routing: Routing,
    ops: list[OpTime],
    host: Host,
    host_time: HostTime,
    *,
    all_tokens: float | None = None,
) -> StepEstimate:
    """The step of these operations; `all_tokens` go through the experts, by default those of the point."""
    kernels = hosts.kernels_s(ops)
    time, overhead = hosts.step_s(kernels, host_time, host), hosts.overhead_s(kernels, host_time, host)
    floor = sum(op.floor_s for op in ops)
    tokens = share_of(layout, point).all_tokens if all_tokens is None else all_tokens
    distinct = pairs_each = None
    if shape.is_moe:
        distinct = experts.expected_distinct(shape.num_experts, shape.top_k, tokens, routing)
        pairs_each = tokens * shape.top_k / distinct
    return StepEstimate(
        point=point,
        layout=layout,
        routing=routing,
        ops=ops,
        floor_s=floor,
        time_s=time,
        overhead_s=overhead,
        sequences_s=hosts.sequences_s(host_time, host),
        host=host,
        host_time=host_time,
        tokens_per_s=Range(low=point.tokens / time.high, mid=point.tokens / time.mid, high=point.tokens / time.low),
        ceiling_tokens_per_s=point.tokens / floor if floor > 0 else math.inf,
        bound=timing.largest_bound(ops, overhead.mid),
        experts_hit=distinct,
        tokens_per_expert=pairs_each,
    )


def _notes(
    shape: ModelShape, box: Box, layout: Layout, point: OperatingPoint, limits: Ceilings, resident: float
) -> list[str]:
    notes = []
    lacking = sorted({m.storage.compute for _, m in shape.matrices() if limits.lacks(m.storage.compute)})
    for compute in lacking:
        used = limits.runs_as.get(compute)
        notes.append(
            f"{box.device.name} has no {compute} rate: such weights are read as stored and multiplied in {used}."
        )
    if resident > 0.05:  # noqa: PLR2004 - below that it changes no figure anybody reads
        notes.append(f"The last-level cache could keep {resident:.0%} of what a step reads: floors leave that out.")
    if shape.is_moe and point.tokens > 1:
        notes.append(
            "Floors and the ceiling allow for routing as skewed as Zipf with exponent "
            f"{experts.MOST_SKEWED.exponent:g}: prompts that resemble each other can touch fewer experts and be faster."
        )
    if layout.pp > 1:
        notes.append(
            f"The stages have {pipeline.micro_batches(layout, point)} micro-batches; `pipeline.wait` is filling and "
            "draining in prefill, and waiting for the slowest stage in decode; engines that cut prompts finer wait "
            "less."
        )
    if layout.ep > 1 and not collectives.uses_all_to_all(box, layout):
        notes.append("No fabric of NVLink's class: experts get tokens by gathering and sums, not by all-to-all.")
    return notes


def _with_floors(ops: list[OpTime], lower: Iterable[OpTime]) -> list[OpTime]:
    """The operations with the floors of others by the same names."""
    floors = {op.name: op for op in lower}
    return [
        op.model_copy(update={"floor_s": floors[op.name].floor_s, "floor_bytes": floors[op.name].floor_bytes})
        for op in ops
    ]
