"""What computes, for `characterize`: a box by its ceilings or the processors here, as functions of a point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.plan.target_step import Served
    from assay.records.attribution import Efficiency
    from assay.records.ceilings import Ceilings
    from assay.records.device import Box
    from assay.records.estimate import Host, Layout, MechanismCeiling, OperatingPoint, Range, Routing, StepEstimate
    from assay.records.model_shape import ModelShape

CPU_BATCHES, GPU_BATCHES = (1, 4, 16), (1, 8, 64, 256)
CPU_PROMPT, GPU_PROMPT = 128, 2048
CONTEXT = {"cpu": 256, "gpu": 2048}
MEMORY_FRACTION, CACHE_BYTES = 0.9, 2.0
"""Of a box: what engines use by default, and BF16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What computes, as functions: the roofline of a point, and how much of it a measured rate used there."""

    step: Callable[[OperatingPoint], StepEstimate]
    efficiency: Callable[[StepEstimate, float], Efficiency | None]
    mechanisms: Callable[[StepEstimate], list[MechanismCeiling]]
    """What would help at most; nothing where no catalogue of mechanisms fits (CPUs)."""
    batches: Sequence[int]
    prompt: int
    context_tokens: int
    starts_s: Range | None = None
    """From one kernel to the next in a replayed graph; None on CPUs."""
    mixed: Callable[[OperatingPoint, OperatingPoint], StepEstimate] | None = None
    """A step of decode with prompts in it; None on CPUs."""
    box: Box | None = None
    room: Callable[[int], int] | None = None
    """Sequences of so many tokens that the cache holds; None: not known."""
    random_weights: bool = False
    """Experts are chosen by random weights."""


def of_box(
    shape: ModelShape,
    box: Box,
    context_tokens: int | None,
    served: Served | None = None,
    routing: Routing | None = None,
    host: Host | None = None,
) -> Hardware:
    """A box known by its data sheets and published measurements.

    Args:
        shape: the model.
        box: the devices.
        context_tokens: of each sequence; None: the usual number.
        served: layout, cache, memory, scheduling; None: as `assay estimate` takes them where nothing is said.
        routing: how tokens choose experts; None: as the served weights do, else evenly.
        host: how the engine schedules where nothing else of it is known; that of `served` goes before it.

    Raises:
        UsageError: too little is known of the device, or the layout is impossible on it.
    """
    from assay.records.attribution import Efficiency
    from assay.roofline import ceilings, layout_choice, mechanisms, mixed, step, utilization

    fraction = served.memory_fraction if served else MEMORY_FRACTION
    element = served.cache_bytes_per_element if served else CACHE_BYTES
    layout = _layout(shape, box, served, fraction, element)
    used = layout_choice.used(box, layout)
    host = served.host if served else host
    is_random = routing is None and served is not None and served.routing is not None and shape.is_moe
    routing = routing or (served.routing if served else None)

    def at(point: OperatingPoint) -> StepEstimate:
        return step.estimate(
            shape, used, layout, point, cache_bytes_per_element=element, host=host, routing=routing
        )  # fmt: skip

    def with_prompts(decode: OperatingPoint, prompts: OperatingPoint) -> StepEstimate:
        return mixed.estimate(
            shape, used, layout, decode, prompts, cache_bytes_per_element=element, host=host, routing=routing
        )  # fmt: skip

    def efficiency(at_point: StepEstimate, tokens_per_s: float) -> Efficiency:
        return Efficiency(
            tokens_per_s=tokens_per_s,
            mbu=utilization.mbu(at_point, used, tokens_per_s),
            mfu=utilization.mfu(shape, used, tokens_per_s),
            ceiling_share=tokens_per_s / at_point.ceiling_tokens_per_s,
        )

    return Hardware(
        step=at,
        efficiency=efficiency,
        mechanisms=lambda at_point: mechanisms.ceilings(
            at_point, shape, used, layout, cache_bytes_per_element=element, memory_fraction=fraction
        ),
        batches=GPU_BATCHES,
        prompt=GPU_PROMPT,
        context_tokens=CONTEXT["gpu"] if context_tokens is None else context_tokens,
        starts_s=ceilings.of(used.device).launch_s,
        mixed=with_prompts,
        box=used,
        room=_room(shape, used, layout, fraction, element),
        random_weights=is_random,
    )


def _room(shape: ModelShape, box: Box, layout: Layout, fraction: float, element: float) -> Callable[[int], int] | None:
    """Sequences of so many tokens that the cache holds; None where memory is not known, or weights do not fit."""
    from assay.roofline import memory

    if box.device.fact("memory_bytes") is None:
        return None
    budget = memory.budget(shape, box, layout, memory_fraction=fraction, cache_bytes_per_element=element)
    return budget.sequences if budget.fits and budget.cache_bytes_per_token else None


def _layout(shape: ModelShape, box: Box, served: Served | None, fraction: float, element: float) -> Layout:
    """As served, else the default; the whole box where none is possible."""
    from assay.records.estimate import Layout
    from assay.roofline import layout_choice, layouts

    if served is not None:
        if refused := layouts.check(shape, box, served.layout):
            raise UsageError(
                f"the run was served as {served.layout.name}, which is impossible on {box.name}: {refused}",
                hint="name the box that it ran on: --on BOX",
            )
        return served.layout
    chosen = layout_choice.default(shape, box, memory_fraction=fraction, cache_bytes_per_element=element)
    return chosen.layout if chosen else Layout(tp=box.count)


def of_cpu(shape: ModelShape, ceilings: Ceilings | None, threads: int, context_tokens: int | None) -> Hardware:
    """The processors of this machine, by measured ceilings.

    Raises:
        UsageError: a ceiling that is needed could not be measured.
    """
    from assay.roofline import attribution, cpu

    assert ceilings is not None

    def at(point: OperatingPoint) -> StepEstimate:
        return cpu.estimate(shape, ceilings, threads, point)

    def efficiency(at_point: StepEstimate, tokens_per_s: float) -> Efficiency | None:
        return attribution.efficiency(at_point, tokens_per_s, peak_bytes_per_s=max(reads), peak_flop_per_s=max(rates))

    reads = [one.best for one in ceilings.measurements if one.name == "memory_read" and one.usable]
    rates = [one.best for one in ceilings.measurements if one.unit == "flop/s" and one.usable]
    if not reads or not rates:
        lacking = [name for name, there in (("memory", reads), ("matrix products", rates)) if not there]
        told = [reason for name, reason in ceilings.missing.items() if not name.startswith("disk")]
        hint = "; ".join(dict.fromkeys(told)) or "repeat it when the machine is quiet"
        raise UsageError(f"{' and '.join(lacking)} of this machine: no measurement is usable", hint=hint)
    return Hardware(
        step=at,
        efficiency=efficiency,
        mechanisms=lambda _: [],
        batches=CPU_BATCHES,
        prompt=CPU_PROMPT,
        context_tokens=CONTEXT["cpu"] if context_tokens is None else context_tokens,
    )
