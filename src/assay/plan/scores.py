"""What a run is worth by the objective: one number, the weighted mean of its operating points' log values."""

from __future__ import annotations

import math
from typing import cast, get_args

from assay.plan.reading import once
from assay.records.run import Measures, Quantiles
from assay.records.spec import MAIN_POINT, CampaignSpec, LatencyName, MetricName
from assay.records.state import CampaignState, RunRecord

LATENCIES = frozenset(get_args(LatencyName))


def metric_value(measures: Measures, metric: MetricName) -> float | None:
    """The objective's value in its own unit; None when the run has too few samples for it."""
    if is_latency(metric):
        return latency_s(measures, cast("LatencyName", metric))
    return measures.requests_per_s if metric == "requests_per_s" else measures.output_tokens_per_s


def readable(text: str, spec: CampaignSpec) -> str:
    """A sentence about the objective with its metric as people read it: "output tokens/s", "TPOT p95"."""
    metric = spec.objective.metric
    name, quantile, *_ = metric.split("_")
    words = f"{name.upper()} {quantile}" if is_latency(metric) else metric.replace("_per_", "/").replace("_", " ")
    return text.replace(metric, words)


def latency_s(measures: Measures, name: LatencyName) -> float | None:
    """A latency quantile in seconds; None when the run has too few samples for it."""
    metric, quantile, _ = name.split("_")
    quantiles: Quantiles = getattr(measures, metric)
    value: float | None = getattr(quantiles, f"{quantile}_s")
    return value


def is_latency(metric: MetricName) -> bool:
    """Whether less is better; its effects are those of the reciprocal, so that positive is always better."""
    return metric in LATENCIES


def point_measures(run: RunRecord, point: str) -> Measures | None:
    """What a run measured at one of its operating points."""
    if run.outcome is None or run.outcome.measures is None:
        return None
    return run.outcome.measures if point == MAIN_POINT else run.outcome.points.get(point)


def point_names(state: CampaignState) -> list[str]:
    """The operating points of the campaign, the workload's own first."""
    return [MAIN_POINT, *(point.name for point in state.spec.workload.points)]


def run_score(state: CampaignState, run: RunRecord, point: str | None = None) -> float | None:
    """Natural log of the objective, signed so that more is better.

    Args:
        state: the campaign.
        run: an ended run.
        point: one operating point; None: the weighted mean over all.

    Returns:
        None when the run does not have it.
    """
    return _score(run, state.spec.objective.metric, judged_weights(state) if point is None else {point: 1.0})


@once
def scores(state: CampaignState, point: str | None = None) -> dict[str, float | None]:
    """`run_score` of every run, by run id."""
    metric, weights = state.spec.objective.metric, judged_weights(state) if point is None else {point: 1.0}
    return {run.intent.run_id: _score(run, metric, weights) for run in state.runs}


def _score(run: RunRecord, metric: MetricName, weights: dict[str, float]) -> float | None:
    total = 0.0
    for name, weight in weights.items():
        score = log_score(point_measures(run, name), metric)
        if score is None:
            return None
        total += weight * score
    return total / sum(weights.values())


@once
def judged_weights(state: CampaignState) -> dict[str, float]:
    """The operating points that count for the objective, with their weights."""
    weights = {MAIN_POINT: state.spec.workload.weight} | {p.name: p.weight for p in state.spec.workload.points}
    return {name: weight for name, weight in weights.items() if weight > 0}


def log_score(measures: Measures | None, metric: MetricName) -> float | None:
    """Natural log of the metric, signed so that more is better; None when it cannot be said."""
    value = None if measures is None else metric_value(measures, metric)
    if value is None or value <= 0:
        return None
    return -math.log(value) if is_latency(metric) else math.log(value)
