"""Does a quantity keep to a limit? One-sided bounds of a mean of few runs, with the spread that other runs lend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from assay.stats.brackets import Noise, pool
from assay.stats.sequential import lent, student_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Of a mean of logs: each is wrong at the declared rate."""

    mean: float
    low: float
    high: float


def mean_bounds(log_values: Sequence[float], others: Noise | None, *, alpha: float) -> Bounds | None:
    """Lower and upper one-sided bounds of the mean that runs scatter around.

    Student's interval with pooled variance: s^2 = (d0 s0^2 + (n - 1) s_own^2) / (d0 + n - 1), d0 capped as for effects.

    Args:
        log_values: logs of the quantity, one a run.
        others: run-to-run variance of the same log quantity in other runs.
        alpha: error rate of each bound.

    Returns:
        None without a run, or without any degree of freedom.
    """
    n = len(log_values)
    if n == 0:
        return None
    mean = sum(log_values) / n
    own = None
    if n > 1:
        own = Noise(variance=sum((v - mean) ** 2 for v in log_values) / (n - 1), degrees_of_freedom=n - 1)
    noise = pool(lent(others), own)
    if noise is None:
        return None
    half = -student_quantile(alpha, noise.degrees_of_freedom) * math.sqrt(noise.variance / n)
    return Bounds(mean=mean, low=mean - half, high=mean + half)
