"""What a run is worth by the objective: one number, the weighted mean of its operating points' log values."""

from __future__ import annotations

import math
from typing import cast, get_args

from assay.records.run import Measures, Quantiles
from assay.records.spec import MAIN_POINT, LatencyName, MetricName
from assay.records.state import CampaignState, RunRecord


def metric_value(measures: Measures, metric: MetricName) -> float | None:
    """The objective's value in its own unit; None when the run has too few samples for it."""
    if metric in get_args(LatencyName):
        return latency_s(measures, cast("LatencyName", metric))
    rates = {"output_tokens_per_s": measures.output_tokens_per_s, "requests_per_s": measures.requests_per_s}
    return rates[metric]


def latency_s(measures: Measures, name: LatencyName) -> float | None:
    """A latency quantile in seconds; None when the run has too few samples for it."""
    metric, quantile, _ = name.split("_")
    quantiles: Quantiles = getattr(measures, metric)
    value: float | None = getattr(quantiles, f"{quantile}_s")
    return value


def is_latency(metric: MetricName) -> bool:
    """Whether less is better; its effects are those of the reciprocal, so that positive is always better."""
    return metric in get_args(LatencyName)


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
    if point is not None:
        return log_score(point_measures(run, point), state.spec.objective.metric)
    weights = {MAIN_POINT: state.spec.workload.weight} | {p.name: p.weight for p in state.spec.workload.points}
    judged = {name: weight for name, weight in weights.items() if weight > 0}
    scores = [log_score(point_measures(run, name), state.spec.objective.metric) for name in judged]
    if any(score is None for score in scores):
        return None
    total = sum(weight * score for weight, score in zip(judged.values(), scores, strict=True) if score is not None)
    return total / sum(judged.values())


def log_score(measures: Measures | None, metric: MetricName) -> float | None:
    """Natural log of the metric, signed so that more is better; None when it cannot be said."""
    value = None if measures is None else metric_value(measures, metric)
    if value is None or value <= 0:
        return None
    return -math.log(value) if is_latency(metric) else math.log(value)
