"""A load test or a sweep in the terminal; readable without colour and at 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from assay.records.bench import BenchResult, SweepResult
from assay.records.run import Gate
from assay.render import text_plots
from assay.render.bench_facts import Facts, client_facts, load_facts, throughput_facts
from assay.render.bench_words import (
    NOT_TO_BE_USED,
    PERCENTILES,
    LatencyRow,
    arrival_words,
    latency_rows,
    refusal_words,
    time_words,
    workload_words,
)
from assay.render.sweep_points import point_name, sweep_points
from assay.render.words import NOTHING, number_words

WIDE = 110
"""Columns from which on an interval fits beside its percentile."""
VOID = "strike dim"
"""Of numbers that are not to be used; words say it as well."""


@dataclass(frozen=True, slots=True)
class LatencyTable:
    """The percentiles with their intervals: beneath them, or beside them where there is room."""

    rows: Sequence[LatencyRow]
    valid: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Choose the shape by the width there is."""
        wide = options.max_width >= WIDE
        table = _table(gap=1 if wide else 0)
        table.add_column("latency" if self.valid else NOT_TO_BE_USED, no_wrap=True, min_width=18)
        for name in PERCENTILES:
            table.add_column(name, justify="right", no_wrap=True, min_width=14)
        if wide:
            table.add_column("samples", justify="right", no_wrap=True)
        for row in self.rows:
            table.add_row(*(self._wide(row) if wide else self._narrow(row)))
        yield table

    def _wide(self, row: LatencyRow) -> list[Text]:
        pairs = zip(row.values, row.intervals, strict=True)
        cells = [self._number(f"{value} {interval}".rstrip()) for value, interval in pairs]
        return [Text(f"{row.name}, {row.unit}"), *cells, Text(f"{row.num_samples:,}")]

    def _narrow(self, row: LatencyRow) -> list[Text]:
        head = Text.assemble(row.name, "\n", (f"{row.unit}, n {row.num_samples:,}", "dim"))
        pairs = zip(row.values, row.intervals, strict=True)
        return [head, *(Text.assemble(self._number(value), "\n", (interval, "dim")) for value, interval in pairs)]

    def _number(self, words: str) -> Text:
        return Text(words, style="" if self.valid else VOID)


def bench_view(result: BenchResult) -> RenderableType:
    """One load test: what was asked, latency, throughput, load, client, gates."""
    parts: list[RenderableType] = [_asked(result), Text(""), *refusal(result)]
    if result.measures is not None:
        parts += [LatencyTable(latency_rows(result.measures, result.spec.arrival), result.valid), Text("")]
        parts += [facts_grid(throughput_facts(result), style="" if result.valid else VOID), Text("")]
    parts += [facts_grid([*load_facts(result), *client_facts(result)]), Text(""), gate_grid(result.gates)]
    return Group(*parts)


def sweep_view(sweep: SweepResult) -> RenderableType:
    """A sweep: a row a load, the curve, the knee, and what failed where."""
    parts: list[RenderableType] = [_sweep_table(sweep)]
    points = [point for point in sweep_points(sweep) if point.drawable]
    marked = next((index for index, point in enumerate(points) if point.is_knee), None)
    spots = [(point.user_tokens_per_s or 0.0, point.tokens_per_s or 0.0, point.name) for point in points]
    if spots:
        parts.append(Text("\noutput tokens/s over tokens/s of one user (1 / TPOT p50), by load", style="bold"))
        parts += [Text(line, no_wrap=True) for line in text_plots.curve(spots, marked=marked)]
    if sweep.knee is None:
        parts.append(Text(f"\nno knee found: {sweep.knee_reason}"))
    else:
        name = point_name(sweep.points[sweep.knee])
        parts.append(Text(f"\nknee at {name} ({text_plots.MARKED}): {sweep.knee_reason}", style="bold"))
    for result in sweep.points:
        parts += refusal(result, f"{point_name(result)}: ")
    return Group(*parts)


def refusal(result: BenchResult, where: str = "") -> list[RenderableType]:
    """Why the numbers are not to be used, with the evidence and the remedy; nothing when they may be."""
    if result.valid:
        return []
    failed = [gate for gate in result.gates if not gate.passed]
    lines = [Text.assemble((f"{gate.name}: ", "bold"), gate.evidence, _remedy(gate)) for gate in failed]
    if result.measures is None:
        lines.insert(0, Text("nothing could be measured"))
    title = f"{where}{refusal_words(result)}"
    return [Panel(Group(*lines), title=Text(title, style="bold red"), box=box.ROUNDED, border_style="red")]


def facts_grid(facts: Facts, style: str = "") -> Table:
    """Names with their sentences."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=13)
    grid.add_column(overflow="fold")
    for name, sentence in facts:
        grid.add_row(Text(name, style="bold"), Text(sentence, style=style))
    return grid


def gate_grid(gates: Iterable[Gate]) -> Table:
    """Every gate: passed or not, and the evidence."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=4)
    grid.add_column(overflow="fold", max_width=24)
    grid.add_column(overflow="fold")
    for gate in gates:
        word, style = ("pass", "green") if gate.passed else ("FAIL", "bold red")
        grid.add_row(Text(word, style=style), Text(gate.name), Text.assemble(gate.evidence, _remedy(gate)))
    return grid


def _remedy(gate: Gate) -> str:
    return f"\n  remedy: {gate.remedy}" if gate.remedy and not gate.passed else ""


def _asked(result: BenchResult) -> RenderableType:
    spec = result.spec
    server = f"{spec.url}, {spec.endpoint}, {result.engine or 'engine unknown'}"
    windows = f"{spec.windows} window{'s' if spec.windows > 1 else ''} of {spec.window_s:g} s"
    facts = [
        ("server", server),
        ("model", spec.model),
        ("load", f"{arrival_words(spec.arrival)}; {windows}"),
        ("workload", workload_words(spec.workload)),
    ]
    return facts_grid(facts)


def _table(*, gap: int) -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")


def _sweep_table(sweep: SweepResult) -> Table:
    table = _table(gap=1)
    headings = ("load", "output tok/s", "tok/s a user", "TTFT p50", "TPOT p50", "E2E p50", "E2E p99", "counts")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if 0 < number < len(headings) - 1 else "left", overflow="fold")
    for point in sweep_points(sweep):
        style = "" if point.valid else VOID
        numbers = (
            NOTHING if point.tokens_per_s is None else number_words(point.tokens_per_s),
            NOTHING if point.user_tokens_per_s is None else number_words(point.user_tokens_per_s),
            *(time_words(value) for value in (point.ttft_s, point.tpot_s, point.e2e_s, point.e2e_p99_s)),
        )
        word = "knee" if point.is_knee else "yes" if point.valid else "NO"
        table.add_row(point.name, *(Text(words, style=style) for words in numbers), word)
    return table
