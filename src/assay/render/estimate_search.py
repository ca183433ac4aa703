"""A search in the terminal: layouts ranked, and what was left out; readable at 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from assay.render import estimate_words as words
from assay.render.estimate_view import WIDE, bullets
from assay.roofline.candidates import AS_STORED, Candidate
from assay.roofline.search_report import Refused, SearchReport

MOST_ROWS = 12
"""Candidates shown unless all are asked for."""
MOST_MISSES = 3
EXPECTED_WITHIN = "a range is best..worst case; a bound is kept when the expectation, between the two, keeps it"
MANY_TIMES = 3
"""Times a bound, from which on percents say nothing."""


@dataclass(frozen=True, slots=True)
class RankTable:
    """The candidates, best first."""

    candidates: Sequence[Candidate]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What is left out where columns are scarce: tokens/s of a device, and the room of the cache."""
        wide = options.max_width >= WIDE
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        left = {"layout", "weights", "bound"}
        flight = "in flight" if wide else "flight"
        headings = ["layout", "weights", flight, "output tok/s", "TPOT", "TTFT", "bound"]
        for heading in [*headings, *(["a device", "cache tokens"] if wide else [])]:
            table.add_column(heading, justify="left" if heading in left else "right", no_wrap=True)
        for each in self.candidates:
            table.add_row(*_cells(each, wide=wide))
        yield table


def search_view(report: SearchReport, *, every: bool = False) -> RenderableType:
    """What was asked, the ranking, and why others are not in it.

    Args:
        report: the search.
        every: show all candidates, and each layout left out with its reason.
    """
    shown = report.candidates if every else report.candidates[:MOST_ROWS]
    parts: list[RenderableType] = [Text(_question(report)), Text("")]
    parts += [RankTable(shown)] if shown else _nothing(report)
    if shown and (report.ttft_s or report.tpot_s):
        parts.append(Text(EXPECTED_WITHIN, style="dim"))
    if hidden := len(report.candidates) - len(shown):
        parts.append(Text(f"{hidden} more below these: --all", style="dim"))
    if report.refused:
        parts += [Text(""), _left_out(report.refused) if every else Text(_counts(report.refused))]
    parts += [Text("\nassumed", style="bold"), bullets(report.assumptions)]
    return Group(*parts)


def _nothing(report: SearchReport) -> list[RenderableType]:
    """By how much the nearest ones miss."""
    if not report.misses:
        return [Text("nothing fits here", style="bold")]
    parts: list[RenderableType] = [
        Text("nothing keeps these bounds here, not even with a single request in flight; the nearest:", style="bold")
    ]
    for each in report.misses[:MOST_MISSES]:
        told = [
            f"{name} {words.expected_words(time_s, 1e3)} ms{_over_words(time_s.mid, bound_s)}"
            for name, time_s, bound_s in (("TTFT", each.ttft_s, report.ttft_s), ("TPOT", each.tpot_s, report.tpot_s))
        ]
        parts.append(Text(f"  {each.layout.name.replace(' ', '')}, {_weights(each.storage)}: {', '.join(told)}"))
    return parts


def _over_words(expected_s: float, bound_s: float | None) -> str:
    if bound_s is None:
        return ""
    times, bound = expected_s / bound_s, f"{1e3 * bound_s:g} ms"
    if times <= 1:
        return f" (within {bound})"
    return (
        f" ({times - 1:.0%} over {bound})"
        if times < MANY_TIMES
        else f" ({words.rounded_words(times, 2)} times {bound})"
    )


def _weights(storage: str) -> str:
    return "stored" if storage == AS_STORED else storage.partition("-")[0]


def _question(report: SearchReport) -> str:
    named = [("TTFT", report.ttft_s), ("TPOT", report.tpot_s)]
    kept = " and ".join(f"{name} <= {1e3 * bound_s:g} ms" for name, bound_s in named if bound_s is not None)
    bounds = f"within {kept}" if kept else "without bounds"
    part = "" if report.devices == report.box.count else f"{report.devices} of "
    return (
        f"{report.model.name} ({words.parameter_words(report.model.parameters)}) on {part}"
        f"{report.box.name}: {report.load.input_tokens:,} tokens in, {report.load.output_tokens or 0:,} out, {bounds}; "
        f"cache in {report.cache_dtype}; most output tokens/s first, prompts in between counted"
    )


def _cells(each: Candidate, *, wide: bool) -> list[str]:
    times = f"{each.replicas} x " if each.replicas > 1 else ""
    cells = [
        f"{times}{each.layout.name.replace(' ', '')}",
        _weights(each.storage),
        f"{each.concurrency:,}",
        words.range_words(each.output_tokens_per_s),
        words.time_range_words(each.tpot_s),
        words.time_range_words(each.ttft_s),
        each.bound if wide else words.SHORT_BOUND.get(each.bound, each.bound),
    ]
    if wide:
        cells += [words.rounded_words(each.tokens_per_s_per_device), f"{each.memory.cache_tokens:,}"]
    return cells


def _counts(refused: Sequence[Refused]) -> str:
    counted = Counter(each.kind for each in refused)
    told = ", ".join(f"{number} {kind}" for kind, number in counted.most_common())
    return f"left out: {told}. Why: --all"


def _left_out(refused: Sequence[Refused]) -> RenderableType:
    """Layouts that one reason keeps out, together."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", max_width=24)
    table.add_column(overflow="fold")
    together: dict[tuple[str, str], list[str]] = {}
    for each in refused:
        together.setdefault((each.kind, each.reason), []).append(f"{each.layout.name} {each.storage}")
    for (kind, reason), names in sorted(together.items()):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")  # noqa: PLR2004
        table.add_row(Text(kind, style="dim"), Text(shown), Text(reason))
    return table
