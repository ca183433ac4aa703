"""The roofline of what `characterize` looks at, and a measured run set against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.plan.target_step import Served
    from assay.records.attribution import Attribution, Characterization, Efficiency, MeasuredRun
    from assay.records.ceilings import Ceilings
    from assay.records.device import Box
    from assay.records.estimate import Host, Layout, MechanismCeiling, OperatingPoint, Range, Routing, StepEstimate
    from assay.records.held_load import HeldLoad, MeasuredLoad
    from assay.records.model_shape import ModelShape

CPU_BATCHES, GPU_BATCHES = (1, 4, 16), (1, 8, 64, 256)
CPU_PROMPT, GPU_PROMPT = 128, 2048
CONTEXT = {"cpu": 256, "gpu": 2048}
GRAPHS = {"none": "; no graphs: kernels are launched one by one", "decode": "; steps with prompts have no graphs"}
"""What to say of launches."""
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
            "held_loads": [_held(load, answer.run, hardware) for load in answer.run.loads] if answer.run else [],
            "attributions": split(
                answer.run, run_point, prompt, answer, _added_s(answer.run, run_point, prompt, hardware)
            ),
            "notes": list(
                dict.fromkeys(
                    [
                        *answer.notes,
                        *characterize_step.not_held(answer, hardware.starts_s),
                        *_host_words(answer.run, run_point, hardware),
                        *points[0].notes,
                    ]
                )
            ),
        }
    )


def _held(load: MeasuredLoad, run: MeasuredRun, hardware: Hardware) -> HeldLoad:
    """The estimate of an operating point beside what was measured there."""
    from assay.roofline.held_load import held_load
    from assay.roofline.serving import MAX_STEP_TOKENS

    each = load.cached_tokens + load.input_tokens + load.output_tokens
    room = load.sequences if hardware.room is None else hardware.room(each)
    return held_load(
        load,
        max(1, min(load.sequences, room)),
        hardware.step,
        hardware.mixed if run.shares_steps else None,
        hardware.box,
        run.step_tokens or MAX_STEP_TOKENS,
    )


def _host_words(run: MeasuredRun | None, step: StepEstimate | None, hardware: Hardware) -> list[str]:
    """How the expected times of a run on GPUs take scheduling, and experts that random weights choose."""
    from assay.roofline import host as hosts

    if run is None or not run.loads or step is None or step.host is None or step.host_time is None:
        return []
    hidden_ms = 1e3 * hosts.hidden_s(hosts.kernels_s(step.ops), step.host_time, step.host).mid
    hides = f", {hidden_ms:.3g} ms to hide behind them" if hidden_ms else ""
    told = (
        f"{step.host.words}: of the host's work for a step {1e3 * step.overhead_s.mid:.3g} ms are expected to delay "
        f"its kernels{hides}{GRAPHS.get(step.host.graphs, '')}"
    )
    if not hardware.random_weights:
        return [told]
    skewed = "random weights choose experts unevenly: the step is estimated as such weights were seen to choose them"
    return [told, f"{skewed} (Zipf's law, exponent {step.routing.exponent:g}), not evenly"]


def _added_s(
    run: MeasuredRun | None, step: StepEstimate | None, prompt: StepEstimate | None, hardware: Hardware
) -> float | None:
    """What a prompt adds to a step of decode, expected; None where the engine computes prompts apart."""
    if run is None or not run.shares_steps or hardware.mixed is None or step is None or prompt is None:
        return None
    return max(0.0, hardware.mixed(step.point, prompt.point).time_s.mid - step.time_s.mid)


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
    prompt_s: float | None = None,
) -> list[Attribution]:
    """The run's times by cause; of a trace alone, the time of its span.

    Args:
        run: what was measured.
        step: decode at its operating point.
        prompt: one of its prompts alone.
        answer: with trace and server.
        prompt_s: what a prompt adds to a step of decode; None: it has a step of its own.
    """
    from assay.records.attribution import MeasuredRun
    from assay.roofline import attribution

    if run is None:
        if answer.trace is None:
            return []
        run = MeasuredRun(source=answer.trace.file, sequences=None, tpot_s=answer.trace.span_s)
        split = attribution.decode(run, None, None, answer.trace)
        return [split.model_copy(update={"what": "span of the trace"})] if split else []
    splits = (
        attribution.decode(run, step, prompt, answer.trace, prompt_s=prompt_s),
        attribution.first_token(run, prompt, step, answer.server),
    )
    return [split for split in splits if split is not None]


def _decode_rate(run: MeasuredRun | None) -> float | None:
    """Tokens/s of the decode steps alone: prompts in between are no part of a step."""
    if run is None or not run.sequences:
        return None
    return round(run.sequences) / run.tpot_s if run.tpot_s and round(run.sequences) else run.output_tokens_per_s
