"""Intervals of percentiles, tested for what they promise: how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assay.load.distributions import of_gaps, of_requests, weighted_quantiles

REPEATS = 400


def tolerance(share: float) -> float:
    return 3 * math.sqrt(share * (1 - share) / REPEATS)


@pytest.mark.parametrize(("name", "share"), [("p50", 0.5), ("p90", 0.9)])
def test_the_interval_of_a_percentile_holds_it_nineteen_times_of_twenty(name: str, share: float):
    truth = -math.log(1 - share)
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(REPEATS):
        low, high = of_requests(rng.exponential(size=500)).intervals[name]
        hits += low <= truth <= high
    assert hits / REPEATS >= 0.95 - tolerance(0.95)


def test_a_percentile_too_far_out_for_its_samples_has_no_interval():
    found = of_requests(np.random.default_rng(1).exponential(size=30))
    assert "p50" in found.intervals
    assert "p95" not in found.intervals
    assert found.quantiles.p99_s is None


def test_gaps_that_come_in_dependent_stretches_get_an_interval_that_knows_it():
    """Each stretch of 50 has a level of its own: its values, counted one by one, would promise far too much."""
    rng = np.random.default_rng(9)
    hits = 0
    for _ in range(REPEATS):
        level = np.repeat(rng.normal(1.0, 0.1, size=100), 50)
        values = level + rng.normal(0, 0.01, size=5_000)
        low, high = of_gaps(values, np.arange(5_000)).intervals["p50"]
        hits += low <= 1.0 <= high
    assert hits / REPEATS >= 0.95 - tolerance(0.95) - 0.02  # the median of a stretch is itself an estimate


def test_a_value_of_weight_two_counts_twice():
    found = weighted_quantiles(np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    assert (found.num_samples, found.mean_s, found.p50_s) == (4, 1.75, 2.0)


def test_no_values_make_no_numbers():
    found = of_gaps(np.empty(0), np.empty(0, dtype=np.int64))
    assert (found.quantiles.num_samples, found.quantiles.p50_s, found.histogram_counts) == (0, None, [])


def test_the_histogram_holds_every_value():
    found = of_requests(np.random.default_rng(2).lognormal(size=1_000))
    assert sum(found.histogram_counts) == 1_000
    assert len(found.histogram_edges_s) == len(found.histogram_counts) + 1
