"""The roofline of what `characterize` looks at, and a measured run set against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.api.characterize_hardware import Hardware
    from assay.records.attribution import Attribution, Characterization, MeasuredRun
    from assay.records.ceilings import Ceilings
    from assay.records.estimate import StepEstimate
    from assay.records.held_load import HeldLoad, MeasuredLoad
    from assay.records.model_shape import ModelShape

LAUNCHED, PROMPTS_LAUNCHED = "; it has no graph: kernels are launched one by one", "; steps with prompts have no graphs"
"""What to say of launches."""


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
    hidden_ms = 1e3 * hosts.hidden_of(step)
    hides = f", {hidden_ms:.3g} ms to hide behind them" if hidden_ms else ""
    launched = PROMPTS_LAUNCHED if step.host.graphs == "decode" else ""
    if step.host_time.launches_s.high:
        launched = LAUNCHED
    told = (
        f"{step.host.words}: of the host's work for a step {1e3 * step.overhead_s.mid:.3g} ms are expected to delay "
        f"its kernels{hides}{launched}"
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
