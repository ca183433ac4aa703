"""A decode step's estimate held against a profiled step, as a table in the terminal; readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from assay.records.attribution import TraceFacts
from assay.records.estimate import Range
from assay.records.traced_step import Held, HeldStep, TracedSteps
from assay.render.estimate_words import percent_words, rounded_words
from assay.render.grids import bullets, plain_table
from assay.render.words import NOTHING

MARKED = {"engine": "told apart by the engine's annotations", "graph launches": "told apart by their graphs' launches"}


def held_view(found: HeldStep, trace: TraceFacts) -> Iterator[RenderableType]:
    """Verdict, table, and where the two differ."""
    yield Text("")
    yield Text(f"estimate held against the trace: decode {found.sequences} at {found.context_tokens:,}", style="bold")
    yield Text(verdict_words(found), style="green" if found.close else "yellow")
    yield Text(f"measured: {found.measured_by}")
    if trace.decode is not None:
        yield Text(_steps_words(trace.decode))
    yield _table(found)
    if found.words:
        yield Text("where they differ")
        yield bullets(found.words)


def steps_view(decode: TracedSteps) -> Iterator[RenderableType]:
    """The same without an estimate: what a step's operations take."""
    yield Text("")
    yield Text(_steps_words(decode))
    table = plain_table("operation", "kernels", "µs", "share")
    for one in decode.operations:
        table.add_row(one.operation, _count(one.calls), _us(one.seconds), percent_words(one.seconds / decode.period_s))
    idle_s = decode.short_pauses_s + decode.long_pauses_s
    table.add_row("between kernels", "", _us(idle_s), percent_words(idle_s / decode.period_s))
    yield table


def verdict_words(found: HeldStep) -> str:
    """`10.9 ms measured, 11.9 ms expected (9.1 to 15.2): +9%, within 20%`."""
    inside = "within" if found.close else "not within"
    return (
        f"{_ms(found.measured_s)} ms measured, {_ms(found.expected_s.mid)} ms expected "
        f"({_ms(found.expected_s.low)} to {_ms(found.expected_s.high)}): {100 * found.error:+.0f}%, "
        f"{inside} {100 * found.limit:.0f}%"
    )


def _steps_words(decode: TracedSteps) -> str:
    sequences = "" if decode.sequences is None else f" of {decode.sequences} sequences"
    return (
        f"trace: {decode.steps} decode steps{sequences} ({_left_out(decode.left_out)} left out), "
        f"{MARKED[decode.marked_by]}; {_ms(decode.period_s)} ms each under the profiler"
    )


def _left_out(count: int) -> str:
    return "none" if not count else "1 other" if count == 1 else f"{count} others"


def _table(found: HeldStep) -> Table:
    table = plain_table("operation", "kernels\nfound / exp.", "µs\nmeasured", "µs\nexpected", "range", "exp. /\nmeas.")
    for row in found.operations:
        table.add_row(row.operation, _counts(row), _us(row.measured_s), *_expected(row.expected_s), _ratio(row.ratio))
    ratio = found.expected_between_s.mid / found.between_s if found.between_s else None
    table.add_row("between kernels", "", _us(found.between_s), *_expected(found.expected_between_s), _ratio(ratio))
    table.add_section()
    whole = found.expected_s.mid / found.measured_s
    table.add_row("step", "", _us(found.measured_s), *_expected(found.expected_s), _ratio(whole))
    return table


def _counts(row: Held) -> str:
    return f"{_count(row.calls)} / {f'{row.expected_calls:,}' if row.expected_s else NOTHING}"


def _count(calls: float | None) -> str:
    return NOTHING if calls is None else f"{calls:,.0f}" if calls >= 1 else f"{calls:.1g}"


def _expected(one: Range | None) -> tuple[str, str]:
    return (NOTHING, "") if one is None else (_us(one.mid), f"{_us(one.low)}-{_us(one.high)}")


def _ratio(ratio: float | None) -> str:
    return NOTHING if ratio is None else f"{ratio:.2f}"


def _us(seconds: float | None) -> str:
    """Whole microseconds, so that a column can be compared at a glance."""
    return NOTHING if seconds is None else f"{1e6 * seconds:,.0f}"


def _ms(seconds: float) -> str:
    return rounded_words(1e3 * seconds)
