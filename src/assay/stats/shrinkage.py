"""How far predictions are off together: a factor for each group, shrunk to a common one, and that to 1.

The model, in log ratios, for a prediction with middle m and standard deviation s, and a measured effect e with standard
error se, in group g:

    e = b_g m + w s eps + se eta,    b_g ~ N(b, GROUP_SD^2),    b ~ N(1, OVERALL_SD^2),    eps, eta ~ N(0, 1)

All posteriors of b and b_g are exact for a given w (normal-normal, two levels); w^2 is a scaled-chi-squared estimate
with WIDTH_DEGREES prior observations that say 1. A prediction of "nothing" (m = 0) says nothing about b, as it must.
A range is taken to cover its own bias: with no evidence the corrected range is the range. What bias remains after
shrinkage widens w, because w is learned from residuals that each leave their own observation out; what noise the
correction itself brings in is added by `noise_of`.

An effect far from everything (a cliff) is weighed down: (n + 1) / (n + z^2) for its standardized residual z.

Sources: weights of Student residuals, Lange, Little & Taylor 1989; two-level normal model, Lindley & Smith 1972, and
Gelman et al., Bayesian Data Analysis (2013), section 5.4; moment estimate of a variance under known noise, DerSimonian
& Laird 1986; beta-binomial, Gelman et al., section 2.4.
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
"""A residual counts for at most this many stated standard deviations: one cliff does not widen all others at will."""
TAIL_DEGREES = 4.0
"""Degrees of freedom of the Student distribution that residuals are weighed by, so that a cliff moves little."""
ITERATIONS = 20
CLOSE = 1e-4
"""Far below what anybody sees."""


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

    def __mul__(self, weight: float) -> _Sums:
        return _Sums(self.information * weight, self.weighted * weight)

    def __sub__(self, other: _Sums) -> _Sums:
        return _Sums(max(self.information - other.information, 0.0), self.weighted - other.weighted)

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.information + other.information, self.weighted + other.weighted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Factors and widening."""

    widening: float
    weights: tuple[float, ...] = ()
    """What each observation counts for: about 1, and near 0 for one far from everything."""
    sums: dict[str, _Sums] = field(default_factory=dict)

    @property
    def overall(self) -> Normal:
        """The common factor."""
        return _common(self.sums)

    def group(self, name: str) -> Normal:
        """A group's factor; a group that nothing is known of has the common one, less surely."""
        return _own(self.sums, name)


def fit(observed: Sequence[Observed]) -> Fit:
    """Learn factors, widening and weights by turns until they agree."""
    found = _with(observed, 1.0, (1.0,) * len(observed))
    for _ in range(ITERATIONS):
        before = found
        left_out = [_without(one, weight, before) for one, weight in zip(observed, before.weights, strict=True)]
        weights = tuple(_weight(one, known, before.widening) for one, known in zip(observed, left_out, strict=True))
        found = _with(observed, _widening(observed, left_out), weights)
        if abs(found.widening - before.widening) < CLOSE and abs(found.overall.mean - before.overall.mean) < CLOSE:
            break
    return found


def noise_of(factor_variance: float) -> float:
    """Variance that an estimated factor would have if the truth were 1: what correcting by it adds to a range.

    A posterior mean with prior variance P and posterior variance V scatters by V (1 - V / P) around its expectation:
    not at all without evidence, and like V with much of it.
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


def _with(observed: Sequence[Observed], widening: float, weights: tuple[float, ...]) -> Fit:
    sums: dict[str, _Sums] = defaultdict(_Sums)
    for one, weight in zip(observed, weights, strict=True):
        sums[one.group] += _information(one, widening) * weight
    return Fit(widening=widening, weights=weights, sums=dict(sums))


def _without(one: Observed, weight: float, found: Fit) -> Normal:
    """A group's factor as all but this observation know it."""
    rest = found.sums[one.group] - _information(one, found.widening) * weight
    return _own({**found.sums, one.group: rest}, one.group)


def _weight(one: Observed, known: Normal, widening: float) -> float:
    variance = (widening * one.spread) ** 2 + one.standard_error**2 + one.middle**2 * known.variance
    square = (one.estimate - known.mean * one.middle) ** 2 / variance
    return (TAIL_DEGREES + 1) / (TAIL_DEGREES + square)


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


def _widening(observed: Sequence[Observed], left_out: Sequence[Normal]) -> float:
    """Moment estimate of w: squared residuals less their noise, in units of s^2, weighed by what they tell of w."""
    total, weights = WIDTH_DEGREES, WIDTH_DEGREES
    for one, known in zip(observed, left_out, strict=True):
        noise, own = one.standard_error**2, one.spread**2
        residual = one.estimate - clamped(known.mean, FACTORS) * one.middle
        square = min(residual**2, OUTLIER**2 * (own + noise))
        weight = (own / (own + noise)) ** 2
        total += weight * (square - noise) / own
        weights += weight
    return clamped(math.sqrt(max(total / weights, 0.0)), WIDENINGS)
