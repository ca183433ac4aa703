"""Latency distributions with honest intervals, for values that come in thousands or in tens of millions."""

from __future__ import annotations

import math

import numpy as np

from assay.load.columns import Floats, Ints
from assay.load.metrics import defined, quantiles
from assay.records.bench import Distribution
from assay.records.run import Quantiles

SHARES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
Z = 1.959964
NUM_BINS = 64
NUM_BATCHES = 20
T_19 = 2.093
"""Student's t, 97.5%, 19 degrees of freedom."""
MIN_IN_BATCH = 50


def of_requests(values: Floats) -> Distribution:
    """One value a request: intervals of the percentiles by order statistics.

    The ranks n p -+ 1.96 sqrt(n p (1 - p)) bound a percentile with 95% whatever the distribution, if requests are
    independent; those of a closed loop are so but roughly. Source: Conover, Practical Nonparametric Statistics, 3.2.
    """
    ordered = np.sort(defined(values))
    found = quantiles(ordered)
    intervals = {
        name: (float(ordered[low]), float(ordered[high]))
        for name, share in SHARES.items()
        if getattr(found, f"{name}_s") is not None and (ranks := _ranks(len(ordered), share)) is not None
        for low, high in (ranks,)
    }
    return _with_histogram(found, intervals, ordered, None)


def of_gaps(values: Floats, at_ns: Ints, weights: Floats | None = None) -> Distribution:
    """Many values a request, so strongly dependent: intervals by batches of time.

    The values are cut into 20 stretches of equal number, in order of time; a percentile's interval is that of the mean
    of the 20 stretches' own, centred on the whole's. Too few values for that give no interval.
    Source: batch means for quantiles, Law, Simulation Modeling and Analysis, 9.5.

    Args:
        values: seconds.
        at_ns: when each ended.
        weights: how much each counts; None: all the same.
    """
    found = quantiles(values) if weights is None else weighted_quantiles(values, weights)
    intervals = {}
    if len(values) >= NUM_BATCHES * MIN_IN_BATCH:
        order = np.argsort(at_ns, kind="stable")
        pieces = np.array_split(order, NUM_BATCHES)
        for name, share in SHARES.items():
            centre = getattr(found, f"{name}_s")
            if centre is None or len(pieces[-1]) * (1 - share) < 1:
                continue
            own = [_quantile(values[p], None if weights is None else weights[p], share) for p in pieces]
            half = T_19 * float(np.std(own, ddof=1)) / math.sqrt(NUM_BATCHES)
            intervals[name] = (max(centre - half, 0.0), centre + half)
    return _with_histogram(found, intervals, values, weights)


def weighted_quantiles(values: Floats, weights: Floats) -> Quantiles:
    """Mean and percentiles where each value counts `weights` times."""
    if len(values) == 0:
        return quantiles(values)
    known = {name: _quantile(values, weights, share) for name, share in SHARES.items()}
    total = float(weights.sum())
    return Quantiles(
        num_samples=round(total),
        mean_s=float((values * weights).sum()) / total,
        p50_s=known["p50"],
        p90_s=known["p90"],
        p95_s=known["p95"],
        p99_s=known["p99"] if total >= 1000 else None,  # noqa: PLR2004 - as for plain quantiles
    )


def _quantile(values: Floats, weights: Floats | None, share: float) -> float:
    if weights is None:
        return float(np.quantile(values, share))
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order])
    at = int(np.searchsorted(cumulated, share * cumulated[-1]))
    return float(values[order[min(at, len(order) - 1)]])


def _ranks(number: int, share: float) -> tuple[int, int] | None:
    """Positions of the order statistics around a percentile; None where they fall outside."""
    half = Z * math.sqrt(number * share * (1 - share))
    low, high = math.floor(number * share - half), math.ceil(number * share + half)
    return (low, high) if low >= 0 and high < number else None


def _with_histogram(
    found: Quantiles, intervals: dict[str, tuple[float, float]], values: Floats, weights: Floats | None
) -> Distribution:
    if len(values) == 0:
        return Distribution(quantiles=found)
    low, high = max(float(values.min()), 1e-6), max(float(values.max()), 2e-6)
    edges = np.geomspace(low * 0.999, max(high, low * 1.01) * 1.001, NUM_BINS + 1)
    counts, _ = np.histogram(np.maximum(values, low), bins=edges, weights=weights)
    return Distribution(
        quantiles=found,
        intervals=intervals,
        histogram_edges_s=[float(edge) for edge in edges],
        histogram_counts=[round(float(count)) for count in counts],
    )
