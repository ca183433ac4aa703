"""The estimate of a decode step held against a profiled one: operation by operation, and what lies between kernels.

An operation's expected time contains the start of each of its kernels; a profiler's kernel times do not, they begin
with the kernel. So starts are taken off the operations and set, with what the device waits for the host, against the
time in which nothing ran. That time is the measured step, without a profiler, less the kernels' time: a profiler
lengthens pauses and hardly the kernels. Work that overlapped scheduling hides behind kernels is no part of it
(`assay.roofline.host`).
"""

from __future__ import annotations

from collections.abc import Iterable

from assay.records.estimate import OpTime, Range, StepEstimate
from assay.records.traced_step import (
    OPERATIONS,
    Held,
    HeldStep,
    Operation,
    TracedSteps,
)
from assay.roofline import held_step_words as words
from assay.roofline import timing

LIMIT = 0.20
"""A relative error up to here counts as close."""
MANY_PROMPTS = 0.4
"""With more steps that compute prompts, the median gap between tokens is not safely that of a step without."""
_BY_NAME: dict[str, Operation] = {
    "routed_experts.gate_up": "experts gate-up",
    "routed_experts.down": "experts down",
    "elementwise.permute": "experts sort, sum",
    "elementwise.router": "router",
    "attention.o_proj": "output projection",
    "elementwise.rope_and_cache": "rope, cache write",
    "elementwise.norm": "norms",
    "elementwise.activation": "activation",
    "elementwise.quantize": "quantization",
    "elementwise.inputs": "inputs",
    "embedding.lookup": "inputs",
}
_BY_PART: dict[str, Operation] = {
    "router": "router",
    "attention_core": "attention",
    "indexer": "attention",
    "attention": "qkv projection",
    "linear_attention": "qkv projection",
    "head": "head",
    "sampling": "sampling",
}


def operation_of(op: OpTime) -> Operation:
    """The kind under which a trace shows an operation of the estimate."""
    if op.collective is not None or op.part == "communication":
        return "communication"
    if op.name in _BY_NAME:
        return _BY_NAME[op.name]
    if op.part in _BY_PART:
        return _BY_PART[op.part]
    if op.name.endswith(".gate_up") or op.name.endswith(".up"):
        return "dense gate-up"
    return "dense down" if op.name.endswith(".down") else "other"


def held(
    step: StepEstimate, traced: TracedSteps, *, starts_s: Range, measured_s: float | None, measured_by: str
) -> HeldStep:
    """Expected against measured.

    Args:
        step: the estimate at the trace's operating point.
        traced: the decode steps of the trace.
        starts_s: seconds from one kernel to the next in a replayed graph, as the estimate takes it.
        measured_s: a step without a profiler; None: the trace's own.
        measured_by: what says so.
    """
    notes: list[str] = []
    if measured_s is None:
        measured_s, measured_by = traced.period_s, "the trace's own steps: a profiler makes them longer"
    if traced.busy_s > measured_s:
        notes.append(
            f"kernels take {words.ms(traced.busy_s)} ms of a step in the trace, more than the {words.ms(measured_s)} "
            "ms of the measured step: the trace was taken at another load, or clocks differed"
        )
    steps = traced.steps + traced.left_out
    if traced.left_out > MANY_PROMPTS * steps:
        notes.append(
            f"{traced.left_out} of {steps} steps in the trace hold prompts or another number of sequences: a median "
            "gap between tokens may not be that of a step without"
        )
    rows = _rows(step, traced, starts_s)
    gaps = _gaps(step, traced, starts_s, measured_s)
    return HeldStep(
        sequences=step.point.sequences,
        context_tokens=step.point.context_tokens,
        measured_s=measured_s,
        measured_by=measured_by,
        expected_s=step.time_s,
        limit=LIMIT,
        operations=rows,
        between_s=gaps.measured_s,
        expected_between_s=gaps.expected_s,
        expected_starts_s=gaps.starts_s.mid,
        words=words.told(rows, traced, gaps, measured_s),
        notes=notes,
    )


def _rows(step: StepEstimate, traced: TracedSteps, starts_s: Range) -> list[Held]:
    seen = {one.operation: one for one in traced.operations}
    ours: dict[Operation, list[OpTime]] = {}
    for op in step.ops:
        ours.setdefault(operation_of(op), []).append(op)
    found = [
        Held(
            operation=name,
            measured_s=seen[name].seconds if name in seen else None,
            calls=seen[name].calls if name in seen else None,
            expected_s=_without_starts(ours[name], starts_s) if name in ours else None,
            expected_calls=sum(op.calls for op in ours.get(name, [])),
            floor_s=sum(op.floor_s for op in ours.get(name, [])),
        )
        for name in OPERATIONS
        if name in seen or name in ours
    ]
    return sorted(found, key=lambda row: -max(row.measured_s or 0.0, row.expected_s.mid if row.expected_s else 0.0))


def _without_starts(ops: Iterable[OpTime], starts_s: Range) -> Range:
    """Expected seconds of kernels alone; a collective's curve has no start of its own to take off."""
    low = mid = high = 0.0
    for op in ops:
        calls = 0 if op.collective else op.calls
        low += max(op.floor_s, op.time_s.low - calls * starts_s.low)
        mid += max(op.floor_s, op.time_s.mid - calls * starts_s.mid)
        high += max(op.floor_s, op.time_s.high - calls * starts_s.high)
    return Range(low=low, mid=mid, high=high)


def _gaps(step: StepEstimate, traced: TracedSteps, starts_s: Range, measured_s: float) -> words.Gaps:
    calls = sum(op.calls for op in step.ops if op.collective is None)
    starts = starts_s.scaled(calls)
    return words.Gaps(
        measured_s=max(0.0, measured_s - traced.busy_s),
        expected_s=timing.add(starts, step.overhead_s),
        starts=calls,
        starts_s=starts,
        hidden=words.hidden(step),
    )
