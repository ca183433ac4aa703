"""A comparison in the terminal: what a person can quote, the sides, and every run as a dot."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from rich import box
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from assay.records.bench import Comparison, Side
from assay.render import text_plots
from assay.render.bench_view import facts_grid
from assay.render.bench_words import METRICS, percent_words, value_words
from assay.render.words import NOTHING, number_words

HEADINGS: dict[str, JustifyMethod] = {
    "side": "left",
    "verdict": "left",
    "against the first": "left",
    "runs": "right",
    "median": "right",
}
STYLE = {"better": "bold green", "worse": "bold red", "undecided": "yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRow:
    """One side in words."""

    side: Side
    verdict: str
    effect: str
    num_runs: int
    median: str
    """With its unit."""
    median_number: str
    problems: list[str]
    """Its runs that do not count, with the reason."""


def side_rows(comparison: Comparison) -> list[SideRow]:
    """Every side, the reference first."""
    return [_side_row(comparison, side, is_first=index == 0) for index, side in enumerate(comparison.sides)]


def _side_row(comparison: Comparison, side: Side, *, is_first: bool) -> SideRow:
    values = comparison.values.get(side.label, [])
    median = statistics.median(values) if values else None
    _, factor = METRICS.get(comparison.metric, ("", 1.0))
    known = side.label in comparison.effects
    verdict = "the reference" if is_first else comparison.verdicts.get(side.label, "") if known else "not measured"
    return SideRow(
        side=side,
        verdict=str(verdict),
        effect=percent_words(comparison.percent(side.label)) if known else NOTHING,
        num_runs=len(values),
        median=value_words(median, comparison.metric),
        median_number=NOTHING if median is None else number_words(factor * median),
        problems=comparison.invalid.get(side.label, []),
    )


def undecidable(comparison: Comparison) -> list[str]:
    """Labels of the sides about which nothing can be said: too few valid runs."""
    return [side.label for side in comparison.sides[1:] if side.label not in comparison.effects]


def question_words(comparison: Comparison) -> str:
    """What was asked, and how sure the answer is."""
    unit, _ = METRICS.get(comparison.metric, (comparison.metric, 1.0))
    better = "higher" if comparison.higher_is_better else "lower"
    rounds = f"{comparison.num_rounds} round{'' if comparison.num_rounds == 1 else 's'}"
    same = f"within \N{PLUS-MINUS SIGN}{100 * comparison.min_effect:g}% is the same"
    sure = f"{100 * (1 - comparison.alpha):g}% intervals, valid at every look"
    return f"{unit}, {better} is better; {rounds}; {same}; {sure}"


def compare_view(comparison: Comparison) -> RenderableType:
    """The verdicts first, then what they rest on."""
    parts: list[RenderableType] = []
    for label, sentence in comparison.sentences.items():
        parts.append(Text(sentence, style=STYLE.get(comparison.verdicts.get(label, ""), "bold")))
    parts += [Text(question_words(comparison), style="dim"), Text(""), _table(comparison), Text("")]
    parts += [facts_grid([(side.label, side.target) for side in comparison.sides]), Text("")]
    unit, factor = METRICS.get(comparison.metric, (comparison.metric, 1.0))
    strips = {label: [factor * value for value in values] for label, values in comparison.values.items()}
    lines = text_plots.strips(strips)
    if lines:
        parts.append(Text(f"each run, {unit} ({text_plots.SEVERAL}: several)", style="bold"))
        parts += [Text(line, no_wrap=True) for line in lines]
    problems = [f"{row.side.label}: {problem}" for row in side_rows(comparison) for problem in row.problems]
    if problems:
        parts.append(Text("\nruns that do not count", style="bold"))
        parts += [Text(f"! {problem}") for problem in problems]
    return Group(*parts)


def _table(comparison: Comparison) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading, justify in HEADINGS.items():
        table.add_column(heading, overflow="fold", justify=justify)
    table.columns[1].no_wrap = table.columns[2].no_wrap = True
    for row in side_rows(comparison):
        verdict = Text(row.verdict, style=STYLE.get(row.verdict, ""))
        table.add_row(row.side.label, verdict, row.effect, str(row.num_runs), row.median)
    return table
