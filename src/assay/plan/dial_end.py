"""Whether a search may end: the chance that something better is left.

A search ends where the best setting so far is, with probability 1 - delta, within epsilon of the best of all: an
expected gain has no natural bound (what is a launch worth?), a chance of having missed what matters has. The chance is
counted in draws of the whole surface from its posterior, because settings rise and fall together: bounds one by one
would add up what is one and the same chance.

Source: Wilson, Stopping Bayesian optimization with probabilistic regret bounds, arXiv:2402.16811 (2024), the
(epsilon, delta)-criterion by Monte Carlo.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from assay.plan.dial_kernel import Floats
from assay.plan.dial_surface import Surface

SAMPLES = 1024
"""The chance is known to within 0.01 (binomial, at 0.1)."""
CONTENDERS = 96
"""Settings that are drawn together: those most likely to be better."""
UNLIKELY = 1e-4
"""A setting less likely than this to be better is left out."""
SEED = 1953
JITTER = 1e-9
"""Added to variances of order 1e-4, so that settings which are all but one still have a Cholesky root."""


def chance_of_better(surface: Surface, best: int, may_run: Floats, by: float) -> float:
    """The probability that a setting which runs is better than one of them by more than `by`, in log units.

    Args:
        surface: after the runs so far.
        best: the row that is to be beaten.
        may_run: the chance of each setting to run at all, shape (num_points,). Draws share their luck in this: there is
            one boundary, and who falls beyond it falls with all that take more.
        by: what matters.
    """
    means, spreads = surface.against(best)
    likely = (surface.weights @ ndtr((means - by) / np.maximum(spreads, 1e-12)))[:-1] * may_run
    rows = [int(row) for row in np.argsort(likely)[-CONTENDERS:] if likely[row] > UNLIKELY and row != best]
    if not rows:
        return 0.0
    rng = np.random.default_rng(SEED)
    hits = 0
    for number, count in enumerate(rng.multinomial(SAMPLES, surface.weights)):
        lower = np.linalg.cholesky(_contrasts(surface, number, rows, best) + JITTER * np.eye(len(rows)))
        gains = means[number, rows] + rng.standard_normal((count, len(rows))) @ lower.T
        runs = rng.uniform(size=count)[:, None] < may_run[rows]
        hits += int(((gains > by) & runs).any(axis=1).sum())
    return hits / SAMPLES


def _contrasts(surface: Surface, number: int, rows: list[int], best: int) -> Floats:
    """Covariances of the log ratios of some settings to one, shape (num_rows, num_rows)."""
    every = [*rows, best]
    found = surface.covariance(number, every, every)
    return np.asarray(found[:-1, :-1] - found[:-1, [-1]] - found[[-1], :-1] + found[-1, -1])
