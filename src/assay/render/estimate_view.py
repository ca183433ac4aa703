"""An estimate in the terminal; readable without colour and at 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from assay.records.estimate import MechanismCeiling
from assay.records.estimate_report import EstimateReport, ServingPoint
from assay.render import estimate_rows as rows
from assay.render import estimate_words as words

WIDE = 110
"""Columns from which on tables show what can be left out."""
FILL = {"weights": "█", "activations": "▓", "graphs": "▒", "cache": "░", "free": "·"}
STYLE = {"cache": "green", "free": "dim"}
SHARE_BAR = 8
MOST_MECHANISMS = 6
"""With their reasons, unless all are asked for."""
BASIS_STYLE = {"measured": "green", "spec": "yellow", "assumed": "yellow"}


@dataclass(frozen=True, slots=True)
class MemoryBar:
    """The fullest device's memory as a bar as wide as the terminal allows."""

    report: EstimateReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Each part at least one letter wide, so that none is hidden."""
        memory, width = self.report.memory, min(options.max_width, 100)
        parts = [part for part in rows.memory_parts(memory) if part.size_bytes > 0]
        bar = Text(no_wrap=True)
        for part, length in zip(parts, _letters([part.size_bytes for part in parts], width), strict=True):
            bar.append(FILL[part.kind] * length, style=STYLE.get(part.kind, ""))
        named = [f"{FILL[part.kind]} {part.name} {words.size_words(part.size_bytes)}" for part in parts]
        yield Text(f"memory of the fullest device: {words.size_words(memory.device_bytes)}", style="bold")
        yield bar
        yield from (Text(line) for line in _lines(named, options.max_width))
        yield Text(rows.capacity_words(self.report))


@dataclass(frozen=True, slots=True)
class PointTable:
    """A row for each number of requests in flight."""

    report: EstimateReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Where columns are scarce, ranges stand without their middle, and MFU is left out."""
        wide = options.max_width >= WIDE
        prompts = any(point.output_tokens_per_s for point in self.report.points)
        headings = ["in flight", "decode tok/s", *(["with prompts"] if prompts else []), "TPOT ms", "TTFT", "bound"]
        headings += ["SOL", "MBU", *(["MFU"] if wide else [])]
        table = _table(gap=2 if wide else 1)
        for heading in headings:
            table.add_column(heading, justify="left" if heading == "bound" else "right", no_wrap=True)
        for index, point in enumerate(self.report.points):
            marked = index == self.report.chosen and len(self.report.points) > 1
            table.add_row(*_point_cells(point, wide=wide, prompts=prompts), style="bold" if marked else "")
        yield table


@dataclass(frozen=True, slots=True)
class OpTable:
    """Where the time of a step goes."""

    point: ServingPoint

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Calls, operations and bytes are added where there is room."""
        wide, step = options.max_width >= WIDE, self.point.decode
        table = _table(gap=2 if wide else 1)
        table.add_column("operation", no_wrap=True, min_width=24)
        for heading in ("time ms", "share", "", "bound", "SOL", *(("calls", "FLOP", "bytes") if wide else ())):
            table.add_column(heading, justify="left" if heading in {"", "bound"} else "right", no_wrap=True)
        table.add_column("source", no_wrap=True)
        for row in rows.op_rows(self.point):
            cells = [Text(row.name), Text(row.time_ms), Text(words.percent_words(row.share)), _bar(row.share)]
            cells += [Text(_bound(row.bound, wide=wide)), Text(words.percent_words(row.speed_of_light))]
            counted = ["" if row.calls is None else f"{row.calls:,}", row.flops, row.moved]
            cells += [Text(each) for each in counted] if wide else []
            table.add_row(*cells, Text(row.basis, style=BASIS_STYLE.get(row.basis, "")))
        total = ["whole step", words.range_words(step.time_s, 1e3), "100%", "", _bound(step.bound, wide=wide)]
        total.append(words.percent_words(self.point.speed_of_light))
        table.add_row(*(Text(cell, style="bold") for cell in total))
        yield table


def estimate_view(report: EstimateReport, *, every: bool = False) -> RenderableType:
    """The whole estimate: model, box, memory, points, operations, what would help, assumptions.

    Args:
        report: the estimate.
        every: show also what cannot act here or is worth nothing, with the reasons.
    """
    point = report.point
    parts: list[RenderableType] = [_head(report), Text(""), MemoryBar(report), Text(""), PointTable(report)]
    if held_back := rows.held_back_words(report.points):
        parts.append(Text(held_back, style="yellow"))
    parts += [Text(""), *_where(report), Text("")]
    parts += [Text(f"what would help at most, {point.running:,} running (tokens/s of decode)", style="bold")]
    parts += [_help(point.mechanisms, every=every)]
    if report.assumptions:
        parts += [Text("\nassumed", style="bold"), bullets(report.assumptions)]
    return Group(*parts)


def bullets(sentences: Iterable[str]) -> RenderableType:
    """Sentences below each other."""
    grid = Table.grid(padding=(0, 1))
    for sentence in sentences:
        grid.add_row(Text("-"), Text(sentence))
    return grid


def _head(report: EstimateReport) -> RenderableType:
    reason = f" ({report.layout_reason})" if report.layout_reason else ""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, sentence in (
        ("model", rows.model_words(report.model)),
        ("cache", rows.cache_words(report)),
        ("box", rows.box_words(report) + reason),
        ("load", rows.load_words(report)),
    ):
        grid.add_row(Text(name, style="bold"), Text(sentence))
    return grid


def _where(report: EstimateReport) -> list[RenderableType]:
    point = report.point
    title = f"where a step of decode goes, {point.running:,} running: {rows.split_words(point)}"
    parts: list[RenderableType] = [Text(title, style="bold")]
    if experts := rows.experts_words(point, report.model.num_experts):
        parts.append(Text(experts))
    parts.append(OpTable(point))
    if point.prompts is not None:
        parts.append(Text(_prompts_sentence(point)))
    return parts


def _prompts_sentence(point: ServingPoint) -> str:
    step = point.prompts
    if step is None:
        return ""
    top = ", ".join(f"{op.name} {words.percent_words(step.share(op))}" for op in step.ops[:3])
    said = f"{rows.prompts_words(point)}: {words.time_range_words(step.time_s)}, "
    said += f"{words.range_words(step.tokens_per_s)} tokens/s, bound by {step.bound} ({top})"
    if point.prompt_share is not None:
        said += f"; prompts take {words.percent_words(point.prompt_share)} of the time"
    return said


def _help(mechanisms: Sequence[MechanismCeiling], *, every: bool) -> RenderableType:
    """The largest ceilings with their reasons; what is worth less or cannot act is named alone unless asked for."""
    worth = [each for each in mechanisms if each.applies and each.gain.high >= rows.LITTLE_SHARE]
    shown = list(mechanisms) if every else worth[:MOST_MECHANISMS]
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, justify="right")
    table.add_column(overflow="fold", min_width=20, max_width=26)
    table.add_column(overflow="fold")
    for each in shown:
        said = words.ceiling_words(each) if each.applies else "cannot"
        table.add_row(
            Text(said, style="bold" if each in worth else "dim"), Text(words.mechanism_title(each)), Text(each.reason)
        )
    others = [each for each in mechanisms if each not in shown]
    return Group(table, Text(_named(others), style="dim")) if others else table


def _named(others: Sequence[MechanismCeiling]) -> str:
    less = [f"{each.title} {words.ceiling_words(each)}" for each in others if each.applies]
    barred = [each.title for each in others if not each.applies]
    told = [f"less: {', '.join(less)}"] if less else []
    told += [f"cannot act here: {', '.join(barred)}"] if barred else []
    return "; ".join(told) + ". Why: --all"


def _point_cells(point: ServingPoint, *, wide: bool, prompts: bool) -> list[str]:
    ranged = words.expected_words if wide else words.range_words
    cells = [rows.asked_words(point), ranged(point.decode.tokens_per_s)]
    cells += [ranged(point.output_tokens_per_s)] if prompts else []
    cells += [ranged(point.tpot_s, 1e3), words.time_range_words(point.ttft_s)]
    cells += [_bound(point.decode.bound, wide=wide), words.percent_words(point.speed_of_light)]
    return [*cells, words.percent_words(point.mbu), *([words.percent_words(point.mfu)] if wide else [])]


def _bound(bound: str, *, wide: bool) -> str:
    return bound if wide else words.SHORT_BOUND.get(bound, bound)


def _bar(share: float) -> Text:
    """A share as a small bar in eighths of a letter."""
    eighths = round(share * SHARE_BAR * 8)
    return Text("█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip())


def _letters(sizes: Sequence[float], width: int) -> list[int]:
    """Whole letters in proportion; every part gets one, the largest pays for rounding."""
    total = sum(sizes)
    lengths = [max(1, round(width * size / total)) for size in sizes]
    lengths[lengths.index(max(lengths))] -= sum(lengths) - width
    return lengths


def _lines(items: Iterable[str], width: int) -> list[str]:
    """Items side by side, never broken within."""
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + 2 + len(item) > width:
            lines.append("")
        lines[-1] += f"  {item}" if lines[-1] else item
    return lines


def _table(*, gap: int) -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
