"""The decode steps of a trace set against their estimate, where trace, model and load allow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.records.attribution import Characterization, MeasuredRun
    from assay.records.estimate import OperatingPoint, Range, StepEstimate
    from assay.records.traced_step import HeldStep

SAME_LOAD = 0.1
"""Relative difference in sequences up to which a run and a trace count as of one load."""


def held(
    answer: Characterization,
    step: Callable[[OperatingPoint], StepEstimate],
    starts_s: Range | None,
    usual_context_tokens: int,
) -> HeldStep | None:
    """The estimate of the trace's own decode steps, held against them; None where there are none.

    Args:
        answer: with trace and run.
        step: the roofline of a point.
        starts_s: from one kernel to the next in a replayed graph; None on CPUs.
        usual_context_tokens: where neither trace nor run tells them.
    """
    from assay.records.estimate import OperatingPoint
    from assay.roofline import held_step

    run, decode = answer.run, answer.trace.decode if answer.trace else None
    sequences = _sequences(answer)
    if decode is None or starts_s is None or sequences is None:
        return None
    told = decode.context_tokens
    context = context_of(run, usual_context_tokens) if told is None else told
    point = OperatingPoint(phase="decode", sequences=sequences, context_tokens=max(0, round(context)))
    measured_s, by = (None, "") if run is None or not _same_load(run, sequences) else _measured(run)
    return held_step.held(step(point), decode, starts_s=starts_s, measured_s=measured_s, measured_by=by)


def not_held(answer: Characterization, starts_s: Range | None) -> list[str]:
    """Why a trace is not told operation by operation, or not against the run."""
    trace, run = answer.trace, answer.run
    if trace is None or starts_s is None:
        return []
    if trace.tool == "nsys":
        return ["decode steps are told apart, and their operations, in torch-profiler's traces only"]
    if trace.decode is None:
        return ["no decode steps are told apart in the trace: neither the engine's annotations of steps nor graphs"]
    sequences = _sequences(answer)
    if sequences is None:
        return ["the trace does not say how many sequences its steps have: name the load test beside it with --run"]
    if run is not None and not _same_load(run, sequences):
        return [f"{run.source} had {run.sequences:.3g} sequences at a time, the trace {sequences}: not held together"]
    return []


def context_of(run: MeasuredRun | None, usual_tokens: int) -> float:
    """Tokens in the cache of a sequence on average: the prompt and half of the answer."""
    told = (run.input_tokens or 0) + (run.output_tokens or 0) / 2 if run else 0
    return told or usual_tokens


def _measured(run: MeasuredRun) -> tuple[float | None, str]:
    if run.gap_s:
        return run.gap_s, f"median gap between tokens, {run.source}"
    return run.tpot_s, f"mean time per token, prompts in between included, {run.source}"


def _sequences(answer: Characterization) -> int | None:
    """Of the trace's decode steps: what it says itself, else the run's."""
    decode, run = answer.trace.decode if answer.trace else None, answer.run
    if decode is None or decode.sequences:
        return decode.sequences if decode else None
    return max(1, round(run.sequences)) if run and run.sequences else None


def _same_load(run: MeasuredRun, sequences: int) -> bool:
    """Whether run and trace had about as many sequences; a run that does not tell is believed."""
    return run.sequences is None or abs(run.sequences - sequences) <= SAME_LOAD * sequences
