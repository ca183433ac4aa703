"""Arrival laws: an arrival process is what it says.

Statistics are tested as statistics. Each family of tests below (one law of gaps at several seeds) has a family error
rate of `FAMILY_ALPHA`: each of its m tests is made at FAMILY_ALPHA / m (Bonferroni). Seeds are fixed, so the outcome is
the same at every run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from statistics import NormalDist, fmean
from typing import Any

import pytest
from scipy import stats

from assay.errors import UsageError
from assay.load.arrival import MIN_SENDS, gaps_cv, offsets_s
from assay.records.bench import Arrival

FAMILY_ALPHA = 0.001
SEEDS = range(1, 11)
NUMBER = 4_000
RATE = 25.0
LAWS = [("poisson", 1.0), ("gamma", 0.5), ("gamma", 1.0), ("gamma", 2.0), ("gamma", 4.0)]
RAMPS = [(1.0, 50.0), (50.0, 1.0), (20.0, 20.0)]
RAMP_S = 60.0


def law(kind: str, cv: float = 1.0) -> Arrival:
    return Arrival(kind=kind, rate_per_s=RATE, cv=cv)


def ramp(start: float, end: float) -> Arrival:
    return Arrival(kind="ramp", start_rate_per_s=start, rate_per_s=end)


def gaps(offsets: Iterator[float], number: int = NUMBER) -> list[float]:
    return [later - earlier for earlier, later in pairwise([0.0, *islice(offsets, number)])]


def ks_pvalue(sample: list[float], cdf: Callable[[list[float]], Any]) -> float:
    """Kolmogorov and Smirnov's test, looking at gaps above a nanosecond only: shorter ones fall below the resolution of
    an instant. The statistic can only become smaller by that, so the error rate is at most the one stated.
    """
    ordered, number = sorted(sample), len(sample)
    at = [(rank, gap) for rank, gap in enumerate(ordered) if gap > 1e-9]
    expected = cdf([gap for _, gap in at])
    distance = max(
        max((rank + 1) / number - due, due - rank / number) for (rank, _), due in zip(at, expected, strict=True)
    )
    return float(stats.kstwo.sf(distance, number))


def cumulative(at_s: float, start: float, end: float) -> float:
    """Requests that a ramp should have sent by an instant: the integral of its rate."""
    rising = min(at_s, RAMP_S)
    return start * rising + (end - start) * rising**2 / (2 * RAMP_S) + end * max(0.0, at_s - RAMP_S)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("kind", "cv"), LAWS)
def test_the_gaps_of_an_open_law_are_distributed_as_it_says(kind: str, cv: float, seed: int):
    expected = stats.gamma(a=1 / cv**2, scale=cv**2 / RATE)
    assert ks_pvalue(gaps(offsets_s(law(kind, cv), seed)), expected.cdf) > FAMILY_ALPHA / len(SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("kind", "cv"), LAWS)
def test_the_gaps_of_an_open_law_have_its_coefficient_of_variation_and_its_mean(kind: str, cv: float, seed: int):
    """The sample CV of n gamma gaps has variance cv^2 (1 + cv^2) / 2n to first order (delta method), their mean
    cv^2 / n in units of the mean gap.
    """
    z = NormalDist().inv_cdf(1 - FAMILY_ALPHA / len(SEEDS) / 4)  # two-sided, two statistics
    drawn = gaps(offsets_s(law(kind, cv), seed))
    offsets_ns = [round(offset * 1e9) for offset in islice(offsets_s(law(kind, cv), seed), NUMBER + 1)]

    assert abs(fmean(drawn) * RATE - 1) < z * cv / math.sqrt(NUMBER)
    assert abs(gaps_cv(offsets_ns) - cv) < z * cv * math.sqrt((1 + cv**2) / 2 / NUMBER)


@pytest.mark.parametrize("seed", SEEDS)
def test_gaps_of_the_poisson_law_do_not_depend_on_the_ones_before(seed: int):
    drawn = gaps(offsets_s(law("poisson"), seed))
    found = stats.spearmanr(drawn[:-1], drawn[1:])
    assert found.pvalue > FAMILY_ALPHA / len(SEEDS)


def test_the_tests_would_notice_another_law():
    drawn = gaps(offsets_s(law("gamma", 1.2), 1))
    assert ks_pvalue(drawn, stats.expon(scale=1 / RATE).cdf) < FAMILY_ALPHA / len(SEEDS)


def test_constant_arrival_is_exact_and_does_not_drift():
    offsets = list(islice(offsets_s(Arrival(kind="constant", rate_per_s=3.0), 1), 300_001))
    assert offsets[:3] == [0.0, 1 / 3, 2 / 3]
    assert offsets[300_000] == 100_000.0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("start", "end"), RAMPS)
def test_a_ramp_is_a_poisson_process_whose_rate_is_the_one_asked_for(start: float, end: float, seed: int):
    """On the scale of the cumulative rate its gaps are unit exponentials, within the ramp and after it."""
    offsets = list(islice(offsets_s(ramp(start, end), seed, ramp_s=RAMP_S), NUMBER))
    scaled = [cumulative(at, start, end) for at in [0.0, *offsets]]
    assert offsets[-1] > 1.3 * RAMP_S
    assert ks_pvalue([later - earlier for earlier, later in pairwise(scaled)], stats.expon.cdf) > FAMILY_ALPHA / len(
        SEEDS
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("start", "end"), RAMPS)
def test_a_ramp_sends_as_many_in_each_stretch_as_the_integral_of_its_rate(start: float, end: float, seed: int):
    """Counts of disjoint stretches are independent Poisson: the sum of (n - m)^2 / m is about chi-square."""
    edges = [5.0 * number for number in range(17)]  # the ramp and 20 s more
    offsets = list(islice(offsets_s(ramp(start, end), seed, ramp_s=RAMP_S), 2 * NUMBER))
    due = [cumulative(later, start, end) - cumulative(earlier, start, end) for earlier, later in pairwise(edges)]
    sent = [sum(earlier <= at < later for at in offsets) for earlier, later in pairwise(edges)]
    chi_square = sum((number - mean) ** 2 / mean for number, mean in zip(sent, due, strict=True))
    assert stats.chi2.sf(chi_square, len(due)) > FAMILY_ALPHA / len(SEEDS)


@pytest.mark.parametrize(
    "arrival",
    [law("constant"), law("poisson"), law("gamma", 3.0), ramp(1.0, 40.0)],
    ids=lambda arrival: arrival.kind,
)
def test_every_process_makes_the_same_instants_and_they_never_fall(arrival: Arrival):
    whole = list(islice(offsets_s(arrival, 7), 999))
    shards = [list(islice(offsets_s(arrival, 7), number, 999, 3)) for number in range(3)]
    assert [at for together in zip(*shards, strict=True) for at in together] == whole
    assert whole == sorted(whole)
    assert whole[0] >= 0


@pytest.mark.parametrize("arrival", [law("poisson"), law("gamma", 3.0), ramp(1.0, 40.0)], ids=lambda law: law.kind)
def test_another_seed_gives_other_instants(arrival: Arrival):
    assert list(islice(offsets_s(arrival, 1), 5)) != list(islice(offsets_s(arrival, 2), 5))


def test_poisson_is_gamma_with_a_coefficient_of_one_whatever_the_record_says_of_cv():
    assert list(islice(offsets_s(law("poisson", cv=5.0), 3), 50)) == list(islice(offsets_s(law("gamma"), 3), 50))


def test_a_trace_keeps_its_own_instants_from_zero_on_and_ends_with_the_last():
    offsets = offsets_s(Arrival(kind="trace"), 1, trace_s=[5.0, 5.5, 5.5, 9.0])
    assert list(offsets) == [0.0, 0.5, 0.5, 4.0]


def test_a_trace_is_stretched_to_the_rate_asked_for():
    offsets = list(offsets_s(Arrival(kind="trace", rate_per_s=6.0), 1, trace_s=[1.0, 2.0, 4.0, 7.0]))
    assert offsets == pytest.approx([0.0, 1 / 12, 3 / 12, 6 / 12])
    assert (len(offsets) - 1) / offsets[-1] == pytest.approx(6.0)


def test_a_trace_of_one_request_begins_at_once_at_any_rate():
    assert list(offsets_s(Arrival(kind="trace", rate_per_s=6.0), 1, trace_s=[3.0])) == [0.0]


@pytest.mark.parametrize("trace_s", [None, []])
def test_a_workload_without_instants_cannot_be_replayed_as_a_trace(trace_s: list[float] | None):
    with pytest.raises(UsageError, match="has none") as caught:
        offsets_s(Arrival(kind="trace"), 1, trace_s=trace_s)
    assert "at_s" in str(caught.value.hint)


def test_a_trace_at_one_instant_cannot_be_stretched_but_can_be_replayed():
    with pytest.raises(UsageError, match="3 requests are all at one instant"):
        offsets_s(Arrival(kind="trace", rate_per_s=2.0), 1, trace_s=[4.0, 4.0, 4.0])
    assert list(offsets_s(Arrival(kind="trace"), 1, trace_s=[4.0, 4.0, 4.0])) == [0.0, 0.0, 0.0]


def test_a_closed_loop_has_no_instants():
    with pytest.raises(ValueError, match="closed loop"):
        offsets_s(Arrival(concurrency=4), 1)


def test_the_spread_of_gaps_is_told_only_of_enough_sends_that_differ():
    steady = [1_000 * number for number in range(MIN_SENDS)]
    assert gaps_cv(steady[:-1]) is None
    assert gaps_cv([5] * MIN_SENDS) is None
    assert gaps_cv(steady[::-1]) == 0
    assert gaps_cv([0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20]) == pytest.approx(stats.variation([1, 3] * 5, ddof=1))
