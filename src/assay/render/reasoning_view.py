"""Why the plan holds what it holds, for the terminal: `assay plan --explain`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from assay.records.reasoning import Condition, PlanReasoning, Reasoning
from assay.records.views import Corrected, Worth
from assay.render.words import corrected_by, duration_words

MARKS = {True: "yes", False: "NO", None: "unknown"}
LABEL_WIDTH = 13


def reasoning_view(
    thought: Reasoning, plan: PlanReasoning, worth: Worth | None = None, corrected: Corrected | None = None
) -> RenderableType:
    """One entry: outcome, conditions with their values, range and bounds, worth, what is known of its flags."""
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=LABEL_WIDTH, no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for label, text in _rows(thought, plan, worth, corrected):
        table.add_row(label, text)
    return table


def _rows(
    thought: Reasoning, plan: PlanReasoning, worth: Worth | None, corrected: Corrected | None
) -> Iterator[tuple[str, RenderableType]]:
    yield thought.id, Text(f"{thought.title} (tier {thought.tier})")
    yield "outcome", Text(f"{thought.outcome}{': ' if thought.reason else ''}{thought.reason}")
    yield from _labelled("here", plan.surroundings.sentences)
    yield from _labelled("not known", plan.surroundings.missing)
    yield from _labelled("condition", [_condition(one) for one in thought.conditions])
    yield from _ceiling(thought)
    yield from _range(thought)
    if corrected is not None:
        ends = f"{_percent(corrected.low)} to {_percent(corrected.high)}"
        yield "corrected", Text(f"{ends}, by {corrected_by(corrected)}")
    if thought.in_regime is not None:
        values = ", ".join(f"{name} = {value}" for name, value in thought.regime_values.items())
        where = "this load lies where it pays" if thought.in_regime else "this load lies outside of where it pays"
        yield "regime", Text(f"{where} ({values})")
    yield from _worth(worth)
    if thought.waits_for:
        yield "waits for", Text(f"{', '.join(thought.waits_for)}: screened after that is adopted, and together with it")
    rivals = [name for name in thought.excludes if name in plan.entries]
    if rivals:
        yield "not with", Text(", ".join(rivals))
    yield from _labelled("known", thought.findings)
    yield from _labelled("note", thought.notes)


def _labelled(label: str, texts: list[str]) -> Iterator[tuple[str, RenderableType]]:
    for place, text in enumerate(texts):
        yield label if place == 0 else "", Text(text)


def _condition(one: Condition) -> str:
    values = ", ".join(f"{name} = {value}" for name, value in one.values.items())
    return f"{MARKS[one.holds]}: {one.text}{f'  [{values}]' if values else ''}"


def _ceiling(thought: Reasoning) -> Iterator[tuple[str, RenderableType]]:
    here = thought.ceiling
    if here is None:
        yield "ceiling", Text(f"none: {thought.no_ceiling}")
        return
    low, mid, high = (_percent(bound) for bound in (here.gain.low, here.gain.mid, here.gain.high))
    acts = f"at most {high} ({low} at least, {mid} expected)" if here.applies else "cannot act here"
    share = f"; touches {here.touched_share:.0%} of a decode step" if here.applies else ""
    yield "ceiling", Text(f"{here.title}: {acts}{share}")
    yield "", Text(here.reason)
    if here.prompt_reason and here.prompt_share:
        yield "", Text(f"in the prompts, {here.prompt_share:.0%} of the time: {here.prompt_reason}")
    if thought.no_ceiling:
        yield "", Text(f"not applied: {thought.no_ceiling}")


def _range(thought: Reasoning) -> Iterator[tuple[str, RenderableType]]:
    yield "prior", Text(f"{_percent(thought.prior[0])} to {_percent(thought.prior[1])}")
    if thought.range is None:
        return
    found = thought.range
    yield "predicted", Text(f"{_percent(found.low)} to {_percent(found.high)}")
    if found.low_from == found.high_from:
        yield "", Text(f"both ends: {found.low_from}")
    else:
        yield "", Text(f"lower end: {found.low_from}; upper end: {found.high_from}")


def _worth(worth: Worth | None) -> Iterator[tuple[str, RenderableType]]:
    if worth is None:
        return
    yield (
        "worth",
        Text(
            f"{_percent(worth.expected_gain)} expected, {worth.chance_worth_having:.0%} chance of an effect worth "
            f"having, for {duration_words(worth.cost_s)} of measuring"
        ),
    )


def _percent(share: float) -> str:
    return "0%" if abs(share) < 0.00005 else f"{100 * share:+.3g}%"  # noqa: PLR2004 - below what is shown
