"""The roofline of what `characterize` looks at, and a measured run set against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.records.attribution import Attribution, Characterization, Efficiency, MeasuredRun
    from assay.records.ceilings import Ceilings
    from assay.records.device import Box
    from assay.records.estimate import Layout, MechanismCeiling, OperatingPoint, Range, StepEstimate
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


def of_box(shape: ModelShape, box: Box, context_tokens: int | None) -> Hardware:
    """A box known by its data sheets and published measurements, under the layout that `assay estimate` would take.

    Raises:
        UsageError: too little is known of the device.
    """
    from assay.records.attribution import Efficiency
    from assay.roofline import ceilings, layout_choice, mechanisms, step, utilization

    chosen = layout_choice.default(shape, box, memory_fraction=MEMORY_FRACTION, cache_bytes_per_element=CACHE_BYTES)
    layout = chosen.layout if chosen else _whole(box)
    used = layout_choice.used(box, layout)

    def at(point: OperatingPoint) -> StepEstimate:
        return step.estimate(shape, used, layout, point)

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
        mechanisms=lambda at_point: mechanisms.ceilings(at_point, shape, used, layout),
        batches=GPU_BATCHES,
        prompt=GPU_PROMPT,
        context_tokens=CONTEXT["gpu"] if context_tokens is None else context_tokens,
        starts_s=ceilings.of(used.device).launch_s,
    )


def _whole(box: Box) -> Layout:
    from assay.records.estimate import Layout

    return Layout(tp=box.count)


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


def facts_of(shape: ModelShape) -> dict[str, str | float | int]:
    """What is told of a model; sizes in SI units, in the names."""
    stored: dict[str, float] = {}
    for count, matrix in shape.matrices():
        stored[matrix.storage.name] = stored.get(matrix.storage.name, 0.0) + count * matrix.weight_bytes
    return {
        "architecture": shape.architecture,
        "parameters": shape.parameters,
        "active_parameters": shape.active_parameters,
        "weight_bytes": shape.weight_bytes,
        "cache_bytes_per_token": shape.cache_bytes_per_token(),
        "storage": ", ".join(sorted(stored, key=lambda name: -stored[name])),
        "experts": f"{shape.top_k} of {shape.num_experts}" if shape.is_moe else "none",
    }


def explained(answer: Characterization, hardware: Hardware, ceilings: Ceilings | None) -> Characterization:
    """With operating points, and the run set against its own."""
    from assay.api import characterize_step
    from assay.records.estimate import OperatingPoint
    from assay.roofline import cpu

    points = [
        hardware.step(OperatingPoint(phase="decode", sequences=batch, context_tokens=hardware.context_tokens))
        for batch in hardware.batches
    ]
    points.append(
        hardware.step(OperatingPoint(phase="prefill", sequences=1, context_tokens=0, new_tokens=hardware.prompt))
    )
    floors = [cpu.memory_floor_s(point, ceilings, answer.threads or 1) for point in points] if ceilings else []
    run_point, prompt = _points_of(answer.run, hardware)
    rate = _decode_rate(answer.run)
    efficiency = hardware.efficiency(run_point, rate) if run_point and rate else None
    return answer.model_copy(
        update={
            "points": points,
            "memory_floors_s": floors,
            "run_point": run_point,
            "efficiency": efficiency,
            "mechanisms": hardware.mechanisms(run_point or points[len(hardware.batches) - 1]),
            "held": characterize_step.held(answer, hardware.step, hardware.starts_s, hardware.context_tokens),
            "attributions": split(answer.run, run_point, prompt, answer),
            "notes": list(
                dict.fromkeys([*answer.notes, *characterize_step.not_held(answer, hardware.starts_s), *points[0].notes])
            ),
        }
    )


def _points_of(run: MeasuredRun | None, hardware: Hardware) -> tuple[StepEstimate | None, StepEstimate | None]:
    """Decode and one prompt at the run's own operating point; None where it is not known."""
    from assay.api import characterize_step
    from assay.records.estimate import OperatingPoint

    if run is None:
        return None, None
    prompt = None
    if run.input_tokens:
        tokens = max(1, round(run.input_tokens))
        prompt = hardware.step(OperatingPoint(phase="prefill", sequences=1, context_tokens=0, new_tokens=tokens))
    if not run.sequences:
        return None, prompt
    context = round(characterize_step.context_of(run, hardware.context_tokens))
    sequences = max(1, round(run.sequences))
    return hardware.step(OperatingPoint(phase="decode", sequences=sequences, context_tokens=context)), prompt


def split(
    run: MeasuredRun | None,
    step: StepEstimate | None,
    prompt: StepEstimate | None,
    answer: Characterization,
) -> list[Attribution]:
    """The run's times by cause; of a trace alone, the time of its span."""
    from assay.records.attribution import MeasuredRun
    from assay.roofline import attribution

    if run is None:
        if answer.trace is None:
            return []
        run = MeasuredRun(source=answer.trace.file, sequences=None, tpot_s=answer.trace.span_s)
        split = attribution.decode(run, None, None, answer.trace)
        return [split.model_copy(update={"what": "span of the trace"})] if split else []
    splits = (
        attribution.decode(run, step, prompt, answer.trace),
        attribution.first_token(run, prompt, step, answer.server),
    )
    return [split for split in splits if split is not None]


def _decode_rate(run: MeasuredRun | None) -> float | None:
    """Tokens/s of the decode steps alone: prompts in between are no part of a step."""
    if run is None or not run.sequences:
        return None
    return round(run.sequences) / run.tpot_s if run.tpot_s and round(run.sequences) else run.output_tokens_per_s
