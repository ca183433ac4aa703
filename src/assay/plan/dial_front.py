"""The front of throughput against latency: the settings that nothing beats in both.

Where an objective has two sides there is no best setting, only settings that no other one beats in both. Each counts
with the geometric mean of its valid runs. Single runs are noisy, so what lies on the front by less than the noise may
lie beside it: the numbers of runs are told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from assay.plan.scores import is_latency, metric_value
from assay.records.run import RunStatus
from assay.records.spec import MetricName
from assay.records.state import CampaignState


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one setting gives, the mean over its runs."""

    label: str
    throughput: float
    """In the unit of its metric; more is better."""
    latency_s: float
    """Less is better."""
    num_runs: int
    is_baseline: bool = False
    runs: list[str] = field(default_factory=list)


def front(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Those that no other beats: the lowest latency first, each next one slower and with more throughput.

    Of several equal ones the first is taken.
    """
    found: list[Outcome] = []
    for one in sorted(outcomes, key=lambda o: (o.latency_s, -o.throughput)):
        if not found or one.throughput > found[-1].throughput:
            found.append(one)
    return found


def outcomes(state: CampaignState, series: str, throughput: MetricName, latency: MetricName) -> list[Outcome]:
    """Every arm of a series that has valid runs, the baseline first.

    Raises:
        ValueError: a metric is on the wrong side.
    """
    if is_latency(throughput) or not is_latency(latency):
        raise ValueError(f"want a throughput and a latency, not {throughput} and {latency}")
    pairs: dict[str | None, list[tuple[float, float]]] = {None: []}
    labels: dict[str | None, str] = {None: "baseline"}
    ids: dict[str | None, list[str]] = {None: []}
    for run in state.runs:
        measures = run.outcome.measures if run.outcome and run.outcome.status is RunStatus.OK else None
        if run.intent.series != series or measures is None:
            continue
        more, less = metric_value(measures, throughput), metric_value(measures, latency)
        if more and less:
            arm = run.intent.candidate
            pairs.setdefault(arm, []).append((more, less))
            ids.setdefault(arm, []).append(run.intent.run_id)
            labels[arm] = run.intent.arm.label
    return [_outcome(labels[arm], found, ids[arm], is_baseline=arm is None) for arm, found in pairs.items() if found]


def _outcome(label: str, found: list[tuple[float, float]], ids: list[str], *, is_baseline: bool) -> Outcome:
    more, less = (math.exp(sum(map(math.log, side)) / len(found)) for side in zip(*found, strict=True))
    return Outcome(label=label, throughput=more, latency_s=less, num_runs=len(found), is_baseline=is_baseline, runs=ids)
