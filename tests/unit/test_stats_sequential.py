"""Intervals hold at every look, under drift and heavy tails, and decisions say no more than they allow."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from assay.records.verdict import Effect
from assay.stats.brackets import Noise, Point, brackets, residual_noise
from assay.stats.sequential import chance_of_gain, decide, effect, min_detectable_effect, student_quantile
from assay.stats.spending import Looks, information, nominal_alpha

RUN_SD, TRUTH, ALPHA, LOOKS = 0.05, 0.1, 0.10, 6
Drift = Callable[[np.random.Generator, int], np.ndarray]


def no_drift(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.zeros(n)


def linear(rng: np.random.Generator, n: int) -> np.ndarray:
    return 0.5 * RUN_SD * np.arange(n)


def random_walk(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.cumsum(0.5 * RUN_SD * rng.standard_normal(n))


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return RUN_SD * rng.standard_normal(n)


def student_4(rng: np.random.Generator, n: int) -> np.ndarray:
    """Scaled to the same variance: Student's t with 4 degrees of freedom has variance 2."""
    return RUN_SD * rng.standard_t(4, n) / math.sqrt(2)


def screen(rng: np.random.Generator, drift: Drift, noise: Drift) -> list[Point]:
    """Four A/A brackets, then six rounds of three candidates in random order: the design of a campaign."""
    names: list[str | None] = [None, *["A/A", None] * 4]
    for _ in range(LOOKS):
        for candidate in rng.permutation(["good", "null", "bad"]):
            names += [str(candidate), None]
    truth = {"good": TRUTH, "bad": -TRUTH}
    values = drift(rng, len(names)) + noise(rng, len(names)) + [truth.get(name or "", 0.0) for name in names]
    return [Point(candidate=name, log_value=float(value)) for name, value in zip(names, values, strict=True)]


def intervals_at_every_look(points: list[Point]) -> list[Effect]:
    """What the planner would see of the candidate "good", whenever a bracket of it has closed."""
    found = []
    for end in range(3, len(points) + 1, 2):
        if points[end - 2].candidate != "good":
            continue
        so_far = brackets(points[:end])
        others = so_far.keep([i for i, name in enumerate(so_far.candidates) if name != "good"])
        box = residual_noise(others, known_zero=["A/A"])
        seen = effect(so_far.of("good"), box, alpha=ALPHA, looks=Looks(1, LOOKS))
        assert seen is not None
        found.append(seen)
    return found


@pytest.mark.parametrize("drift", [no_drift, linear, random_walk])
@pytest.mark.parametrize("noise", [normal, student_4])
def test_the_truth_is_inside_the_interval_at_all_looks_as_often_as_stated(drift: Drift, noise: Drift) -> None:
    """Misses are binomial with ALPHA a series: 3 standard errors above it are allowed."""
    rng, n = np.random.default_rng(21), 1000
    missed_any = 0
    for _ in range(n):
        seen = intervals_at_every_look(screen(rng, drift, noise))
        assert [found.num_brackets for found in seen] == [1, 2, 3, 4, 5, 6]
        missed_any += any(not found.low <= TRUTH <= found.high for found in seen)

    assert missed_any / n <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / n)
    assert missed_any / n >= ALPHA / 3  # an interval far wider than it need be costs brackets


def test_an_interval_for_one_look_misses_no_less_often_than_it_states() -> None:
    """Exactness where theory is exact (normal noise, one look): neither too narrow nor uselessly wide."""
    rng, n, alpha = np.random.default_rng(22), 2000, 0.2
    names = [None, *["A/A", None] * 4, *["good", None, "null", None] * 2]
    missed = 0
    for _ in range(n):
        values = normal(rng, len(names)) + [TRUTH * (name == "good") for name in names]
        points = [Point(candidate=name, log_value=float(v)) for name, v in zip(names, values, strict=True)]
        series = brackets(points)
        found = effect(series.of("good"), residual_noise(series.of("A/A"), known_zero=["A/A"]), alpha=alpha)
        assert found is not None
        missed += not found.low <= TRUTH <= found.high

    assert missed / n == pytest.approx(alpha, abs=4 * math.sqrt(alpha * (1 - alpha) / n))


@pytest.mark.parametrize("looks", [1, 6])
def test_the_minimum_detectable_effect_is_found_with_the_power_it_states(looks: int) -> None:
    """At least 80%, and not so much more that the number would be useless; 3 binomial standard errors allowed."""
    rng, n, k = np.random.default_rng(23), 800, 6
    alpha, degrees = 0.10, 16.0
    exact = Noise(variance=RUN_SD**2, degrees_of_freedom=degrees)
    truth = math.log1p(min_detectable_effect(exact, k, alpha=alpha / looks))
    names = [None, *["a", None] * k]
    at = range(1, k + 1) if looks > 1 else (k,)
    found = 0
    for _ in range(n):
        values = normal(rng, len(names)) + [truth * (name == "a") for name in names]
        points = [Point(candidate=name, log_value=float(v)) for name, v in zip(names, values, strict=True)]
        box = Noise(variance=RUN_SD**2 * rng.chisquare(degrees) / degrees, degrees_of_freedom=degrees)
        seen = [effect(brackets(points[: 2 * b + 1]), box, alpha=alpha, looks=Looks(1, looks)) for b in at]
        found += any(one is not None and decide(one, 1e-6) == "better" for one in seen)

    tolerance = 3 * math.sqrt(0.8 * 0.2 / n)
    assert 0.8 - tolerance <= found / n <= 0.9 + tolerance


def test_more_brackets_or_a_quieter_box_detect_smaller_effects() -> None:
    box = Noise(variance=RUN_SD**2, degrees_of_freedom=8)
    quiet = Noise(variance=RUN_SD**2 / 4, degrees_of_freedom=8)

    assert min_detectable_effect(box, 12, alpha=0.1) < min_detectable_effect(box, 3, alpha=0.1)
    assert min_detectable_effect(quiet, 3, alpha=0.1) < min_detectable_effect(box, 3, alpha=0.1)


@pytest.mark.parametrize("degrees", [1, 4, 16.5, 200])
@pytest.mark.parametrize("probability", [0.5, 0.8, 0.975, 0.9999])
def test_student_quantiles_agree_with_scipy(degrees: float, probability: float) -> None:
    expected = scipy.stats.t.ppf(probability, degrees)

    assert student_quantile(probability, degrees) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_without_brackets_or_without_noise_there_is_no_effect() -> None:
    box = Noise(variance=0.01, degrees_of_freedom=4)
    one = brackets([Point(candidate=name, log_value=0.0) for name in (None, "a", None)])

    assert effect(one.of("nobody"), box, alpha=0.1) is None
    assert effect(one, None, alpha=0.1) is None
    assert effect(one, box, alpha=0.1) is not None


def test_the_box_lends_at_most_sixteen_degrees_of_freedom() -> None:
    box = Noise(variance=0.01, degrees_of_freedom=1000)
    points = [Point(candidate=name, log_value=0.0) for name in (None, "a", None, "a", None)]

    found = effect(brackets(points), box, alpha=0.1)

    assert found is not None
    assert found.degrees_of_freedom == 17


@pytest.mark.parametrize("alpha", [1e-9, 1e-30])
def test_error_rates_beyond_reason_give_wide_and_finite_intervals(alpha: float) -> None:
    box = Noise(variance=1.0, degrees_of_freedom=2)
    points = [Point(candidate=name, log_value=0.0) for name in (None, "a", None)]

    found = effect(brackets(points), box, alpha=alpha)

    assert found is not None
    assert found.percent_low < -99
    assert math.isfinite(found.percent_high)
    assert math.isfinite(min_detectable_effect(box, 3, alpha=alpha))


@pytest.mark.parametrize(
    ("low", "estimate", "high", "decision"),
    [
        (0.01, 0.10, 0.19, "better"),
        (0.01, 0.03, 0.06, "continue"),
        (0.01, 0.03, 0.04, "no-effect"),
        (-0.20, -0.10, -0.001, "worse"),
        (-0.02, -0.01, -0.001, "worse"),
        (-0.04, 0.00, 0.04, "no-effect"),
        (-0.20, -0.08, 0.04, "futile"),
        (-0.20, 0.00, 0.20, "continue"),
        (-0.01, 0.30, 0.61, "continue"),
    ],
)
def test_a_decision_says_no_more_than_its_interval_allows(
    low: float, estimate: float, high: float, decision: str
) -> None:
    found = Effect(
        log_ratio=estimate, low=low, high=high, num_brackets=2, standard_error=0.1, degrees_of_freedom=8, confidence=0.9
    )

    assert decide(found, 0.05) == decision


def told(log_ratio: float, *, after: int, standard_error: float = 0.01, degrees: float = 16.0) -> Effect:
    """What is known after some brackets; the interval is not asked for."""
    return Effect(
        log_ratio=log_ratio, low=-1.0, high=1.0, num_brackets=after, standard_error=standard_error,
        degrees_of_freedom=degrees + after - 1, confidence=0.9,
    )  # fmt: skip


def test_the_chance_of_a_gain_is_the_share_of_continued_series_whose_last_look_shows_it() -> None:
    """Truth drawn from its posterior under a flat prior, then the brackets that are missing; known variance."""
    rng, n, now, last, run_sd, estimate, worth = np.random.default_rng(31), 40_000, 2, 6, 0.02, 0.012, 0.01
    looks, share = Looks(2, last), information(now) / information(last)
    error = run_sd / math.sqrt(information(now))
    truth = estimate + error * rng.standard_normal(n)
    rest = truth + run_sd / math.sqrt(information(last) - information(now)) * rng.standard_normal(n)
    final = share * estimate + (1 - share) * rest
    known = 1e6
    quantile = -student_quantile(nominal_alpha(last, looks, ALPHA, known) / 2, known)
    half = quantile * run_sd / math.sqrt(information(last))
    expected = float(np.mean((final >= math.log1p(worth)) & (final - half > 0)))

    found = told(estimate, after=now, standard_error=error, degrees=known)

    chance = chance_of_gain(found, worth, alpha=ALPHA, looks=looks)
    assert 0.1 < chance < 0.9
    assert chance == pytest.approx(expected, abs=4 * math.sqrt(0.25 / n))


def test_the_chance_of_a_gain_grows_with_the_estimate_and_is_certain_at_the_last_look() -> None:
    looks = Looks(2, 6)
    chances = [chance_of_gain(told(x, after=2), 0.02, alpha=0.1, looks=looks) for x in (-0.05, 0.0, 0.02, 0.1)]

    assert chances == sorted(chances)
    assert chances[0] < 0.01
    assert chances[-1] > 0.99
    assert chance_of_gain(told(0.1, after=6), 0.02, alpha=0.1, looks=looks) == 0.0  # its interval reaches below zero
    shown = told(0.1, after=6).model_copy(update={"low": 0.05})
    assert chance_of_gain(shown, 0.02, alpha=0.1, looks=looks) == 1.0
