"""How far predictions are off together: a factor for each group, shrunk to a common one, and that to 1.

The model, in log ratios, for a prediction with middle m and standard deviation s, and a measured effect e with standard
error se, in group g:

    e = b_g m + w s eps + se eta,    b_g ~ N(b, GROUP_SD^2),    b ~ N(1, OVERALL_SD^2),    eps, eta ~ N(0, 1)

All posteriors of b and b_g are exact for a given w (normal-normal, two levels); w^2 is a scaled-chi-squared estimate
with WIDTH_DEGREES prior observations that say 1. A prediction of "nothing" (m = 0) says nothing about b, as it must.
A range is taken to cover its own bias: with no evidence the corrected range is the range. What bias remains after
shrinkage widens w, because w is learned from residuals that each leave their own observation out; what noise the
correction itself brings in is added by `noise_of`.

Sources: two-level normal model, Lindley & Smith 1972; Gelman et al., Bayesian Data Analysis (2013), section 5.4; moment
estimate of a variance under known noise, DerSimonian & Laird 1986; beta-binomial as in Gelman et al., section 2.4.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

OVERALL_SD = 0.5
"""Before any evidence, a machine class's factor is thought to be between 0.36 and 1.64 four times in five."""
GROUP_SD = 0.3
"""And a mechanism's within +-0.38 of its class's."""
WIDTH_DEGREES = 4.0
"""Observations that the widening's prior of 1 counts for."""
FACTORS = (0.0, 3.0)
"""A factor below 0 would say: the more was promised the more is lost."""
WIDENINGS = (0.5, 3.0)
OUTLIER = 4.0
"""A residual counts for at most this many stated standard deviations: one cliff does not widen all others without end."""
ITERATIONS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One prediction with what was measured."""

    group: str
    middle: float
    spread: float
    estimate: float
    standard_error: float


@dataclass(frozen=True, slots=True)
class Normal:
    """A factor as it is known: mean and variance."""

    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class _Sums:
    """What a group's observations say of its factor: information, and information times value."""

    information: float = 0.0
    weighted: float = 0.0

    def __sub__(self, other: _Sums) -> _Sums:
        return _Sums(max(self.information - other.information, 0.0), self.weighted - other.weighted)

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.information + other.information, self.weighted + other.weighted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Factors and widening."""

    widening: float
    sums: dict[str, _Sums] = field(default_factory=dict)

    @property
    def overall(self) -> Normal:
        """The common factor."""
        return _common(self.sums)

    def group(self, name: str) -> Normal:
        """A group's factor; a group that nothing is known of has the common one, less surely."""
        return _own(self.sums, name)


def fit(observed: Sequence[Observed]) -> Fit:
    """Learn factors and widening by turns until they agree."""
    widening, sums = 1.0, _sums(observed, 1.0)
    for _ in range(ITERATIONS):
        before, widening = widening, _widening(observed, sums, widening)
        sums = _sums(observed, widening)
        if abs(widening - before) < 1e-4:  # noqa: PLR2004 - far below what anybody sees
            break
    return Fit(widening=widening, sums=sums)


def noise_of(factor_variance: float) -> float:
    """Variance that an estimated factor would have if the truth were 1: what correcting by it adds to a range.

    A posterior mean with prior variance P and posterior variance V scatters by V (1 - V / P) around its expectation: not
    at all without evidence, and like V with much of it.
    """
    prior = OVERALL_SD**2 + GROUP_SD**2
    return factor_variance * max(0.0, 1 - factor_variance / prior)


def beta_mean(mean: float, strength: float, successes: int, trials: int) -> float:
    """Posterior mean of a chance whose Beta prior has this mean and counts for `strength` trials."""
    return (mean * strength + successes) / (strength + trials)


def clamped(value: float, limits: tuple[float, float]) -> float:
    """The value, or the limit that it passes."""
    return min(max(value, limits[0]), limits[1])


def _information(one: Observed, widening: float) -> _Sums:
    variance = (widening * one.spread) ** 2 + one.standard_error**2
    return _Sums(one.middle**2 / variance, one.middle * one.estimate / variance)


def _sums(observed: Sequence[Observed], widening: float) -> dict[str, _Sums]:
    sums: dict[str, _Sums] = defaultdict(_Sums)
    for one in observed:
        sums[one.group] += _information(one, widening)
    return dict(sums)


def _common(sums: dict[str, _Sums], *, without: str | None = None) -> Normal:
    """Posterior of b: each group's own estimate has variance GROUP_SD^2 + 1 / information."""
    precision, weighted = 1 / OVERALL_SD**2, 1 / OVERALL_SD**2
    for name, own in sums.items():
        if name != without and own.information > 0:
            weight = 1 / (GROUP_SD**2 + 1 / own.information)
            precision += weight
            weighted += weight * own.weighted / own.information
    return Normal(weighted / precision, 1 / precision)


def _own(sums: dict[str, _Sums], name: str) -> Normal:
    """Posterior of b_g: the other groups give its prior, its own observations the rest."""
    others = _common(sums, without=name)
    precision = 1 / (others.variance + GROUP_SD**2)
    own = sums.get(name, _Sums())
    total = precision + own.information
    return Normal((precision * others.mean + own.weighted) / total, 1 / total)


def _widening(observed: Sequence[Observed], sums: dict[str, _Sums], widening: float) -> float:
    """Moment estimate of w: squared residuals less their noise, in units of s^2, weighed by what they tell of w."""
    total, weights = WIDTH_DEGREES, WIDTH_DEGREES
    for one in observed:
        rest = {**sums, one.group: sums[one.group] - _information(one, widening)}
        factor = clamped(_own(rest, one.group).mean, FACTORS)
        noise, own = one.standard_error**2, one.spread**2
        square = min((one.estimate - factor * one.middle) ** 2, OUTLIER**2 * (own + noise))
        weight = (own / (own + noise)) ** 2
        total += weight * (square - noise) / own
        weights += weight
    return clamped(math.sqrt(max(total / weights, 0.0)), WIDENINGS)
