"""The catalogue for the terminal: a table of entries, one entry whole, a table of what applies."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assay.records.hypothesis import Optimization
from assay.records.reasoning import PlanReasoning, Reasoning

Entries = Mapping[str, Mapping[str, Sequence[Optimization]]]
"""By id and engine: variants."""
SHORT = {"llamacpp": "L", "vllm": "V", "sglang": "S", "trtllm": "T", "rehearsal": "R"}
WIDE = 110
"""Columns from which on what an entry does fits beside its figures."""
FIGURES, LEAST_NAME = 42, 12
"""Columns that tier, engines and prior take; what a name gets at least."""
OUTCOMES = ("planned", "blocked", "skipped")


@dataclass(frozen=True, slots=True)
class CatalogueTable:
    """One row an entry; what it does stands below its name where the terminal is narrow. Figures are never cut."""

    entries: Entries

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Choose the columns by the width there is."""
        wide = options.max_width >= WIDE
        table = _table("entry", "tier", "engines", "prior", *(["what"] if wide else []))
        for column in table.columns[0 if wide else 1 : 4]:
            column.no_wrap = True
        for name, engines in self.entries.items():
            first = _first(engines)
            figures = (str(first.tier), _engines(engines), _range(first.predicted))
            if wide:
                table.add_row(name, *figures, first.title)
            else:
                broken = "\n".join(wrap(name, max(LEAST_NAME, options.max_width - FIGURES)))
                table.add_row(Text.assemble(broken, "\n", (first.title, "dim")), *figures)
        yield table


def catalogue_table(entries: Entries) -> RenderableType:
    """One row an entry; the rest is shown of one entry."""
    legend = "engines: L llama.cpp, V vLLM, S SGLang, T TensorRT-LLM; in brackets: has to be made first"
    return Group(CatalogueTable(entries), Text(legend, style="dim"))


def entry_view(name: str, engines: Mapping[str, Sequence[Optimization]]) -> RenderableType:
    """Everything that one entry says."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=11, no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for label, text in _entry_rows(name, engines):
        grid.add_row(label, Text(text))
    return grid


def applied_list(plan: PlanReasoning) -> RenderableType:
    """What of the catalogue is planned, blocked and skipped on a target, and why."""
    parts: list[RenderableType] = [Text(sentence) for sentence in plan.surroundings.sentences]
    parts += [Text(f"today's command: {text}") for text in plan.baseline]
    for outcome in OUTCOMES:
        if told := [one for one in plan.entries.values() if one.outcome == outcome]:
            parts += [Text(""), Text(f"{outcome} ({len(told)})", style="bold"), *map(_thought, told)]
    return Group(*parts)


def _thought(thought: Reasoning) -> RenderableType:
    """Name, tier and numbers on one line; why below it."""
    here = thought.ceiling
    ceiling = f", at most {100 * here.gain.high:+.3g}% by calculation" if here and here.applies else ""
    predicted = f"{_range((thought.range.low, thought.range.high))}{ceiling}" if thought.range else ""
    waits = f"after {', '.join(thought.waits_for)}" if thought.waits_for else ""
    why = thought.reason or waits or (here.reason if here else "")
    style = "" if thought.outcome == "planned" else "dim"
    line = Text(f"  {thought.id} (tier {thought.tier}) {predicted}".rstrip(), style=style)
    return Group(line, Padding(Text(why, style=style), (0, 0, 0, 6))) if why else line


def _entry_rows(name: str, engines: Mapping[str, Sequence[Optimization]]) -> Iterator[tuple[str, str]]:
    first = _first(engines)
    yield name, f"{first.title} (tier {first.tier}, {first.numerics})"
    if first.expectation:
        yield "expectation", first.expectation
    yield "mechanism", first.mechanism + (f" [{first.mechanism_id}]" if first.mechanism_id else "")
    if first.rationale:
        yield "why", " ".join(first.rationale.split())
    yield "ceiling", first.ceiling or "no term of the estimate bounds it"
    yield "prior", f"{_range(first.predicted)} on the objective"
    if first.regime:
        condition = f" [{first.regime_when}]" if first.regime_when != "true" else ""
        yield "pays", first.regime + condition
    yield "applies", first.applies_when
    yield from _bonds(first)
    yield from _claims(first)
    for engine, variants in engines.items():
        for one in variants:
            proof = f"; in force when {_proof(one.verify)}" if one.verify else ""
            yield engine, f"{one.versions or 'any version'}: {_change(one)}{proof}"


def _bonds(first: Optimization) -> Iterator[tuple[str, str]]:
    if first.excludes:
        yield "not with", ", ".join(first.excludes)
    if first.requires:
        yield "requires", ", ".join(first.requires)


def _claims(first: Optimization) -> Iterator[tuple[str, str]]:
    if first.risk:
        yield "risk", first.risk
    for risk in first.risks:
        yield "risk", f"{risk.what} ({risk.source})" if risk.source else risk.what
    for claim in first.reported:
        yield "reported", f"{claim.gain}{'; ' if claim.where else ''}{claim.where} ({claim.source})"


def _change(one: Optimization) -> str:
    words = [f"{name}={shlex.quote(value)}" for name, value in one.env.items()]
    for name, value in one.flags.items():
        words.append(name if value is True else f"{name} off" if value is False else f"{name} {value}")
    words += [f"without {name}" for name in one.remove_flags]
    words += [f"model made again in {one.artifact.type}"] if one.artifact else []
    words += ["searched: " + ", ".join(knob.flag for knob in one.dial.knobs)] if one.dial else []
    return "  ".join(words) or f"needs work: {one.needs_work}"


def _proof(verify: str) -> str:
    """`a = 1; b = 2 | 3` as `a = 1 and b = 2 or 3`."""
    return " and ".join(part.strip().replace(" | ", " or ") for part in verify.split(";"))


def _engines(engines: Mapping[str, Sequence[Optimization]]) -> str:
    """In the order of the legend; those of other packages behind."""
    order = [*(name for name in SHORT if name in engines), *(name for name in engines if name not in SHORT)]
    return " ".join(
        f"({SHORT.get(name, name)})" if all(one.needs_work for one in engines[name]) else SHORT.get(name, name)
        for name in order
    )


def _first(engines: Mapping[str, Sequence[Optimization]]) -> Optimization:
    return next(iter(engines.values()))[0]


def _range(bounds: tuple[float, float]) -> str:
    low, high = (100 * bound for bound in bounds)
    return f"{low:+.3g} to {high:+.3g}%"


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table
