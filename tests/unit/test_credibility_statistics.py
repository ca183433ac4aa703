"""A biased catalogue is corrected towards the truth, a calibrated one stays, and corrected ranges hold what they say.

Tolerances: means over `WORLDS` simulated histories; each world's draws are independent, so the standard error of a mean
is its sample standard deviation over sqrt(WORLDS), and four of them are allowed unless a wider reason is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from assay.records.scoring import Z_NOMINAL
from assay.stats.scoring import interval_score
from assay.stats.shrinkage import FACTORS, GROUP_SD, OVERALL_SD, Fit, Observed, beta_mean, clamped, fit, noise_of

WORLDS = 200
MECHANISMS = ("batch", "kernel", "kv-bytes", "host")
HELD_OUT = 20


@dataclass(frozen=True)
class Catalogue:
    """How it is wrong: truth = factor of the mechanism x middle + scatter x sd x eps."""

    factors: dict[str, float]
    scatter: float = 1.0
    noise: float = 0.03

    def draw(self, rng: np.random.Generator, count: int) -> list[tuple[Observed, float]]:
        """Entries in turn from each mechanism, each with its true log ratio."""
        found = []
        for i in range(count):
            group = MECHANISMS[i % len(MECHANISMS)]
            middle, spread = rng.uniform(0.0, 0.4), rng.uniform(0.03, 0.15)
            truth = self.factors[group] * middle + self.scatter * spread * rng.standard_normal()
            estimate = truth + self.noise * rng.standard_normal()
            one = Observed(group=group, middle=middle, spread=spread, estimate=estimate, standard_error=self.noise)
            found.append((one, truth))
        return found


def everywhere(factor: float) -> dict[str, float]:
    return dict.fromkeys(MECHANISMS, factor)


def corrected(found: Fit, one: Observed) -> tuple[float, float]:
    """The range as `assay.plan.credibility.corrected_range` makes it, in log ratio."""
    factor = found.group(one.group)
    middle = clamped(factor.mean, FACTORS) * one.middle
    half = Z_NOMINAL * math.hypot(found.widening * one.spread, math.sqrt(noise_of(factor.variance)) * one.middle)
    return middle - half, middle + half


def stated(one: Observed) -> tuple[float, float]:
    return one.middle - Z_NOMINAL * one.spread, one.middle + Z_NOMINAL * one.spread


@dataclass(frozen=True)
class History:
    """Means over worlds, each with its standard error."""

    factor: float
    factor_se: float
    widening: float
    coverage: float
    coverage_se: float
    stated_coverage: float
    score: float
    stated_score: float
    better: float
    """Share of worlds in which the corrected ranges had the better mean interval score on entries not yet tried."""


def history(catalogue: Catalogue, tried: int, seed: int = 1) -> History:
    rng = np.random.default_rng(seed)
    factors, widenings, covers, stated_covers, scores, stated_scores = [], [], [], [], [], []
    for _ in range(WORLDS):
        found = fit([one for one, _ in catalogue.draw(rng, tried)])
        fresh = catalogue.draw(rng, HELD_OUT)
        factors.append(found.overall.mean)
        widenings.append(found.widening)
        for ranges, covered, scored in ((corrected, covers, scores), (stated, stated_covers, stated_scores)):
            ends = [(*(corrected(found, one) if ranges is corrected else stated(one)), truth) for one, truth in fresh]
            covered.append(np.mean([low <= truth <= high for low, high, truth in ends]))
            scored.append(np.mean([interval_score(*end) for end in ends]))
    root = np.sqrt(WORLDS)
    return History(
        factor=float(np.mean(factors)), factor_se=float(np.std(factors) / root), widening=float(np.mean(widenings)),
        coverage=float(np.mean(covers)), coverage_se=float(np.std(covers) / root),
        stated_coverage=float(np.mean(stated_covers)), score=float(np.mean(scores)),
        stated_score=float(np.mean(stated_scores)),
        better=float(np.mean(np.array(scores) < np.array(stated_scores))),
    )  # fmt: skip


def test_with_nothing_tried_the_corrected_range_is_the_stated_one() -> None:
    found = fit([])
    one = Observed(group="batch", middle=0.2, spread=0.1, estimate=9.0, standard_error=0.1)

    assert corrected(found, one) == pytest.approx(stated(one))
    assert found.widening == 1


def test_a_calibrated_catalogue_stays() -> None:
    seen = history(Catalogue(everywhere(1.0)), 16)

    assert seen.factor == pytest.approx(1, abs=4 * seen.factor_se)
    assert seen.widening == pytest.approx(1, abs=0.08)  # learned from residuals out of sample: a little above 1
    assert seen.stated_coverage == pytest.approx(0.8, abs=0.015)
    assert 0.8 - 4 * seen.coverage_se <= seen.coverage <= 0.84
    assert seen.score < 1.15 * seen.stated_score  # the price of asking, where there was nothing to correct


@pytest.mark.parametrize(("factor", "tried", "better"), [(1 / 1.4, 8, 0.8), (0.5, 4, 0.95), (0.0, 8, 0.99)])
def test_a_catalogue_that_overstates_is_corrected_towards_the_truth(factor: float, tried: int, better: float) -> None:
    """Shrinkage leaves part of the way: at most a third of it after these few entries."""
    seen = history(Catalogue(everywhere(factor)), tried)

    assert abs(seen.factor - factor) < (1 - factor) / 3 + 4 * seen.factor_se
    assert 0.8 - 4 * seen.coverage_se <= seen.coverage < 0.86
    assert seen.coverage > seen.stated_coverage + 0.1
    assert seen.better > better


def test_an_estimate_goes_on_towards_the_truth_with_every_entry_tried() -> None:
    found = [history(Catalogue(everywhere(0.5)), tried).factor for tried in (0, 4, 16, 64)]

    assert found[0] == 1
    assert sorted(found, reverse=True) == found
    assert found[-1] == pytest.approx(0.5, abs=0.05)


def test_ranges_that_are_too_narrow_are_widened_and_too_wide_ones_narrowed() -> None:
    narrow, wide = (
        history(Catalogue(everywhere(1.0), scatter=2.0), 32),
        history(Catalogue(everywhere(1.0), scatter=0.6), 32),
    )

    assert 1.6 < narrow.widening < 2
    assert narrow.stated_coverage < 0.5
    assert narrow.coverage > 0.75
    assert 0.6 < wide.widening < 0.85
    assert wide.better > 0.8


def test_one_mechanism_that_does_nothing_is_told_from_the_others() -> None:
    catalogue = Catalogue({**everywhere(1.0), "batch": 0.0})
    rng = np.random.default_rng(3)
    found = [fit([one for one, _ in catalogue.draw(rng, 24)]) for _ in range(WORLDS)]

    batch, kernel = (np.array([each.group(name).mean for each in found]) for name in ("batch", "kernel"))
    assert batch.mean() < 0.25
    assert kernel.mean() > 0.85
    assert np.mean(batch < kernel) > 0.99


def test_one_cliff_does_not_condemn_the_rest() -> None:
    rng = np.random.default_rng(4)
    calm = [one for one, _ in Catalogue(everywhere(1.0)).draw(rng, 12)]
    cliff = Observed(group="host", middle=0.1, spread=0.01, estimate=-0.7, standard_error=0.03)

    before, after = fit(calm), fit([*calm, cliff])

    assert after.weights[-1] < 0.1
    assert after.widening < before.widening + 0.5
    assert after.group("batch").mean == pytest.approx(before.group("batch").mean, abs=0.25)


def test_predictions_of_nothing_say_nothing_about_the_factor() -> None:
    idle = [Observed(group="host", middle=0, spread=0.02, estimate=value, standard_error=0.01) for value in (0.1, -0.2)]

    assert fit(idle).overall.mean == 1


def test_noise_that_hides_everything_moves_nothing() -> None:
    one = Observed(group="host", middle=0.2, spread=0.1, estimate=-1.0, standard_error=50.0)

    assert fit([one]).overall.mean == pytest.approx(1, abs=0.001)
    assert fit([one]).widening == pytest.approx(1, abs=0.001)


def test_the_two_level_posterior_is_that_of_the_joint_normal_distribution() -> None:
    """Against brute force: the joint normal of (b, b_1, b_2) updated by all observations at once."""
    observed = [
        Observed(group="one", middle=0.3, spread=0.1, estimate=0.1, standard_error=0.05),
        Observed(group="one", middle=0.1, spread=0.05, estimate=0.12, standard_error=0.02),
        Observed(group="two", middle=0.4, spread=0.2, estimate=0.5, standard_error=0.1),
    ]
    prior = np.array([[0.25, 0.25, 0.25], [0.25, 0.34, 0.25], [0.25, 0.25, 0.34]])
    found = fit(observed)
    design = np.array([[0, one.middle, 0] if one.group == "one" else [0, 0, one.middle] for one in observed])
    noise = np.diag(
        [
            ((found.widening * one.spread) ** 2 + one.standard_error**2) / w
            for one, w in zip(observed, found.weights, strict=True)
        ]
    )
    gain = prior @ design.T @ np.linalg.inv(design @ prior @ design.T + noise)
    mean = np.ones(3) + gain @ (np.array([one.estimate for one in observed]) - design @ np.ones(3))
    variance = np.diag(prior - gain @ design @ prior)

    for known, i in ((found.overall, 0), (found.group("one"), 1), (found.group("two"), 2)):
        assert (known.mean, known.variance) == pytest.approx((mean[i], variance[i]))


def test_the_price_of_correcting_is_nothing_without_evidence_and_the_posterior_variance_with_much() -> None:
    prior = OVERALL_SD**2 + GROUP_SD**2

    assert noise_of(prior) == 0
    assert noise_of(0.001) == pytest.approx(0.001, rel=0.01)


def test_a_chance_moves_from_its_prior_to_what_was_seen() -> None:
    assert beta_mean(0.8, 5, 0, 0) == pytest.approx(0.8)
    assert beta_mean(0.8, 5, 0, 5) == pytest.approx(0.4)
    assert beta_mean(0.8, 5, 0, 500) < 0.01
