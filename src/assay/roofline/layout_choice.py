"""Which layout when none is named, and which instead of an impossible one."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.records.device import Box
from assay.records.estimate import Layout, MemoryBudget
from assay.records.model_shape import ModelShape
from assay.roofline import layouts, memory, storages

MAX_TIMES = 64
"""Up to this many times as many devices are tried for a model that does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A layout, and why it is not simply TP over the whole box; empty when it is."""

    layout: Layout
    reason: str = ""


def default(shape: ModelShape, box: Box, *, memory_fraction: float, cache_bytes_per_element: float) -> Choice | None:
    """The whole box under TP; if impossible, with whole experts; else the largest TP, replicated or in stages.

    Of the possible ones the first into which the model fits; if it fits into none, the first. None when nothing is
    possible.
    """
    whole = Layout(tp=box.count)
    refused = layouts.check(shape, box, whole)
    if refused is None:
        return Choice(layout=whole)
    rests = [(tp, box.count // tp) for tp in range(box.count - 1, 0, -1) if box.count % tp == 0]
    spread = [Layout(tp=box.count, ep=box.count)] if shape.is_moe else []
    tried = spread + [layout for tp, rest in rests for layout in (Layout(tp=tp, dp=rest), Layout(tp=tp, pp=rest))]
    possible = [layout for layout in tried if layouts.check(shape, box, layout) is None]
    fits = [each for each in possible if _fits(shape, box, each, memory_fraction, cache_bytes_per_element)]
    chosen = next(iter(fits or possible), None)
    return None if chosen is None else Choice(layout=chosen, reason=f"{whole.name} is impossible: {refused}")


def nearest(shape: ModelShape, box: Box, asked: Layout) -> Layout | None:
    """The possible layout of this box that differs least from the one asked for; None when there is none.

    Expert parallelism that names no other ranks (`ep8`) means as many devices.
    """
    counts = range(1, box.count + 1)
    every = [each for count in counts for each in layouts.every(count, is_moe=shape.is_moe, max_stages=box.count)]
    possible = [each for each in every if layouts.check(shape, used(box, each), each) is None]
    return min(possible, key=lambda each: _distance(each, asked), default=None)


def used(box: Box, layout: Layout) -> Box:
    """The part of a box that a layout occupies."""
    curves = [curve for curve in box.curves if curve.world <= layout.devices]
    return box.model_copy(update={"count": layout.devices, "curves": curves})


def fitting(
    shape: ModelShape, box: Box, asked: Layout, *, memory_fraction: float, cache_bytes_per_element: float
) -> Layout | None:
    """The smallest TP, on as many of these devices as it takes, that the model fits into; None up to 64 times."""
    devices = asked.devices
    while devices < MAX_TIMES * asked.devices:
        devices *= 2
        for layout in (Layout(tp=devices), Layout(tp=asked.tp, pp=devices // asked.tp)):
            larger = box.model_copy(update={"count": devices})
            if layouts.check(shape, larger, layout) is None and _fits(
                shape, larger, layout, memory_fraction, cache_bytes_per_element
            ):
                return layout
    return None


def fitting_storages(
    shape: ModelShape, box: Box, layout: Layout, *, memory_fraction: float, cache_bytes_per_element: float
) -> list[str]:
    """Formats of fewer bits in which the model would fit under this layout, the most bits first."""
    found = []
    for storage in sorted(storages.STORAGES.values(), key=lambda each: -each.bits_per_weight):
        other = storages.stored_as(shape, storage)
        if storages.would_shrink(shape, storage) and layouts.check(other, box, layout) is None:
            found += [storage.name] if _fits(other, box, layout, memory_fraction, cache_bytes_per_element) else []
    return found


def missing_bytes(budget: MemoryBudget) -> float:
    """How much more each device would need to hold everything but the cache; 0 when it fits."""
    needed = budget.weight_bytes + budget.activation_bytes + budget.graph_bytes + budget.reserved_bytes
    return max(0.0, needed - budget.device_bytes)


def _fits(shape: ModelShape, box: Box, layout: Layout, fraction: float, cache_bytes: float) -> bool:
    return memory.budget(shape, box, layout, memory_fraction=fraction, cache_bytes_per_element=cache_bytes).fits


def _distance(one: Layout, other: Layout) -> tuple[int, float, int]:
    """Fewer devices is the greatest difference, then sizes by their ratio; of equals the larger TP."""
    sizes = ((one.tp, other.tp), (one.pp, other.pp), (one.dp, other.dp), (one.ep, other.ep))
    wanted = max(other.devices, other.ep)
    return (
        abs(wanted - one.devices),
        sum(abs(math.log2(a / b)) for a, b in sizes),
        -one.tp,
    )
