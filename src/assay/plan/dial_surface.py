"""What a few noisy runs say of a whole space of settings: a Gaussian process with the estimates as its mean.

The log objective of run i at setting x_i, made at place t_i of the campaign, is held to be

    y_i = c + w m(x_i) + g(x_i) + d(t_i) + e_i

with m the estimate (weight w ~ N(1, 0.5^2): it may be wrong in size and even in sign), g a surface of main effects and
interactions (`assay.plan.dial_kernel`), d a random walk (drift: it cancels between neighbours in time, reference runs
hold it fast), and e_i the box's run-to-run noise. The scales are not fitted, which few runs cannot carry, but averaged
over: draws from their priors, weighted by the likelihood.

Sources: Gaussian process regression, Rasmussen & Williams 2006, algorithm 2.1; expected improvement, Jones, Schonlau &
Welch 1998; for noisy runs over the best posterior mean, Picheny et al. 2013; averaging over the scales, Osborne 2010.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import ndtr, ndtri

from assay.plan.dial_kernel import Floats, Kernel, Places, draw_kernels

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
class Surface:
    """What is believed after the runs, as draws with weights."""

    weights: Floats
    means: Floats
    """Shape (num_draws, num_places)."""
    variances: Floats
    roots: list[Floats]
    """For each draw, shape (num_runs, num_places): covariances of two places are kernel - root . root."""
    kernels: list[Kernel]
    places: Places

    @property
    def mean(self) -> Floats:
        """Of the log objective, over the draws."""
        return np.asarray(self.weights @ self.means)

    def covariance(self, number: int, rows: Sequence[int], columns: Sequence[int] | None = None) -> Floats:
        """Of some places with others (None: with all) in one draw, shape (num_rows, num_columns)."""
        root = self.roots[number]
        others = root if columns is None else root[:, columns]
        return np.asarray(self.kernels[number].between(self.places, rows, columns) - root[:, rows].T @ others)

    def against(self, row: int) -> tuple[Floats, Floats]:
        """Every place's log ratio to one of them: means and standard deviations, shape (num_draws, num_places)."""
        means = self.means - self.means[:, [row]]
        spreads = np.empty_like(means)
        for number in range(len(self.kernels)):
            shared = self.covariance(number, [row])[0]
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
    fits = [_fit(kernel, places, rows, values - prior[rows], walk) for kernel in draw_kernels(places, noise)]
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
    kernel: Kernel
    log_likelihood: float
    shift: Floats
    variance: Floats
    root: Floats


def _fit(kernel: Kernel, places: Places, rows: Sequence[int], residual: Floats, walk: Floats) -> _Fit:
    across = kernel.between(places, rows)
    own = across[:, rows] + (kernel.drift * kernel.noise) ** 2 * walk + kernel.noise**2 * np.eye(len(rows))
    lower = np.linalg.cholesky(own)
    root = solve_triangular(lower, across, lower=True, check_finite=False)
    white = solve_triangular(lower, residual, lower=True, check_finite=False)
    return _Fit(
        kernel=kernel,
        log_likelihood=float(-0.5 * white @ white - np.log(np.diag(lower)).sum()),
        shift=white @ root,
        variance=kernel.variance(places) - (root**2).sum(axis=0),
        root=root,
    )
