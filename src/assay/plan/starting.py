"""What today's configuration has no room for: found by calculation, before a launch finds it out."""

from __future__ import annotations

from collections.abc import Iterator

from assay.plan import spellings
from assay.plan.situation import Situation
from assay.plan.target_step import Served
from assay.records.device import Box
from assay.records.estimate import Layout, MemoryBudget
from assay.records.model_shape import ModelShape
from assay.roofline import layout_choice, layouts, memory
from assay.units import giga

NOT_COUNTED = ("--cpu-offload-gb", "--offload-group-size")
"""Flags that change what the weights take of a GPU, which the estimate does not count."""
AT_LOAD = "--quantization"
"""The same of weights that are not quantized yet (more than `QUANTIZED_BITS` each)."""
QUANTIZED_BITS = 12
MANY_MACHINES = ("--nnodes", "--distributed-executor-backend", "--data-parallel-address", "--dist-init-addr")
"""Flags of ranks that may be on other machines, of which nothing is known."""
IN_THE_MACHINES_MEMORY = frozenset({"vllm", "sglang", "llamacpp"})
"""Engines that can serve without a GPU."""


def warnings(situation: Situation) -> list[str]:
    """Why today's configuration cannot start or serve as it is calculated: what does not fit, by how much, what would.

    Source of what it takes: `assay.roofline.memory.budget`.
    """
    return [*_room(situation), *_arithmetic(situation)]


def _room(situation: Situation) -> Iterator[str]:
    shape, box, served = situation.shape, situation.box, situation.served
    if box is None and not situation.machine.gpus:
        yield from _without_gpu(situation)
        return
    if served is None or _says(situation, MANY_MACHINES):
        return
    count = box.count if box else len(situation.machine.gpus)
    if served.layout.devices > count:
        known = _what_would(shape, box, served) if shape and box else ""
        yield (
            f"today's configuration cannot start: {served.layout.name} takes {served.layout.devices} GPUs, and there "
            f"{'is 1' if count == 1 else f'are {count}'}{known}"
        )
    elif shape is not None and box is not None and not _says(situation, _not_counted(shape)):
        yield from _memory(shape, box, served, situation.missing.get("step", ""))


def _not_counted(shape: ModelShape) -> tuple[str, ...]:
    return (*NOT_COUNTED, AT_LOAD) if 8 * shape.weight_bytes > QUANTIZED_BITS * shape.parameters else NOT_COUNTED


def _memory(shape: ModelShape, box: Box, served: Served, no_step: str) -> Iterator[str]:
    used = layout_choice.used(box, served.layout)
    if refused := layouts.check(shape, used, served.layout):
        would = _what_would(shape, box, served)
        yield f"by calculation today's configuration cannot start as {served.layout.name}: {refused}{would}"
        return
    budget = _budget(shape, used, served.layout, served)
    if budget.fits:
        if no_step:
            yield f"by calculation today's configuration cannot serve this load: {no_step}"
        return
    missing = layout_choice.missing_bytes(budget)
    yield (
        f"by calculation today's configuration cannot start: {shape.name} does not fit as {served.layout.name} on "
        f"{used.name}. Its weights take {giga(budget.weight_bytes)} GB of each GPU, which has "
        f"{giga(budget.device_bytes)} GB; {giga(missing)} GB are missing on each once activations, graphs and what is "
        f"kept free are counted{_what_would(shape, box, served)}"
    )


def _what_would(shape: ModelShape, box: Box, served: Served) -> str:
    """What of this box would hold it: another layout, weights of fewer bits, more of its GPUs."""
    limits = {
        "memory_fraction": served.memory_fraction,
        "cache_bytes_per_element": served.cache_bytes_per_element,
    }
    for size in (size for size in range(box.count, 0, -1) if box.count % size == 0):
        part = layout_choice.used(box, Layout(tp=size))
        choice = layout_choice.default(shape, part, **limits)
        if choice is not None and _holds(shape, part, choice.layout, served):
            return f"; as {choice.layout.name} it would fit on {part.name}"
    asked = served.layout if served.layout.devices <= box.count else Layout(tp=box.count)
    part = layout_choice.used(box, asked)
    room = layout_choice.fitting(shape, box, asked, **limits)
    stored = layout_choice.fitting_storages(shape, part, asked, **limits)
    told = [f"stored as {' or '.join(stored)} it would fit as {asked.name} on {part.name}"] if stored else []
    told += [f"on {room.devices} of these GPUs it would fit as {room.name}"] if room else []
    return f"; {', and '.join(told)}" if told else "; a model of fewer parameters, or GPUs with more memory, would fit"


def _holds(shape: ModelShape, box: Box, layout: Layout, served: Served) -> bool:
    used = layout_choice.used(box, layout)
    return layouts.check(shape, used, layout) is None and _budget(shape, used, layout, served).fits


def _budget(shape: ModelShape, used: Box, layout: Layout, served: Served) -> MemoryBudget:
    return memory.budget(
        shape,
        used,
        layout,
        memory_fraction=served.memory_fraction,
        cache_bytes_per_element=served.cache_bytes_per_element,
    )


def _without_gpu(situation: Situation) -> Iterator[str]:
    """Weights in the machine's own memory."""
    if situation.elsewhere or situation.build.engine not in IN_THE_MACHINES_MEMORY:
        return
    shape, seen = situation.shape, situation.machine.memory_bytes
    weights = shape.weight_bytes if shape else situation.model.size_bytes
    if weights is None or weights <= seen or _says(situation, (AT_LOAD,)):
        return
    mapped = situation.build.engine == "llamacpp"
    what = "every step would read from the disk" if mapped else "by calculation today's configuration cannot start"
    name = shape.name if shape else situation.model.name or "the model"
    yield (
        f"{what}: the weights of {name} take {giga(weights)} GB, and the machine has no GPU and {giga(seen)} GB of "
        f"memory; {giga(weights - seen)} GB are missing, before any cache; fewer bits a weight, a smaller model or a "
        "GPU would help"
    )


def _arithmetic(situation: Situation) -> Iterator[str]:
    """Weights in NVIDIA's format of four bits on a GPU of another maker that has no arithmetic for them.

    NVIDIA's older GPUs are not warned of: engines have kernels there that widen such weights as they are read.
    """
    shape, box = situation.shape, situation.box
    if shape is None or box is None or box.device.kind != "gpu" or box.device.fact("compute_capability"):
        return
    held = {matrix.storage.name for group in shape.layers for matrix in group.matrices}
    if "nvfp4" in held and not box.device.fact("fp4_flop_per_s"):
        yield (
            f"the weights of {shape.name} are in NVFP4, and {box.device.name} has no arithmetic in FP4 by its data "
            "sheet: an engine refuses them there or computes in a wider format, which the step assumes"
        )


def _says(situation: Situation, names: tuple[str, ...]) -> bool:
    """Whether the baseline sets one of these flags to something that acts."""
    flags = situation.spec.target.flags
    values = (spellings.value(situation.build, flags, name) for name in names)
    return any(value not in {None, 0, 1, "mp", "uni", "auto"} for value in values)
