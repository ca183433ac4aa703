"""Bracketed comparisons: a candidate run between two reference runs, and what many of them say together.

A series of runs stands in time order, reference and candidates alternating: R C1 R C2 R C1 R ... The effect of
one candidate run is its log value minus the mean of the log values of its two neighbouring reference runs, so any
drift that is linear over three runs cancels. Neighbouring brackets share a reference run and are therefore
correlated; the correlation is known exactly (it is the design), and generalized least squares uses it.

Source: generalized least squares, Aitken 1935, as in any text on linear models; log ratios as effect measure and
the run as unit of repetition: Kalibera & Jones, ISMM 2013, doi 10.1145/2464157.2464160.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One valid run in a series."""

    candidate: str | None
    """None: the reference arm."""
    log_value: float
    """Natural log of the metric, oriented so that more is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brackets:
    """All brackets of a series.

    `contrast` has shape (num_brackets, num_runs): the effects are `contrast @ log_values`, and their covariance is
    the run-to-run variance times `contrast @ contrast.T`.
    """

    candidates: list[str]
    effects: Floats
    contrast: Floats

    def of(self, candidate: str) -> Brackets:
        """The brackets of one candidate."""
        return self.keep([i for i, name in enumerate(self.candidates) if name == candidate])

    def keep(self, indices: Sequence[int]) -> Brackets:
        """Some of the brackets, in the order given."""
        rows = list(indices)
        return Brackets(
            candidates=[self.candidates[i] for i in rows], effects=self.effects[rows], contrast=self.contrast[rows]
        )

    def __len__(self) -> int:
        return len(self.candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Run-to-run variance of the log metric, with the degrees of freedom it rests on."""

    variance: float
    degrees_of_freedom: float

    @property
    def bracket_sd(self) -> float:
        """Standard deviation of a single bracket: one candidate run and the mean of two reference runs."""
        return math.sqrt(1.5 * self.variance)


def bracketed(points: Sequence[Point]) -> list[int]:
    """Places of the candidate runs whose neighbours on both sides are reference runs."""
    return [
        i
        for i in range(1, len(points) - 1)
        if points[i].candidate is not None and points[i - 1].candidate is None and points[i + 1].candidate is None
    ]


def brackets(points: Sequence[Point]) -> Brackets:
    """Every bracket, in the order of `bracketed`."""
    import numpy as np

    places = bracketed(points)
    contrast = np.zeros((len(places), len(points)))
    for row, i in enumerate(places):
        contrast[row, i], contrast[row, i - 1], contrast[row, i + 1] = 1.0, -0.5, -0.5
    values = np.array([point.log_value for point in points])
    names = [name for i in places if (name := points[i].candidate) is not None]
    return Brackets(candidates=names, effects=contrast @ values, contrast=contrast)


def mean_effect(found: Brackets) -> tuple[float, float]:
    """Estimate the common effect of brackets of one candidate.

    Returns:
        The generalized-least-squares mean, and its variance in units of the run-to-run variance.
    """
    import numpy as np

    weights = np.linalg.solve(found.contrast @ found.contrast.T, np.ones(len(found)))
    total = float(weights.sum())
    return float(weights @ found.effects) / total, 1.0 / total


def residual_noise(found: Brackets, *, known_zero: Sequence[str] = ()) -> Noise | None:
    """Estimate the run-to-run variance from what the candidates' mean effects leave over.

    Args:
        found: brackets of one series, any number of candidates.
        known_zero: candidates whose effect is zero by construction (A/A); they spend no degree of freedom.

    Returns:
        The generalized-least-squares residual variance; None without a degree of freedom.
    """
    import numpy as np

    free = sorted({name for name in found.candidates if name not in known_zero})
    degrees = len(found) - len(free)
    if degrees < 1:
        return None
    inverse = np.linalg.inv(found.contrast @ found.contrast.T)
    residual = found.effects
    if free:
        design = np.array([[float(name == column) for column in free] for name in found.candidates])
        beta = np.linalg.solve(design.T @ inverse @ design, design.T @ inverse @ found.effects)
        residual = found.effects - design @ beta
    return Noise(variance=float(residual @ inverse @ residual) / degrees, degrees_of_freedom=degrees)


def successive_noise(log_values: Sequence[float]) -> Noise | None:
    """Estimate the run-to-run variance from the differences between successive runs of one arm.

    Half the mean squared difference: a steady drift hardly enters, a box that turns noisy during the campaign does.
    Its efficiency against the ordinary variance is two thirds, which sets the degrees of freedom. Source: von Neumann,
    Kent, Bellinson & Hart 1941, The mean square successive difference.

    Returns:
        None below three values.
    """
    if len(log_values) < 3:  # noqa: PLR2004 - one difference is no spread
        return None
    import numpy as np

    differences = np.diff(np.asarray(log_values))
    return Noise(variance=float(np.mean(differences**2)) / 2, degrees_of_freedom=2 * len(differences) / 3)


def pool(*noises: Noise | None) -> Noise | None:
    """Pool variance estimates, weighted by their degrees of freedom."""
    known = [noise for noise in noises if noise is not None]
    degrees = sum(noise.degrees_of_freedom for noise in known)
    if not degrees:
        return None
    variance = sum(noise.variance * noise.degrees_of_freedom for noise in known) / degrees
    return Noise(variance=variance, degrees_of_freedom=degrees)
