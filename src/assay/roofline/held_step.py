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
    TracedKernel,
    TracedOperation,
    TracedSteps,
)
from assay.roofline import host as hosts

LIMIT = 0.20
"""A relative error up to here counts as close."""
TOLD_SHARE = 0.02
"""A difference below this share of the step is not told."""
MOST_TOLD = 5
MANY_PROMPTS = 0.4
"""With more steps that compute prompts, the median gap between tokens is not safely that of a step without."""
OTHER_COUNT = 1.25
"""So much more (or less) often than expected is another number of kernels."""
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
            f"kernels take {_ms(traced.busy_s)} ms of a step in the trace, more than the {_ms(measured_s)} ms of the "
            "measured step: the trace was taken at another load, or clocks differed"
        )
    steps = traced.steps + traced.left_out
    if traced.left_out > MANY_PROMPTS * steps:
        notes.append(
            f"{traced.left_out} of {steps} steps in the trace hold prompts or another number of sequences: a median "
            "gap between tokens may not be that of a step without"
        )
    rows = _rows(step, traced, starts_s)
    calls = sum(op.calls for op in step.ops if op.collective is None)
    starts = starts_s.scaled(calls)
    between = Range(**{key: getattr(starts, key) + getattr(step.overhead_s, key) for key in ("low", "mid", "high")})
    between_s = max(0.0, measured_s - traced.busy_s)
    words = _words(rows, traced, measured_s, between_s, between, starts.mid, f"{calls:,} starts and", _hidden(step))
    return HeldStep(
        sequences=step.point.sequences,
        context_tokens=step.point.context_tokens,
        measured_s=measured_s,
        measured_by=measured_by,
        expected_s=step.time_s,
        limit=LIMIT,
        operations=rows,
        between_s=between_s,
        expected_between_s=between,
        expected_starts_s=starts.mid,
        words=words,
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


def _words(
    rows: list[Held],
    traced: TracedSteps,
    measured_s: float,
    between_s: float,
    between: Range,
    starts_s: float,
    starts: str,
    hidden: str,
) -> list[str]:
    """The largest differences, in order of their size."""
    seen = {one.operation: one for one in traced.operations}
    told = [(abs(_difference(row)), _row_words(row, seen.get(row.operation))) for row in rows]
    waits = _between_words(traced, measured_s, between_s, between, starts_s, starts, hidden)
    told.append((abs(between.mid - between_s), waits))
    large = sorted((one for one in told if one[0] >= TOLD_SHARE * measured_s), key=lambda one: -one[0])
    return [sentence for _, sentence in large[:MOST_TOLD]]


def _difference(row: Held) -> float:
    return (row.expected_s.mid if row.expected_s else 0.0) - (row.measured_s or 0.0)


def _row_words(row: Held, traced: TracedOperation | None) -> str:
    if row.expected_s is None:
        return f"{row.operation}: {_ms(row.measured_s or 0)} ms that the estimate has no operation for{_named(traced)}"
    if row.measured_s is None or not row.calls:
        return f"{row.operation}: {_ms(row.expected_s.mid)} ms expected, and no such kernel in the trace"
    each, expected_each = row.measured_s / row.calls, row.expected_s.mid / max(1, row.expected_calls)
    counts = max(row.calls, row.expected_calls) / max(1e-9, min(row.calls, row.expected_calls))
    measured = f"{row.calls:,.3g} kernels of {_us(each)} µs"
    if counts >= OTHER_COUNT:
        expected = f"{row.expected_calls:,} of {_us(expected_each)} µs were expected{_named(traced)}"
    else:
        expected = f"{_us(expected_each)} µs expected, floor {_us(row.floor_s / max(1, row.expected_calls))} µs"
    more = "less" if _difference(row) > 0 else "more"
    return f"{row.operation}: {_ms(abs(_difference(row)))} ms {more} than expected; {measured}, {expected}"


def _hidden(step: StepEstimate) -> str:
    """What the estimate takes to be hidden: the first thing to doubt where the device waits longer than expected."""
    if step.host is None or step.host_time is None:
        return ""
    hidden_s = hosts.hidden_s(hosts.kernels_s(step.ops), step.host_time, step.host).mid
    return (
        f"; {_ms(hidden_s)} ms more of its work hide behind kernels, as overlapped scheduling has it"
        if hidden_s
        else ""
    )


def _between_words(
    traced: TracedSteps,
    measured_s: float,
    between_s: float,
    between: Range,
    starts_s: float,
    starts: str,
    hidden: str,
) -> str:
    kernels = sum(one.calls for one in traced.operations)
    return (
        f"between kernels: nothing runs for {100 * between_s / measured_s:.0f}% of the step ({_ms(between_s)} ms); "
        f"{_ms(between.mid)} ms were expected, {_ms(starts_s)} ms for {starts} "
        f"{_ms(between.mid - starts_s)} ms for the host{hidden}. The trace has {kernels:,.0f} kernels a step, "
        f"{_ms(traced.short_pauses_s)} ms of short pauses and {_ms(traced.long_pauses_s)} ms of longer ones, in which "
        "the device waits for the host (with the profiler's own delays)"
    )


def _named(traced: TracedOperation | None) -> str:
    return f": {', '.join(map(_short, traced.kernels[:3]))}" if traced else ""


def _short(kernel: TracedKernel) -> str:
    """A kernel's name without its template's arguments; of CUTLASS and PyTorch with them: they say which it is."""
    name = kernel.name.removeprefix("void ")
    plain = name if name.startswith(("cutlass::", "at::native::")) else name.partition("<")[0].partition("(")[0]
    return f"{plain[:60]} ({kernel.calls:,.3g})"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}"


def _us(seconds: float) -> str:
    return f"{1e6 * seconds:.3g}"
