"""The error rate is spent as declared, whatever is known of the variance, and more sparingly than in equal parts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import stdtr

from assay.stats.spending import ONE_LOOK, Looks, gaussian_rates, information, nominal_alpha

SERIES = 40_000


@pytest.mark.parametrize("looks", [Looks(1, 6), Looks(2, 6), Looks(3, 12)])
@pytest.mark.parametrize("alpha", [0.1, 0.01])
@pytest.mark.parametrize("prior_degrees", [2, 16])
def test_a_series_of_nothing_crosses_a_boundary_as_often_as_declared(looks: Looks, alpha: float, prior_degrees: int):
    """Independent brackets, each with its own look; the spread estimated from them and from borrowed runs."""
    rng = np.random.default_rng(5)
    brackets = rng.standard_normal((SERIES, looks.last))
    borrowed = rng.chisquare(prior_degrees, SERIES)
    crossed = np.zeros(SERIES, dtype=bool)
    for n in range(looks.first, looks.last + 1):
        mean = brackets[:, :n].mean(axis=1)
        degrees = prior_degrees + n - 1
        spread = np.sqrt((borrowed + ((brackets[:, :n] - mean[:, None]) ** 2).sum(axis=1)) / degrees)
        p_values = 2 * stdtr(degrees, -np.abs(mean) * math.sqrt(n) / spread)
        crossed |= p_values < nominal_alpha(n, looks, alpha, prior_degrees)
    # The boundaries are made for consecutive brackets, whose information grows a little differently.
    assert crossed.mean() <= 1.1 * alpha + 3 * math.sqrt(alpha / SERIES)
    assert crossed.mean() >= 0.8 * alpha


def test_the_rates_are_wider_than_equal_shares_at_every_look():
    rates = gaussian_rates(Looks(2, 6), 0.10)
    assert all(rate > 0.10 / len(rates) for rate in rates)
    assert all(rate < 0.10 for rate in rates)


def test_a_single_look_spends_everything():
    assert nominal_alpha(1, ONE_LOOK, 0.05, 0.0) == 0.05
    assert nominal_alpha(6, Looks(6, 6), 0.05, 3.0) == 0.05


def test_before_the_first_look_its_rate_is_told_and_after_the_last_one_that_of_the_last():
    looks = Looks(3, 5)
    assert nominal_alpha(1, looks, 0.05, 16) == nominal_alpha(3, looks, 0.05, 16)
    assert nominal_alpha(9, looks, 0.05, 16) == nominal_alpha(5, looks, 0.05, 16)


def test_the_information_of_consecutive_brackets_is_that_of_their_mean():
    """Against generalized least squares over the design itself, which weighs the end runs less."""
    assert information(1) == pytest.approx(1 / 1.5)
    assert information(2) == pytest.approx(4 / 3.5)
