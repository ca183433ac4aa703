"""How long a step takes, without its operations: for a search, which asks it hundreds of times.

The same works, costs and sums as `assay.roofline.step.estimate`; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.records.device import Box
from assay.records.estimate import Bound, Host, Layout, OperatingPoint, Range, Routing, StepEstimate
from assay.records.model_shape import ModelShape
from assay.roofline import host as hosts
from assay.roofline import pipeline, step, timing
from assay.roofline.ceilings import Ceilings
from assay.roofline.communication import DEFAULT_ALGORITHMS


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """What a search needs of a step."""

    time_s: Range
    """With what the host takes and stages wait."""
    bound: Bound
    slowest_share: float
    """The slowest pipeline stage's part of a micro-batch's way through all; 1 without a pipeline."""


def step_time(
    shape: ModelShape,
    box: Box,
    limits: Ceilings,
    layout: Layout,
    point: OperatingPoint,
    *,
    routing: Routing,
    cache_bytes_per_element: float = 2.0,
    algorithms: Iterable[str] = DEFAULT_ALGORITHMS,
    host: Host | None = None,
) -> StepTime:
    """Expected time of one step, without calibration.

    Args:
        shape: as of `step.estimate`, and so are the others.
        box: the devices.
        limits: `ceilings.of` its device.
        layout: how the model is spread.
        point: what is computed.
        routing: how tokens spread over experts.
        cache_bytes_per_element: 2 for a BF16 cache, 1 for FP8.
        algorithms: communication algorithms in use.
        host: how the engine schedules and launches.
    """
    host = host or hosts.UNKNOWN
    works = list(step.works_of(shape, box, layout, point, routing, cache_bytes_per_element, limits.cache_bytes, host))
    resident = step.resident_share(works, layout, limits)
    whole, last = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    bounds: dict[Bound, float] = {}
    for work in works:
        cost = (
            timing.message_cost(work, box, algorithms)[0]
            if work.collective
            else timing.kernel_cost(work, limits, resident)
        )
        bounds[cost.bound] = bounds.get(cost.bound, 0.0) + cost.mid_s
        for index, seconds in enumerate((cost.low_s, cost.mid_s, cost.high_s)):
            whole[index] += seconds
            if pipeline.is_last(work.name, work.part):
                last[index] += seconds
    waits = [pipeline.wait_s(shape, layout, point, *pair) for pair in zip(whole, last, strict=True)]
    kernels = Range(low=whole[0] + min(waits[:2]), mid=whole[1] + waits[1], high=whole[2] + max(waits[1:]))
    share, calls = step.share_of(layout, point), sum(work.calls for work in works)
    captured = hosts.is_captured(host, share.tokens, with_prompts=point.phase == "prefill")
    took = hosts.step_s(kernels, hosts.time_of(limits, host, share.sequences, calls, captured=captured), host)
    bounds["launch"] = bounds.get("launch", 0.0) + took.mid - kernels.mid
    return StepTime(
        time_s=took,
        bound=max(bounds, key=lambda bound: bounds[bound]),
        slowest_share=pipeline.slowest_s(shape, layout, whole[1], last[1]) / whole[1] if layout.pp > 1 else 1.0,
    )


def of_estimate(shape: ModelShape, layout: Layout, estimate: StepEstimate) -> StepTime:
    """The same of an estimate that is there."""
    ops = [op for op in estimate.ops if op.part != "pipeline"]
    whole = sum(op.time_s.mid for op in ops)
    last = sum(op.time_s.mid for op in ops if pipeline.is_last(op.name, op.part))
    share = pipeline.slowest_s(shape, layout, whole, last) / whole if layout.pp > 1 else 1.0
    return StepTime(time_s=estimate.time_s, bound=estimate.bound, slowest_share=share)
