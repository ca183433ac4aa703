"""What the report says of operating points and of the stack's members: rows of words, nothing judged."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from assay.plan.evidence import confirmation_at_points, point_effects
from assay.plan.interactions import interactions
from assay.plan.scores import judged_weights, metric_value, point_measures, point_names
from assay.plan.series import CONFIRMATION, MAIN, composition, valid_runs
from assay.records.spec import MAIN_POINT
from assay.records.state import CampaignState, RunRecord
from assay.records.verdict import Effect
from assay.render.report_facts import baseline_runs
from assay.render.words import effect_words, metric_words


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """One candidate's effect at every operating point."""

    candidate: str
    effects: list[Effect | None]
    flips: bool
    """Whether its interval lies above 0 at one point and below 0 at another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """One member (or former member) of the stack."""

    name: str
    alone: str
    on_stack: str
    interaction: str
    without: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """One load that every run plays, and what the baseline and the confirmation gave at it."""

    label: str
    weight: str
    """Its part of the objective: "weight 1 of 2"; "shown, not judged"."""
    baseline: str
    """Median of all runs of the baseline that count."""
    confirmed_baseline: str
    confirmed_stack: str
    effect: Effect | None
    """Of the confirmation; None before it."""


def operating_points(state: CampaignState) -> list[OperatingPoint]:
    """Every operating point, the workload's own first; empty where the campaign has one."""
    names = point_names(state)
    if len(names) == 1:
        return []
    weights, found = judged_weights(state), confirmation_at_points(state)
    whole, confirmation = sum(weights.values()), valid_runs(state, CONFIRMATION)
    arms = [[run for run in confirmation if bool(run.intent.arm.deltas) is stack] for stack in (False, True)]
    return [
        OperatingPoint(
            label=label,
            weight=f"weight {weights[name]:g} of {whole:g}" if name in weights else "shown, not judged",
            baseline=_median(state, baseline_runs(state), name),
            confirmed_baseline=_median(state, arms[0], name),
            confirmed_stack=_median(state, arms[1], name),
            effect=found.get(name),
        )
        for name, label in zip(names, point_labels(state), strict=True)
    ]


def judged_over(points: Sequence[OperatingPoint]) -> str:
    """What a campaign's effects are over, where it has several operating points; empty with one, that has none here."""
    if not points:
        return ""
    told = "; ".join(f"{one.label}: {one.weight}" for one in points)
    return f"the weighted mean of the log ratios at {len(points)} operating points ({told})"


def _median(state: CampaignState, runs: Sequence[RunRecord], point: str) -> str:
    metric = state.spec.objective.metric
    measured = [measures for run in runs if (measures := point_measures(run, point)) is not None]
    values = [value for one in measured if (value := metric_value(one, metric)) is not None]
    return metric_words(statistics.median(values) if values else None, metric)


def point_labels(state: CampaignState) -> list[str]:
    """Names of the operating points with their load."""
    loads = {MAIN_POINT: state.spec.workload.concurrency} | {p.name: p.concurrency for p in state.spec.workload.points}
    return [f"{name}, {loads[name]} in flight" for name in point_names(state)]


def point_rows(state: CampaignState) -> list[PointRow]:
    """Every candidate with a measured effect; empty where the campaign has one operating point."""
    names, rows = point_names(state), []
    for hypothesis in state.hypotheses if len(names) > 1 else []:
        series = composition(hypothesis.id) if valid_runs(state, composition(hypothesis.id)) else MAIN
        found = point_effects(state, series, hypothesis.id)
        if found:
            flips = any(e.low > 0 for e in found.values()) and any(e.high < 0 for e in found.values())
            rows.append(PointRow(candidate=hypothesis.id, effects=[found.get(name) for name in names], flips=flips))
    return rows


def member_rows(state: CampaignState) -> list[MemberRow]:
    """Members in the order of adoption, those taken out again included; empty where one stood alone throughout."""
    found = {one.candidate: one for one in interactions(state)}
    names = [name for name in state.screened if name in state.stack or name in state.ablations]
    rows = []
    for name in sorted(names, key=lambda name: [*state.stack, name].index(name)):
        with_others, ablation = found.get(name), state.ablations.get(name)
        rows.append(
            MemberRow(
                name=name,
                alone=effect_words(state.screened[name].effect),
                on_stack="first of the stack" if with_others is None else effect_words(with_others.on_stack),
                interaction=""
                if with_others is None
                else _change(with_others.difference, with_others.low, with_others.high),
                without="not asked" if ablation is None else effect_words(ablation.effect),
                note="" if ablation is None else ablation.reason,
            )
        )
    return rows if len({*state.stack, *state.ablations}) > 1 else []


def _change(difference: float, low: float, high: float) -> str:
    middle, least, most = (100 * math.expm1(value) for value in (difference, low, high))
    return f"{middle:+.1f}% [{least:+.1f}, {most:+.1f}]"
