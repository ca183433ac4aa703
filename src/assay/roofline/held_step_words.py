"""Where an estimated step and a profiled one differ, in words: the largest differences first."""

from __future__ import annotations

from dataclasses import dataclass

from assay.records.estimate import Range, StepEstimate
from assay.records.traced_step import Held, TracedKernel, TracedOperation, TracedSteps
from assay.roofline import host as hosts

TOLD_SHARE = 0.02
"""A difference below this share of the step is not told."""
MOST_TOLD = 5
OTHER_COUNT = 1.25
"""So much more (or less) often than expected is another number of kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Time of a step in which no kernel runs."""

    measured_s: float
    expected_s: Range
    """Starts of kernels, and what the device waits for its host."""
    starts: int
    """Kernels that have one."""
    starts_s: Range
    hidden: str
    """What of the host's work is taken to hide behind kernels, in words."""


def told(rows: list[Held], traced: TracedSteps, gaps: Gaps, measured_s: float) -> list[str]:
    """The largest differences, in order of their size."""
    seen = {one.operation: one for one in traced.operations}
    found = [(abs(_difference(row)), _row_words(row, seen.get(row.operation))) for row in rows]
    found.append((abs(gaps.expected_s.mid - gaps.measured_s), _between_words(traced, gaps, measured_s)))
    large = sorted((one for one in found if one[0] >= TOLD_SHARE * measured_s), key=lambda one: -one[0])
    return [sentence for _, sentence in large[:MOST_TOLD]]


def _difference(row: Held) -> float:
    return (row.expected_s.mid if row.expected_s else 0.0) - (row.measured_s or 0.0)


def _row_words(row: Held, traced: TracedOperation | None) -> str:
    if row.expected_s is None:
        return f"{row.operation}: {ms(row.measured_s or 0)} ms that the estimate has no operation for{_named(traced)}"
    if row.measured_s is None or not row.calls:
        return f"{row.operation}: {ms(row.expected_s.mid)} ms expected, and no such kernel in the trace"
    each, expected_each = row.measured_s / row.calls, row.expected_s.mid / max(1, row.expected_calls)
    counts = max(row.calls, row.expected_calls) / max(1e-9, min(row.calls, row.expected_calls))
    measured = f"{row.calls:,.3g} kernels of {_us(each)} µs"
    if counts >= OTHER_COUNT:
        expected = f"{row.expected_calls:,} of {_us(expected_each)} µs were expected{_named(traced)}"
    else:
        expected = f"{_us(expected_each)} µs expected, floor {_us(row.floor_s / max(1, row.expected_calls))} µs"
    more = "less" if _difference(row) > 0 else "more"
    return f"{row.operation}: {ms(abs(_difference(row)))} ms {more} than expected; {measured}, {expected}"


def hidden(step: StepEstimate) -> str:
    """What the estimate takes to be hidden: the first thing to doubt where the device waits longer than expected."""
    hidden_s = hosts.hidden_of(step)
    return (
        f"; {ms(hidden_s)} ms more of its work hide behind kernels, as overlapped scheduling has it" if hidden_s else ""
    )


def _between_words(traced: TracedSteps, gaps: Gaps, measured_s: float) -> str:
    kernels = sum(one.calls for one in traced.operations)
    expected_s, starts_s = gaps.expected_s.mid, gaps.starts_s.mid
    return (
        f"between kernels: nothing runs for {100 * gaps.measured_s / measured_s:.0f}% of the step "
        f"({ms(gaps.measured_s)} ms); {ms(expected_s)} ms were expected, {ms(starts_s)} ms for {gaps.starts:,} "
        f"starts and {ms(expected_s - starts_s)} ms for the host{gaps.hidden}. The trace has {kernels:,.0f} kernels a "
        f"step, {ms(traced.short_pauses_s)} ms of short pauses and {ms(traced.long_pauses_s)} ms of longer ones, in "
        "which the device waits for the host (with the profiler's own delays)"
    )


def _named(traced: TracedOperation | None) -> str:
    return f": {', '.join(map(_short, traced.kernels[:3]))}" if traced else ""


def _short(kernel: TracedKernel) -> str:
    """A kernel's name without its template's arguments; of CUTLASS and PyTorch with them: they say which it is."""
    name = kernel.name.removeprefix("void ")
    plain = name if name.startswith(("cutlass::", "at::native::")) else name.partition("<")[0].partition("(")[0]
    return f"{plain[:60]} ({kernel.calls:,.3g})"


def ms(seconds: float) -> str:
    """Three digits, without the unit."""
    return f"{1e3 * seconds:.3g}"


def _us(seconds: float) -> str:
    return f"{1e6 * seconds:.3g}"
