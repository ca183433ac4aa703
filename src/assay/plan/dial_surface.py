"""What a few noisy runs say of a whole space of settings: a Gaussian process with the estimates as its mean.

The log objective of run i at setting x_i, made at place t_i of the campaign, is held to be

    y_i = c + w m(x_i) + g(x_i) + d(t_i) + e_i

with m the estimate (weight w ~ N(1, 0.5^2): it may be wrong in size and even in sign), g a smooth surface of which half
may be interaction, d a random walk (drift: it cancels between neighbours in time, reference runs hold it fast), and e_i
the box's run-to-run noise. The scales are not fitted, which few runs cannot carry, but averaged over: draws from their
priors, weighted by the likelihood.

Sources: Gaussian process regression, Rasmussen & Williams 2006, algorithm 2.1 and section 4.2.1 (Matern 3/2); expected
improvement, Jones, Schonlau & Welch 1998; for noisy runs over the best posterior mean, Picheny et al. 2013; additive
kernels, Duvenaud, Nickisch & Rasmussen 2011; averaging over the scales, Osborne 2010.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]
DRAWS = 64
SEED = 1951
LEVEL_SD = 1.0
"""Of the common level c, around the mean of the runs."""
WEIGHT_SD = 0.5
AMPLITUDE, AMPLITUDE_SPREAD = 0.2, 0.8
"""Median of the surface's standard deviation, in log units, and log standard deviation of that."""
UNGUIDED = 1.5
"""Times as much where nothing is estimated."""
LENGTH, LENGTH_SPREAD = 0.6, 0.7
"""Median distance over which a knob's effect stays alike, its range being 1."""
NOISE, NOISE_SPREAD = 0.02, 0.7
"""Where the box's noise is not known; known noise is trusted to within a quarter."""
KNOWN_NOISE_SPREAD = 0.25
DRIFT = (0.01, 0.3)
"""Standard deviation of the drift from run to run, in units of the noise."""
LEAST_WEIGHT = 1e-3
"""Draws that explain the runs so much worse than the best one are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One valid run."""

    row: int
    """Of the places: which setting."""
    time: float
    """Its number in the campaign."""
    value: float
    """Log objective, more is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Every setting, and the baseline as the last row."""

    coordinates: Floats
    """Shape (num_places, num_knobs), each knob from 0 to 1."""
    is_ordered: Sequence[bool]
    """Of each knob; values of an unordered one are all equally far apart."""
    estimate: Floats
    """Shape (num_places,), natural log; 0 everywhere where nothing is estimated."""
    is_baseline_known: bool
    """Otherwise the last row stands for itself."""

    @property
    def baseline(self) -> int:
        """The last row."""
        return len(self.coordinates) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """What is believed after the runs, as draws with weights."""

    weights: Floats
    means: Floats
    """Shape (num_draws, num_places)."""
    variances: Floats
    roots: list[Floats]
    """For each draw, shape (num_runs, num_places): covariances of two places are kernel - root . root."""
    kernels: list[_Kernel]
    places: Places

    @property
    def mean(self) -> Floats:
        """Of the log objective, over the draws."""
        return np.asarray(self.weights @ self.means)

    def against(self, row: int) -> tuple[Floats, Floats]:
        """Every place's log ratio to one of them: means and standard deviations, shape (num_draws, num_places)."""
        means = self.means - self.means[:, [row]]
        spreads = np.empty_like(means)
        for number, (kernel, root) in enumerate(zip(self.kernels, self.roots, strict=True)):
            shared = kernel.between(self.places, [row])[0] - root[:, row] @ root
            variance = self.variances[number] + self.variances[number, row] - 2 * shared
            spreads[number] = np.sqrt(np.maximum(variance, 0.0))
        return means, spreads

    def improvement(self, row: int) -> Floats:
        """Expected gain of each place over one of them, in log units: E[max(0, f(x) - f(row))]."""
        means, spreads = self.against(row)
        safe = np.where(spreads > 1e-9, spreads, 1.0)  # noqa: PLR2004 - a place against itself has none
        z = means / safe
        gain = means * ndtr(z) + safe * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
        return np.asarray(self.weights @ np.where(spreads > 1e-9, gain, np.maximum(means, 0.0)))  # noqa: PLR2004

    def interval(self, row: int, other: int, share: float) -> tuple[float, float]:
        """Central interval of the log ratio of two places, the draws taken as one normal distribution."""
        means, spreads = self.against(other)
        mean = float(self.weights @ means[:, row])
        variance = float(self.weights @ (spreads[:, row] ** 2 + (means[:, row] - mean) ** 2))
        half = float(ndtri((1 + share) / 2)) * math.sqrt(variance)
        return mean - half, mean + half


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kernel:
    """The scales of one draw."""

    amplitude: float
    lengths: Floats
    interaction: float
    noise: float
    drift: float

    def between(self, places: Places, rows: Sequence[int]) -> Floats:
        """Prior covariance of some places with all, shape (num_rows, num_places)."""
        near = np.ones((len(rows), len(places.coordinates)))
        total = np.zeros_like(near)
        for knob, length in enumerate(self.lengths):
            column = places.coordinates[:, knob]
            apart = np.abs(column[rows][:, None] - column[None, :])
            one = _matern(apart if places.is_ordered[knob] else (apart > 0).astype(float), float(length))
            total += one
            near *= one
        surface = (1 - self.interaction) * total / len(self.lengths) + self.interaction * near
        guided = WEIGHT_SD**2 * places.estimate[rows][:, None] * places.estimate[None, :]
        found = LEVEL_SD**2 + self.amplitude**2 * surface + guided
        return found if places.is_baseline_known else _apart(found, rows, places.baseline)


def believe(places: Places, seen: Sequence[Seen], noise: float | None) -> Surface:
    """Condition on the runs.

    Args:
        places: what may be run.
        seen: at least one valid run.
        noise: run-to-run standard deviation of the log objective; None: unknown.
    """
    rows = [one.row for one in seen]
    values = np.array([one.value for one in seen])
    times = np.array([one.time for one in seen])
    level = float(values.mean() - places.estimate[rows].mean())
    prior = level + places.estimate
    walk = np.minimum(times[:, None], times[None, :]) - times.min()
    fits = [_fit(kernel, places, rows, values - prior[rows], walk) for kernel in _draws(places, noise)]
    likelihoods = np.array([fit.log_likelihood for fit in fits])
    weights = np.exp(likelihoods - likelihoods.max())
    kept = [number for number, weight in enumerate(weights) if weight > LEAST_WEIGHT]
    return Surface(
        weights=weights[kept] / weights[kept].sum(),
        means=np.array([prior + fits[number].shift for number in kept]),
        variances=np.array([fits[number].variance for number in kept]),
        roots=[fits[number].root for number in kept],
        kernels=[fits[number].kernel for number in kept],
        places=places,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    kernel: _Kernel
    log_likelihood: float
    shift: Floats
    variance: Floats
    root: Floats


def _fit(kernel: _Kernel, places: Places, rows: Sequence[int], residual: Floats, walk: Floats) -> _Fit:
    across = kernel.between(places, rows)
    own = across[:, rows] + (kernel.drift * kernel.noise) ** 2 * walk + kernel.noise**2 * np.eye(len(rows))
    lower = np.linalg.cholesky(own)
    root = solve_triangular(lower, across, lower=True, check_finite=False)
    white = solve_triangular(lower, residual, lower=True, check_finite=False)
    return _Fit(
        kernel=kernel,
        log_likelihood=float(-0.5 * white @ white - np.log(np.diag(lower)).sum()),
        shift=white @ root,
        variance=_prior_variance(kernel, places) - (root**2).sum(axis=0),
        root=root,
    )


def _prior_variance(kernel: _Kernel, places: Places) -> Floats:
    return np.asarray(LEVEL_SD**2 + kernel.amplitude**2 + WEIGHT_SD**2 * places.estimate**2)


def _draws(places: Places, noise: float | None) -> list[_Kernel]:
    """The same draws every time: what is next depends on the record alone."""
    rng = np.random.default_rng(SEED)
    num_knobs = places.coordinates.shape[1]
    guided = bool(np.ptp(places.estimate) > 0)
    typical = AMPLITUDE if guided else UNGUIDED * AMPLITUDE
    found = []
    for _ in range(DRAWS):
        z = rng.standard_normal(num_knobs + 2)
        interaction, drift = rng.uniform(0.1, 0.9), math.exp(rng.uniform(math.log(DRIFT[0]), math.log(DRIFT[1])))
        found.append(
            _Kernel(
                amplitude=typical * math.exp(AMPLITUDE_SPREAD * z[0]),
                noise=NOISE * math.exp(NOISE_SPREAD * z[1]) if noise is None else _near(noise, z[1]),
                lengths=LENGTH * np.exp(LENGTH_SPREAD * z[2:]),
                interaction=interaction,
                drift=drift,
            )
        )
    return found


def _near(noise: float, z: float) -> float:
    return max(noise, 1e-4) * math.exp(KNOWN_NOISE_SPREAD * z)


def _matern(apart: Floats, length: float) -> Floats:
    scaled = math.sqrt(3) * apart / length
    return np.asarray((1 + scaled) * np.exp(-scaled))


def _apart(covariance: Floats, rows: Sequence[int], baseline: int) -> Floats:
    """A baseline of unknown setting tells nothing of the others, nor they of it."""
    is_baseline = np.array(rows) == baseline
    covariance[is_baseline, :baseline] = 0.0
    covariance[~is_baseline, baseline] = 0.0
    return covariance
