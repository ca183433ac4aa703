"""The report: one self-contained HTML file, and the same facts as Markdown. Formatting only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from assay.campaign.gates import failed_gates
from assay.plan.proof import unproved
from assay.records.rehearsal import StepFacts
from assay.records.run import RunStatus
from assay.records.spec import MAIN_POINT
from assay.records.state import CampaignState, RunRecord
from assay.records.text import shown
from assay.records.verdict import VerdictKind
from assay.render import rehearsal_view, stack_facts, words
from assay.render import report_facts as facts
from assay.render.bottleneck_facts import Bottlenecks
from assay.render.latency_facts import latency_notes
from assay.render.next_facts import next_up
from assay.render.pages import environment, html_page
from assay.render.report_charts import Latencies, charts, fronts
from assay.render.scoring_facts import ABOUT_LEFT, scoring
from assay.render.soak_facts import growth_note
from assay.units import GIB_BYTES

MARKDOWN_SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": " "} | {one: f"\\{one}" for one in "|\\[]*`"}
CODE_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
"""What stands between two back ticks; every other one is escaped, so that none opens what another further on closes."""
INTERVAL = re.compile(r"\\\[([+-]?[\d.,]+%?, [+-]?[\d.,]+%?)\\\](?![(\[:])")
"""Numbers between escaped brackets with nothing behind them that makes a link: readable without the back slashes."""
CODE_SPECIAL = {"|": "\\|", "`": "'", "\n": " "}


def report_html(
    state: CampaignState,
    *,
    launch_commands: Mapping[str, str],
    latencies: Latencies | None,
    simulated: bool = False,
    step: StepFacts | None = None,
    bottlenecks: Bottlenecks | None = None,
) -> str:
    """The whole report as one page without a single outside reference.

    Args:
        state: the campaign, finished or not.
        launch_commands: "baseline" and, when something was adopted, "stack".
        latencies: seconds of single requests by arm and metric ("ttft_s", "tpot_s"); None without a confirmation.
        simulated: label everything as simulated; an engine that simulates is labelled in any case.
        step: where a step of the target's load goes, by calculation.
        bottlenecks: of the baseline and of the stack, where they can be calculated.
    """
    simulated = simulated or words.is_simulated(state)
    mark = f"{words.SIMULATED}: " if simulated else ""
    drawn = {"charts": charts(state, latencies, mark), "fronts": fronts(state, mark)}
    context = _context(state, launch_commands, simulated=simulated, step=step, bottlenecks=bottlenecks)
    return html_page(_environment(autoescape=True), "report.html.j2", {**context, **drawn})


def report_markdown(
    state: CampaignState,
    *,
    launch_commands: Mapping[str, str],
    simulated: bool = False,
    step: StepFacts | None = None,
    bottlenecks: Bottlenecks | None = None,
) -> str:
    """The same facts as tables."""
    simulated = simulated or words.is_simulated(state)
    context = _context(state, launch_commands, simulated=simulated, step=step, bottlenecks=bottlenecks)
    return shown(_environment(autoescape=False).get_template("report.md.j2").render(context))


@cache
def _environment(*, autoescape: bool) -> Environment:
    page = environment(autoescape=autoescape)
    page.filters |= {
        "effect": words.effect_words,
        "range": words.range_words,
        "verdict": words.verdict_words,
        "why": words.reason_words,
        "held": words.held_words,
        "duration": words.duration_words,
        "flags": words.flag_words,
        "ms": words.milliseconds_words,
        "share": words.share_words,
        "number": words.number_words,
        "drift": words.drift_words,
        "cell": _cell,
        "code_cell": _code_cell,
        "prose": _prose,
        "gpus": words.gpu_words,
        "sentence": words.sentence_words,
        "opened": words.opened_words,
        "code": _code,
        "span": words.span_words,
        "beside_line": words.beside_line,
    }
    return page


def _context(
    state: CampaignState,
    launch_commands: Mapping[str, str],
    *,
    simulated: bool,
    step: StepFacts | None,
    bottlenecks: Bottlenecks | None,
) -> dict[str, Any]:
    metric = state.spec.objective.metric
    invalid = [run for run in state.runs if run.outcome and run.outcome.status is RunStatus.INVALID]
    baseline, calibration = facts.baseline_runs(state), facts.calibration_runs(state)
    rows, points = facts.todo_rows(state), stack_facts.operating_points(state)
    return {
        "state": state,
        "spec": state.spec,
        "headline": state.headline,
        "headline_words": words.headline_words(state),
        "growth_note": growth_note(state),
        "next_up": next_up(state, bottlenecks),
        "measuring": words.measuring_words(state),
        "uncharged": words.uncharged_words(state),
        "waited": words.waited_words(state),
        "waited_links": facts.references_to(state, facts.waiting_runs(state)),
        "simulated": simulated,
        **rehearsal_view.report_facts(state, step, facts.median_value(state, baseline)),
        "commands": launch_commands,
        "rows": rows,
        "has_open": any(row.so_far for row in rows),
        "failures": facts.failure_rows(state),
        "other_failures": facts.other_failures(state),
        "latency_notes": latency_notes(state),
        "quantiles": facts.quantile_rows(state),
        "answers": facts.answer_rows(state),
        "about_answers": " ".join(f"{told[0].upper()}{told[1:]}." for told in words.answers_words(state)),
        "gates": facts.gate_rows(state),
        "invalid": invalid,
        "unproved": [(one.id, missing) for one in state.hypotheses if (missing := unproved(one, state))],
        "baseline_median": facts.median_value(state, baseline),
        "baseline_links": facts.references_to(state, baseline),
        "calibration_links": facts.references_to(state, calibration),
        "headline_links": facts.references(state, state.headline.runs if state.headline else []),
        "client_cpu": facts.largest(state, "client_cpu_share"),
        "client_lag": facts.largest(state, "client_max_lag_s"),
        "counts": _counts(state),
        "scoring": scoring(state),
        "about_left": ABOUT_LEFT,
        "point_labels": stack_facts.point_labels(state),
        "operating_points": points,
        "judged_over": stack_facts.judged_over(points),
        "main_point": f"{MAIN_POINT} ({state.spec.workload.concurrency} in flight)",
        "points": stack_facts.point_rows(state),
        "members": stack_facts.member_rows(state),
        "runs": [_run_row(state, run) for run in state.runs],
        "metric_label": words.UNITS[metric][0],
        "value": lambda number: words.metric_words(number, metric),
        "gib": lambda size: f"{size / GIB_BYTES:.1f} GiB",
        "failed_gates": _failed_gates,
        "nothing": words.NOTHING,
    }


def _counts(state: CampaignState) -> dict[str, int]:
    verdicts = list(state.verdicts.values())
    return {
        "hypotheses": len(state.hypotheses),
        "verdicts": len(verdicts),
        "adopted": sum(verdict.kind is VerdictKind.ADOPTED for verdict in verdicts),
        "runs": sum(run.outcome is not None for run in state.runs),
    }


def _run_row(state: CampaignState, run: RunRecord) -> dict[str, Any]:
    outcome, metric = run.outcome, state.spec.objective.metric
    measures = outcome.measures if outcome else None
    windows = measures.windows if measures else []
    return {
        "id": run.intent.run_id,
        "purpose": run.intent.purpose.value,
        "arm": run.intent.arm.label,
        "seed": run.intent.seed,
        "status": outcome.status.value if outcome else "in flight",
        "reason": outcome.reason if outcome else run.intent.why,
        "value": words.metric_number(facts.objective(state, run), metric),
        "windows": " ".join(f"{window.output_tokens_per_s:.0f}" for window in windows) or words.NOTHING,
        "ttft": words.milliseconds_words(measures.ttft.p50_s if measures else None),
        "tpot": words.milliseconds_words(measures.tpot.p50_s if measures else None),
        "duration": f"{outcome.duration_s:.1f}" if outcome else words.NOTHING,
    }


def _code(text: str) -> Markup:
    """Text in which a command stands between back ticks."""
    pieces = enumerate(CODE_SPAN.split(text))
    return Markup("").join(Markup("<code>{}</code>").format(one) if at % 2 else one for at, one in pieces)


def _failed_gates(run: RunRecord) -> list[Any]:
    return failed_gates(run.outcome.gates) if run.outcome else []


def _cell(text: object) -> str:
    """Text from outside, as a cell of a Markdown table: neither markup, link or image, nor a new column."""
    pieces = CODE_SPAN.split(str(text))
    return "".join(f"`{_code_cell(one)}`" if at % 2 else _plain(one) for at, one in enumerate(pieces))


def _prose(text: object) -> str:
    """The same where no table is, so that nothing between back ticks needs an escape: what is copied is as it was."""
    return "".join(f"`{one}`" if at % 2 else _plain(one) for at, one in enumerate(CODE_SPAN.split(str(text))))


def _plain(text: str) -> str:
    return INTERVAL.sub(r"[\1]", "".join(MARKDOWN_SPECIAL.get(letter, letter) for letter in text))


def _code_cell(text: object) -> str:
    """The same between back ticks, where nothing is markup but a back tick."""
    return "".join(CODE_SPECIAL.get(letter, letter) for letter in str(text))
