"""What is shown of rehearsals: the outlook of a campaign, scaled numbers read back, and where a simulated step goes."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from assay.records.rehearsal import Chance, Outlook, StepFacts
from assay.records.state import CampaignState
from assay.render import words

TIME_SCALE = "--time-scale"
MEASURING = "measuring"
SHOWN_OPS = 8
SHOWN_CEILINGS = 8
NAME_WIDTH = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack:
    """One number as the scaled server gave it, and as it reads in the simulated world."""

    name: str
    measured: str
    simulated: str


def outlook_view(outlook: Outlook) -> RenderableType:
    """The answer of `assay rehearse`."""
    head = Text(f"{words.SIMULATED}: {outlook.campaigns} campaigns in memory; nothing was launched", style="bold")
    return Group(
        head,
        _facts(outlook),
        Text(""),
        _candidates(outlook),
        _power(outlook),
        Text(""),
        *(Text(f"advice: {sentence}", style="bold") for sentence in outlook.advice),
        *(Text(f"assumed: {sentence}", style="dim") for sentence in outlook.assumptions),
    )


def report_facts(state: CampaignState, step: StepFacts | None, baseline: float | None) -> dict[str, Any]:
    """What the report's templates show of a rehearsal, by their names; all of it empty in a real campaign."""
    simulated = words.is_simulated(state)
    headline = state.headline
    arms = (headline.baseline_median or baseline, headline.stack_median) if headline else (baseline, None)
    return {
        "scaled": scale_sentence(state) if simulated else None,
        "read_back": read_back(state, *arms) if simulated else [],
        "step": step_view(step),
    }


def time_scale(state: CampaignState) -> float:
    """Seconds of the simulated world in a second of measuring; 1 where nothing is scaled."""
    value = state.spec.target.flags.get(TIME_SCALE, 1.0)
    return float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else 1.0


def scale_sentence(state: CampaignState) -> str | None:
    """How the numbers of a scaled campaign are to be read; None where nothing is scaled."""
    scale = time_scale(state)
    if scale == 1:
        return None
    return (
        f"Time runs {scale:g} times as fast in the simulated world: launches, steps, noise, drift. All numbers "
        f"are as the scaled server gave them to a real client; in the simulated world rates are 1/{scale:g} of them, "
        f"and times {scale:g} times as long. Effects in percent are the same in both."
    )


def scaled_headline(state: CampaignState) -> str:
    """What has to be known of a headline's medians; empty where nothing is scaled."""
    headline = state.headline
    if headline is None or not words.is_simulated(state) or (told := scale_sentence(state)) is None:
        return ""
    rows = read_back(state, headline.baseline_median, headline.stack_median)
    medians = [f"{row.name} {row.simulated}" for row in rows if row.name != MEASURING]
    return f"{told} There: {', '.join(medians)}." if medians else told


def read_back(state: CampaignState, baseline: float | None, stack: float | None) -> list[ReadBack]:
    """The medians of both arms, measured and in the simulated world; empty where nothing is scaled."""
    scale, metric = time_scale(state), state.spec.objective.metric
    if scale == 1:
        return []
    factor = 1 / scale if metric.endswith("per_s") else scale
    rows = [
        ReadBack(
            name=name,
            measured=words.metric_words(value, metric),
            simulated=words.metric_words(value * factor, metric),
        )
        for name, value in (("baseline", baseline), ("stack", stack))
        if value is not None
    ]
    spent, spent_s = words.duration_words, state.charged_s
    rows.append(ReadBack(name=MEASURING, measured=spent(spent_s), simulated=spent(spent_s * scale)))
    return rows


def step_view(facts: StepFacts | None) -> dict[str, Any] | None:
    """The tables of the report's section on the bottleneck."""
    if facts is None:
        return None
    step = facts.step
    shown = step.ops[:SHOWN_OPS]
    rest = sum(op.time_s.mid for op in step.ops[SHOWN_OPS:])
    rows: list[tuple[str, str, str, str, str]] = [
        (op.name, _ms(op.time_s.mid), _ms(op.floor_s), f"{step.share(op):.0%}", op.bound) for op in shown
    ]
    rows.append(("everything else", _ms(rest + step.overhead_s.mid), "", _share(rest + step.overhead_s.mid, facts), ""))
    acting = [one for one in facts.ceilings if one.applies and one.gain.high >= 0.0005][:SHOWN_CEILINGS]  # noqa: PLR2004
    inert = [one for one in facts.ceilings if not one.applies]
    return {
        "sentence": _bottleneck(facts),
        "capacity": _capacity(facts),
        "rows": rows,
        "acting": [(one.title, _gain(one.gain.low, one.gain.mid, one.gain.high), one.reason) for one in acting],
        "inert": [(one.title, one.reason) for one in inert],
    }


def _bottleneck(facts: StepFacts) -> str:
    step = facts.step
    parts: dict[str, float] = {}
    for op in step.ops:
        name = "all-reduces" if op.collective == "all_reduce" else op.part.replace("_", " ")
        parts[name] = parts.get(name, 0.0) + op.time_s.mid
    ranked = sorted(parts.items(), key=lambda item: -item[1])[:3]
    told = ", ".join(f"{name} {_share(seconds, facts)}" for name, seconds in ranked)
    experts = ""
    if step.experts_hit is not None and step.tokens_per_expert is not None:
        experts = f"; {step.experts_hit:.0f} experts are touched, by {step.tokens_per_expert:.1f} tokens each"
    return (
        f"On {facts.machine}, {step.layout.name}, a step of decode with "
        f"{step.point.sequences:,} sequences of {step.point.context_tokens:,} tokens takes "
        f"{_ms(step.time_s.mid)} ms ({_ms(step.time_s.low)} to {_ms(step.time_s.high)}; floor {_ms(step.floor_s)}): "
        f"{told}{experts}. The largest part is bound by {step.bound}."
    )


def _capacity(facts: StepFacts) -> str:
    fits = facts.memory.sequences(facts.tokens_each)
    said = f"The cache holds {facts.memory.cache_tokens:,} tokens: {fits:,} requests of {facts.tokens_each:,} at once"
    said += f"; the workload asks for {facts.asked:,}"
    if facts.running_limit is not None and facts.running_limit > fits:
        left = facts.memory.cache_tokens // facts.running_limit
        said += (
            f". The engine's limit of {facts.running_limit:,} would leave {left:,} tokens for each: it does not bind"
        )
    return said + "."


def _facts(outlook: Outlook) -> Table:
    hours = f"{_hours(outlook.hours_median)} (90%: {_hours(outlook.hours_p90)}) of {_hours(outlook.budget_hours)}"
    found = (
        "no effect of those tried" if outlook.detectable is None else f"effects of {outlook.detectable:.1%} and above"
    )
    table = Table.grid(padding=(0, 2))
    for name, value in (
        ("measuring", f"{hours}; {outlook.runs_median:.0f} runs; {outlook.ended_by_budget:.0%} end by the budget"),
        ("adopted", f"{outlook.adopted_mean:.2f} on average, {outlook.adopted_useless:.3f} of them useless"),
        ("found with 80%", found),
        ("false adoption", f"{_chance(outlook.false_adoption)} of campaigns in which nothing helps"),
        ("noise", f"{100 * outlook.run_sd:.2f}% from run to run ({outlook.run_sd_source})"),
        ("a run", f"{words.duration_words(outlook.run_s)} ({outlook.run_s_source})"),
    ):
        table.add_row(Text(name, style="bold"), Text(value))
    return table


def _candidates(outlook: Outlook) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("hypothesis", overflow="fold", min_width=NAME_WIDTH)
    table.add_column("predicted", no_wrap=True)
    table.add_column("ends as")
    for one in outlook.candidates:
        ranked = sorted(one.verdicts.items(), key=lambda item: -item[1])
        ends = ", ".join(f"{kind} {share:.0%}" for kind, share in ranked)
        name = "\n".join(wrap(one.id, NAME_WIDTH))
        table.add_row(name, words.short_range_words(one.predicted), ends)
    return table


def _power(outlook: Outlook) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("a true effect of", justify="right")
    table.add_column("is adopted in")
    for point in outlook.power:
        table.add_row(f"{point.effect:+.1%}", _chance(point.adopted))
    return table


def _chance(found: Chance) -> str:
    return f"{found.share:.1%} [{found.low:.1%}, {found.high:.1%}]"


def _hours(value: float) -> str:
    return words.duration_words(value * 3600)


def _ms(seconds: float) -> str:
    return words.milliseconds_words(seconds)


def _share(seconds: float, facts: StepFacts) -> str:
    return f"{seconds / facts.step.time_s.mid:.0%}"


def _gain(*gains: float) -> str:
    low, mid, high = (f"{100 * gain:+.1f}%" for gain in gains)
    return f"{low} to {high}, {mid} expected"
