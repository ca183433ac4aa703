"""Tables and panels for the terminal; readable without colour and at 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from assay.plan.runs import has_measured
from assay.records.hypothesis import Hypothesis
from assay.records.machine import Machine
from assay.records.state import CampaignState
from assay.records.verdict import Verdict, VerdictKind
from assay.records.views import NextStep, TodoItem, Verification
from assay.render import words
from assay.render.rehearsal_view import scaled_headline
from assay.render.so_far import NOT_FINAL, SoFar, recorded, so_far
from assay.render.soak_facts import growth_note

STYLE = {
    VerdictKind.ADOPTED: "bold green",
    VerdictKind.WORSE: "red",
    VerdictKind.WRONG_OUTPUT: "red",
    VerdictKind.BLOCKED: "yellow",
    VerdictKind.UNSTABLE: "yellow",
    VerdictKind.NOT_APPLIED: "yellow",
}
STATUS_STYLE = {"in_progress": "bold", "cancelled": "dim"}
NAME_WIDTH = 22
VERDICT_WIDTH = 16
"""What is left for a verdict at 80 columns."""
ASSUMED = "assumed: nothing was measured yet"
WIDE = 110
"""Columns from which on a verdict's tier and reason fit beside it."""


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """The verdicts; where the terminal is wide enough, each with its tier and reason."""

    state: CampaignState

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Choose the columns by the width there is."""
        wide = options.max_width >= WIDE
        yield from _simulated(self.state)
        headings = ["#", "optimization", *(["tier"] if wide else []), "predicted", "measured", "verdict"]
        table = _table(*headings, *(["why"] if wide else []))
        table.columns[0].justify = "right"
        table.columns[1].min_width = NAME_WIDTH
        for column in table.columns[-4 if wide else -3 : -2 if wide else -1]:
            column.no_wrap = True
        open_ones = so_far(self.state)
        for hypothesis in self.state.hypotheses:
            verdict, found = self.state.verdicts.get(hypothesis.id), open_ones.get(hypothesis.id)
            cells: list[RenderableType] = [str(hypothesis.number), _broken(hypothesis.id, NAME_WIDTH)]
            cells += [str(hypothesis.optimization.tier)] if wide else []
            cells.append(words.short_range_words(hypothesis.predicted))
            cells.append(words.effect_words(verdict.effect if verdict else found.effect if found else None))
            style = STYLE.get(verdict.kind, "") if verdict else "dim"
            said = _verdict_cell(self.state, hypothesis, verdict, found)
            cells.append(Text(_broken(said, NAME_WIDTH if wide else VERDICT_WIDTH), style=style))
            cells += [Text(found.stands if found else words.reason_words(verdict))] if wide else []
            table.add_row(*cells)
        yield table


def verdict_table(state: CampaignState) -> RenderableType:
    """Every hypothesis with what was predicted, what was measured, and what was concluded."""
    return VerdictTable(state)


def reasons(state: CampaignState) -> RenderableType:
    """Why each hypothesis that was not adopted was not, with the engine's own line."""
    lines: list[Text] = []
    for hypothesis in state.hypotheses:
        verdict = state.verdicts.get(hypothesis.id)
        if verdict is None or verdict.kind is VerdictKind.ADOPTED:
            continue
        lines.append(
            Text.assemble((f"{hypothesis.id}: {words.verdict_words(verdict)}: ", "bold"), words.beside_cause(verdict))
        )
        if verdict.line and verdict.line not in verdict.reason:
            lines.append(Text(f"    {verdict.line}", style="dim"))
    return Group(*lines)


def headline_panel(state: CampaignState) -> RenderableType:
    """The answer."""
    headline = state.headline
    title = f"headline ({words.SIMULATED})" if words.is_simulated(state) else "headline"
    if headline is None:
        return Panel("The campaign is not finished.", title=title, box=box.ROUNDED)
    metric = state.spec.objective.metric
    text = Text(words.headline_words(state), style="bold green" if headline.confirmed else "bold")
    values = f"baseline {words.metric_words(headline.baseline_median, metric)}"
    if headline.stack:
        values += f", stack {words.metric_words(headline.stack_median, metric)} (medians of the confirmation's runs)"
    notes = [note for note in (scaled_headline(state), growth_note(state)) if note]
    return Panel(Group(text, Text(values), *(Text(note, style="dim") for note in notes)), title=title, box=box.ROUNDED)


def status_view(state: CampaignState, remaining_s: float) -> RenderableType:
    """Where the campaign is."""
    ended = [run for run in state.runs if run.outcome]
    spent, total = words.duration_words(state.charged_s), words.duration_words(state.spec.budget.total_s)
    beside = f"{words.waited_words(state)}{words.uncharged_words(state)}"
    facts = _facts(
        [
            ("campaign", state.spec.name),
            ("model", f"{state.model.name or state.model.path} {state.model.quantization}"),
            ("engine", state.build.version),
            ("machine", _machine(state.machine)),
            ("runs", f"{len(ended)} ended, {spent} of {total} measured{beside}"),
            ("noise", words.noise_words(state.calibration) if state.calibration else "not calibrated yet"),
            ("verdicts", f"{len(state.verdicts)} of {len(state.hypotheses)}"),
            *([("on trial", _on_trial(state))] if not state.headline and state.hypotheses else []),
            *(("answers", told) for told in words.answers_words(state)),
            ("stack", " + ".join(state.stack) or "the baseline"),
            ("left", "finished" if state.headline else _left(state, remaining_s)),
        ]
    )
    answer = [Text(words.headline_words(state), style="bold")] if state.headline else []
    return Group(*_simulated(state), facts, *answer)


def _machine(machine: Machine) -> str:
    gpus = f"{words.gpu_words(machine.gpus)}; " if machine.gpus else ""
    return f"{gpus}{machine.cpu_model}, {machine.usable_cores} cores ({machine.fingerprint})"


def _on_trial(state: CampaignState) -> str:
    """Effects that are not final, a line each."""
    told = [
        f"{name} {words.effect_words(effect)}, {NOT_FINAL}; {stands}" if effect else f"{name}: {stands}"
        for name, (effect, stands) in recorded(state).items()
    ]
    return "\n".join(told) or words.NOTHING


def _left(state: CampaignState, remaining_s: float) -> str:
    assumed = "" if has_measured(state) or not remaining_s else f", {ASSUMED}"
    return f"about {words.duration_words(remaining_s)}{assumed}"


def todo_table(items: Sequence[TodoItem], *, with_ranges: bool = False) -> RenderableType:
    """The todo; predicted ranges where earlier verdicts correct them, or where they are asked for."""
    known = next((item.corrected for item in items if item.corrected), None)
    with_ranges = with_ranges or known is not None
    table = _table("id, content", "status", "priority", "tier", *(["predicted"] if with_ranges else []), "verdict")
    table.columns[0].min_width = NAME_WIDTH
    table.columns[3].justify = "right"
    for column in [*table.columns[1:3], *table.columns[4:-1]]:
        column.no_wrap = True
    told = [f"{words.SIMULATED}: nothing here was measured on a machine"] if any(i.simulated for i in items) else []
    told += [f"predicted: as stated; => corrected by {words.corrected_by(known)}"] if known else []
    table.caption = "\n".join(told) or None
    for item in items:
        verdict = words.verdict_words(item.verdict) if item.verdict else words.NOTHING
        content = Text.assemble(_broken(item.id, NAME_WIDTH), "\n", (item.content, "dim"))
        status = item.status.replace("in_progress", "in progress")
        style = STATUS_STYLE.get(item.status, "")
        predicted = [_predicted(item)] if with_ranges else []
        table.add_row(content, status, item.priority, str(item.tier), *predicted, verdict, style=style)
    return table


def _predicted(item: TodoItem) -> str:
    stated = words.short_range_words(item.predicted) if item.predicted else words.NOTHING
    if item.corrected is None:
        return stated
    return f"{stated}\n=> {words.short_range_words((item.corrected.low, item.corrected.high))}"


def passed_over_table(passed_over: Mapping[str, str]) -> RenderableType:
    """Catalogue entries that do not apply here."""
    table = _table("does not apply here", "because")
    for name, reason in passed_over.items():
        table.add_row(_broken(name, NAME_WIDTH), reason)
    return table


def next_view(step: NextStep) -> RenderableType:
    """The next step, with its reason and cost."""
    cost = f" ({words.duration_words(step.expected_s)})" if step.expected_s else ""
    assumed = f", {ASSUMED}" if step.times_assumed and step.remaining_s else ""
    return Group(
        *([_mark()] if step.simulated else []),
        Text(step.text + cost, style="bold"),
        Text(f"why: {step.why}"),
        Text(f"left: about {words.duration_words(step.remaining_s)} of measuring{assumed}"),
        *_worth(step),
    )


def _worth(step: NextStep) -> list[RenderableType]:
    """Why this candidate and not another: what each promises for its time."""
    if not step.candidates:
        return []
    table = _table("candidate", "brackets", "expected gain", "worth having", "costs")
    for one in step.candidates:
        table.add_row(
            _broken(one.candidate, NAME_WIDTH),
            str(one.brackets),
            f"{100 * one.expected_gain:+.1f}%",
            f"{100 * one.chance_worth_having:.0f}%",
            words.duration_words(one.cost_s),
        )
    found = f"; the screen finds {100 * step.detectable:.0f}% with 80% power" if step.detectable else ""
    meaning = (
        "worth having: chance that its true effect reaches objective.min_effect; "
        "the report's chance of adoption is another one: that the estimate from its runs is judged a gain"
    )
    rule = "each gets its fewest brackets first, in random order; a short budget goes to the most gain for its time"
    return [Text(""), table, Text(f"{rule}{found}", style="dim"), Text(meaning, style="dim")]


def verification_view(found: Verification) -> RenderableType:
    """Whether the record proves itself."""
    if found.ok:
        text = f"the record holds: {found.num_events} events, {found.num_runs} runs, last hash {found.last_hash[:16]}"
        return Text(text, style="green")
    return Group(Text("the record does not hold:", style="bold red"), *(Text(f"  {p}") for p in found.problems))


def _broken(name: str, width: int) -> str:
    """A long id over several lines, broken at its hyphens."""
    return "\n".join(wrap(name, width))


def _simulated(state: CampaignState) -> list[Text]:
    return [_mark()] if words.is_simulated(state) else []


def _mark() -> Text:
    return Text(f"{words.SIMULATED}: nothing here was measured on a machine", style="bold reverse")


def _verdict_cell(state: CampaignState, hypothesis: Hypothesis, verdict: Verdict | None, found: SoFar | None) -> str:
    if verdict is not None:
        return words.verdict_words(verdict)
    if hypothesis.status != "planned":
        return hypothesis.status
    if found is not None:
        return NOT_FINAL
    return "on trial" if hypothesis.id in state.screened else "not tried"


def _facts(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value in rows:
        table.add_row(Text(name, style="bold"), Text(value))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
