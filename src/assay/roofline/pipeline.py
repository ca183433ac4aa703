"""What pipeline stages wait for: unequal stages, and filling and draining.

A micro-batch passes all stages one after the other in T; the slowest stage takes S of it. Model:

- decode: m micro-batches go round; each comes back after max(T, m * S). With equal stages and m = pp that is T.
- prefill: the first micro-batch takes T from an empty pipeline, each further one follows S later: T + (m - 1) * S.

Counted: layers that do not divide by the stages, and the head with sampling, which the last stage has besides. Ignored:
stages that an engine balances by hand, and prompts cut finer than the engine's usual chunk. Source: own derivation;
with equal stages the idle part of prefill is (pp - 1) / (m + pp - 1) (GPipe, arXiv 1811.06965, section 2.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.records.estimate import Layout, OperatingPoint, OpTime, Range
from assay.records.model_shape import ModelShape
from assay.roofline import timing

LAST_STAGE = frozenset({"head", "sampling", "all_gather.logits"})
"""Parts, or operations, that only the last stage has."""


def micro_batches(layout: Layout, point: OperatingPoint) -> int:
    """How many micro-batches the sequences of an attention rank make: one for each stage while there are enough."""
    group = math.ceil(point.sequences / layout.dp)
    return math.ceil(group / math.ceil(group / layout.pp))


def is_last(name: str, part: str) -> bool:
    """Whether only the last stage does it."""
    return part in LAST_STAGE or name in LAST_STAGE


def slowest_s(shape: ModelShape, layout: Layout, whole_s: float, last_s: float) -> float:
    """S: what the slowest stage takes of a micro-batch.

    Args:
        shape: its layers are spread over the stages.
        layout: with its stages.
        whole_s: T, all stages together.
        last_s: what only the last stage does.
    """
    layer = (whole_s - last_s) / shape.num_layers
    fewest, left = divmod(shape.num_layers, layout.pp)
    last = fewest * layer + last_s
    return max(last, (fewest + 1) * layer) if left else last


def wait_s(shape: ModelShape, layout: Layout, point: OperatingPoint, whole_s: float, last_s: float) -> float:
    """What a step takes beyond one micro-batch's way through all stages; arguments as of `slowest_s`."""
    if layout.pp == 1:
        return 0.0
    slowest, number = slowest_s(shape, layout, whole_s, last_s), micro_batches(layout, point)
    return max(0.0, number * slowest - whole_s) if point.phase == "decode" else (number - 1) * slowest


def wait(shape: ModelShape, layout: Layout, point: OperatingPoint, ops: Sequence[OpTime]) -> OpTime | None:
    """That as an operation of the step; None without a pipeline.

    No floor: an engine could cut finer and balance better.
    """
    if layout.pp == 1 or not ops:
        return None
    whole = timing.add(*(op.time_s for op in ops))
    last = timing.add(*(op.time_s for op in ops if is_last(op.name, op.part)))
    low, mid, high = (
        wait_s(shape, layout, point, getattr(whole, end), getattr(last, end)) for end in ("low", "mid", "high")
    )
    largest = max(ops, key=lambda op: op.time_s.mid)
    return OpTime(
        name="pipeline.wait",
        part="pipeline",
        calls=0,
        flops=0.0,
        read_bytes=0.0,
        floor_s=0.0,
        time_s=Range(low=min(low, mid), mid=mid, high=max(mid, high)),
        bound=largest.bound,
        basis=timing.worst_last(basis for op in ops for basis in op.basis),
    )
