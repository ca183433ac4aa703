"""The report's charts: which numbers of the record each of them shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from assay.plan.dial_front import outcomes
from assay.plan.dial_runs import series_of
from assay.plan.todo import todo
from assay.records.hypothesis import Hypothesis, TodoStatus
from assay.records.run import RunStatus
from assay.records.spec import MetricName
from assay.records.state import CampaignState, RunRecord
from assay.records.verdict import Effect, Verdict
from assay.render import svg
from assay.render.dials_view import front_chart
from assay.render.report_facts import objective
from assay.render.scoring_chart import calibration_rows
from assay.render.so_far import IN_PROGRESS, so_far
from assay.render.words import (
    UNITS,
    duration_words,
    effect_words,
    metric_words,
    verdict_words,
)
from assay.units import seconds

Latencies = Mapping[str, Mapping[str, Sequence[float]]]
THROUGHPUT: MetricName = "output_tokens_per_s"
LATENCY: MetricName = "tpot_p50_s"
NOTE_LETTERS = 25
"""Beside a chart's row: of what is longer only the verdict's kind is told there, the table has the rest."""
LONG_PAUSE_S = 600.0
"""A pause from which on the run chart leaves it out, and says so."""


def charts(state: CampaignState, latencies: Latencies | None, mark: str) -> dict[str, str]:
    """Every chart by name, for both widths; empty where there is nothing to draw.

    Args:
        state: the campaign.
        latencies: seconds of single requests by arm and metric.
        mark: put before every title.
    """
    effects, predictions, bars = _effect_rows(state), calibration_rows(state), _bars(state)
    dots, breaks = _dots(state)
    unit, band = UNITS[state.spec.objective.metric][0], 100 * state.spec.objective.min_effect
    return svg.at_both_widths(
        lambda canvas: {
            "forest": svg.intervals(
                effects, f"{mark}Measured effects with their intervals", min_effect=band, canvas=canvas
            ),
            "predictions": svg.intervals(
                predictions, f"{mark}Predicted ranges against measured intervals", canvas=canvas
            ),
            "waterfall": svg.waterfall(bars, f"{mark}From the baseline to the stack", canvas=canvas),
            "runs": svg.runs(dots, f"{mark}Every valid run in time order", unit, breaks=breaks, canvas=canvas),
            "ttft": _distribution(latencies, "ttft_s", f"{mark}Time to first token, baseline and stack", canvas),
            "tpot": _distribution(latencies, "tpot_s", f"{mark}Time per output token, baseline and stack", canvas),
        }
    )


def fronts(state: CampaignState, mark: str) -> dict[str, str]:
    """Of every dial that was searched: its settings' throughput against their latency; by hypothesis."""
    return svg.at_both_widths(lambda canvas: _fronts(state, mark, canvas))


def _fronts(state: CampaignState, mark: str, canvas: svg.Canvas) -> dict[str, str]:
    drawn = {}
    for hypothesis in state.hypotheses:
        found = outcomes(state, series_of(hypothesis.id), THROUGHPUT, LATENCY)
        if len(found) > 1:
            title = f"{mark}{hypothesis.id}: throughput against latency of every setting that was run"
            drawn[hypothesis.id] = front_chart(found, title, UNITS[THROUGHPUT][0], "TPOT p50", canvas=canvas)
    return drawn


def _effect_rows(state: CampaignState) -> list[svg.Row]:
    """A row a hypothesis, and one of the stack; none where nothing was measured."""
    rows, open_ones = [], so_far(state)
    status = {item.id: item.status for item in todo(state)}
    for hypothesis in state.hypotheses:
        verdict = state.verdicts.get(hypothesis.id)
        if verdict is None and (found := open_ones.get(hypothesis.id)):
            rows.append(_row(hypothesis.id, found.effect, "open", target=f"h-{hypothesis.id}"))
        elif verdict and verdict.effect:
            rows.append(_row(hypothesis.id, verdict.effect, verdict.kind.value, target=f"h-{hypothesis.id}"))
        else:
            rows.append(
                svg.Row(
                    label=hypothesis.id,
                    kind="unmeasured",
                    note=_unmeasured(hypothesis, verdict, status[hypothesis.id]),
                    target=f"h-{hypothesis.id}",
                )
            )
    if all(row.middle is None for row in rows):
        return []
    headline = state.headline
    if headline and headline.effect:
        label = "the stack, confirmed" if headline.confirmed else "the stack, NOT confirmed"
        kind = "headline" if headline.confirmed else "doubtful"
        rows.append(_row(label, headline.effect, kind, target="answer"))
    return rows


def _unmeasured(hypothesis: Hypothesis, verdict: Verdict | None, status: TodoStatus) -> str:
    if verdict is not None or (hypothesis.status == "planned" and status != "in_progress"):
        told = verdict_words(verdict)
        return told if verdict is None or len(told) <= NOTE_LETTERS else str(verdict.kind)
    return hypothesis.status if hypothesis.status != "planned" else f"{IN_PROGRESS}, no effect yet"


def _row(label: str, effect: Effect, kind: str, *, target: str) -> svg.Row:
    return svg.Row(
        label=label,
        low=effect.percent_low,
        middle=effect.percent,
        high=effect.percent_high,
        kind=kind,
        target=target,
    )


def _bars(state: CampaignState) -> list[svg.Bar]:
    """Each adopted change as measured on top of those before it, then what fresh runs found of them all."""
    headline = state.headline
    if headline is None or headline.effect is None:
        return []
    metric, level = state.spec.objective.metric, 100.0
    words = metric_words(headline.baseline_median, metric)
    bars = [svg.Bar(label="baseline", start=0.0, end=level, kind="total", words=words)]
    for name in headline.stack:
        verdict = state.verdicts.get(name)
        if verdict is None or verdict.effect is None:
            continue
        after = level * math.exp(verdict.effect.log_ratio)
        kind = "gain" if after >= level else "loss"
        words = effect_words(verdict.effect)
        bars.append(svg.Bar(label=f"+ {name}", start=level, end=after, kind=kind, words=words, target=f"h-{name}"))
        level = after
    whole = headline.effect
    bars.append(
        svg.Bar(
            label="confirmed on fresh runs" if headline.confirmed else "fresh runs: NOT confirmed",
            start=0.0,
            end=100 + whole.percent,
            low=100 + whole.percent_low,
            high=100 + whole.percent_high,
            kind="confirmed" if headline.confirmed else "total",
            words=effect_words(whole),
            target="answer",
        )
    )
    return bars


def _dots(state: CampaignState) -> tuple[list[svg.Dot], list[tuple[float, str]]]:
    """Every valid run, and where a pause was left out between two of them."""
    metric = state.spec.objective.metric
    factor = UNITS[metric][1]
    dots: list[svg.Dot] = []
    breaks: list[tuple[float, str]] = []
    cut_s, end_ns = 0.0, None
    began_ns = state.runs[0].intended_at_ns if state.runs else 0
    for run in state.runs:
        pause_s = seconds(run.intended_at_ns - end_ns) if end_ns is not None else 0.0
        if pause_s > LONG_PAUSE_S:
            cut_s += pause_s
            breaks.append(
                (
                    (seconds(run.intended_at_ns - began_ns) - cut_s) / 60,
                    f"pause of {duration_words(pause_s)} left out",
                )
            )
        end_ns = run.ended_at_ns or run.intended_at_ns
        value = objective(state, run)
        if value is None or run.outcome is None or run.outcome.status is not RunStatus.OK:
            continue
        name = run.intent.run_id
        dots.append(
            svg.Dot(
                x=(seconds(run.intended_at_ns - began_ns) - cut_s) / 60,
                y=value * factor,
                kind=_arm_kind(run),
                title=f"{name}, {run.intent.arm.label}: {metric_words(value, metric)}",
                target=f"run-{name}",
            )
        )
    return dots, breaks


def _arm_kind(run: RunRecord) -> str:
    if not run.intent.arm.deltas:
        return "baseline"
    return "stack" if run.intent.candidate in {None, "stack"} else "candidate"


def _distribution(latencies: Latencies | None, metric: str, title: str, canvas: svg.Canvas) -> str:
    if not latencies:
        return ""
    series = [
        (arm, arm, [1000 * value for value in latencies[arm].get(metric, [])])
        for arm in ("baseline", "stack")
        if arm in latencies
    ]
    return svg.cumulative(series, title, "ms", canvas=canvas)
