"""Bracketed comparisons: candidate runs between two reference runs, and what many of them say together.

A series of runs stands in time order, blocks of candidates between reference runs: R C1 C2 R C3 C1 R ... The effect of
one candidate run is its log value minus what the two reference runs around its block say of that place (the straight
line between them), so any drift that is linear over the block cancels. Brackets of one block share both reference runs
and neighbouring blocks share one: they are correlated, the correlation is known exactly (it is the design), and
generalized least squares uses it.

Source: generalized least squares, Aitken 1935, as in any text on linear models; log ratios as effect measure and
the run as unit of repetition: Kalibera & Jones, ISMM 2013, doi 10.1145/2464157.2464160.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
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


@dataclass(frozen=True, slots=True)
class Span:
    """Where in a series a bracket lies: the candidate's place, and those of the reference runs around its block."""

    at: int
    before: int
    after: int

    @property
    def weight_after(self) -> float:
        """Of the later reference run in what is expected at the candidate's place."""
        return (self.at - self.before) / (self.after - self.before)


def spans(points: Sequence[Point]) -> list[Span]:
    """Every candidate run that has a reference run somewhere before it and after it; one bracket each."""
    references = [i for i, point in enumerate(points) if point.candidate is None]
    return [Span(at, before, after) for before, after in pairwise(references) for at in range(before + 1, after)]


def brackets(points: Sequence[Point]) -> Brackets:
    """Every bracket, in the order of `spans`."""
    import numpy as np

    found = spans(points)
    contrast = np.zeros((len(found), len(points)))
    for row, span in enumerate(found):
        contrast[row, span.at] = 1.0
        contrast[row, span.before], contrast[row, span.after] = span.weight_after - 1.0, -span.weight_after
    names = [name for span in found if (name := points[span.at].candidate) is not None]
    values = np.array([point.log_value for point in points])
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
