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
    Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One valid run in a series."""

    candidate: str | None
    """None: the reference arm."""
    log_value: float
    """Natural log of the metric, oriented so that more is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brackets:
    """Brackets of one series, in time order; the arrays have shape (num_brackets,).

    Each effect is one candidate run, less (1 - w) times the reference run before its block, less w times the one after.
    So two brackets hang together only where they share a reference run, and the covariance matrix has a narrow band.
    """

    candidates: list[str]
    effects: Floats
    before: Places
    """Place in the series of the reference run before the block."""
    after: Places
    weight_after: Floats
    """w: of the later reference run in what is expected at the candidate's place."""

    def of(self, candidate: str) -> Brackets:
        """The brackets of one candidate."""
        return self.keep([i for i, name in enumerate(self.candidates) if name == candidate])

    def without(self, candidate: str | None) -> Brackets:
        """The brackets of all others."""
        return self.keep([i for i, name in enumerate(self.candidates) if name != candidate])

    def keep(self, indices: Sequence[int]) -> Brackets:
        """Some of the brackets; indices ascend."""
        rows = list(indices)
        return Brackets(
            candidates=[self.candidates[i] for i in rows],
            effects=self.effects[rows],
            before=self.before[rows],
            after=self.after[rows],
            weight_after=self.weight_after[rows],
        )

    def whitened(self, columns: Floats) -> Floats:
        """The inverse of the covariance, in units of the run-to-run variance, times columns (num_brackets, ...).

        Cost grows with the number of brackets, not with its cube: Cholesky of a band.
        """
        band = self.covariance_band()
        if len(band) == 1:  # no two share a reference run
            divided: Floats = columns / (band[0] if columns.ndim == 1 else band[0][:, None])
            return divided
        from scipy.linalg import solveh_banded

        solved: Floats = solveh_banded(band, columns, lower=True, check_finite=False)
        return solved

    def covariance_band(self) -> Floats:
        """Lower band of the covariance, as `scipy.linalg` wants it: row d holds that of brackets i and i + d."""
        import numpy as np

        count, w = len(self), self.weight_after
        last_sharing = np.searchsorted(self.before, self.after, side="right") - 1
        band = np.zeros((1 + int((last_sharing - np.arange(count)).max()), count))
        band[0] = 1 + (1 - w) ** 2 + w**2
        for d in range(1, len(band)):
            same_block = (1 - w[:-d]) * (1 - w[d:]) + w[:-d] * w[d:]
            next_block = w[:-d] * (1 - w[d:])
            shares_one = np.where(self.before[d:] == self.after[:-d], next_block, 0.0)
            band[d, :-d] = np.where(self.before[d:] == self.before[:-d], same_block, shares_one)
        return band

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


def spans(points: Sequence[Point]) -> list[Span]:
    """Every candidate run that has a reference run somewhere before it and after it; one bracket each."""
    references = [i for i, point in enumerate(points) if point.candidate is None]
    return [Span(at, before, after) for before, after in pairwise(references) for at in range(before + 1, after)]


def brackets(points: Sequence[Point]) -> Brackets:
    """Every bracket, in the order of `spans`."""
    import numpy as np

    found = spans(points)
    at, before, after = np.array([(one.at, one.before, one.after) for one in found], dtype=np.int64).reshape(-1, 3).T
    values = np.array([point.log_value for point in points])
    weight_after = (at - before) / (after - before)
    return Brackets(
        candidates=[name for one in found if (name := points[one.at].candidate) is not None],
        effects=values[at] - (1 - weight_after) * values[before] - weight_after * values[after],
        before=before,
        after=after,
        weight_after=weight_after,
    )


def mean_effect(found: Brackets) -> tuple[float, float]:
    """Estimate the common effect of brackets of one candidate.

    Returns:
        The generalized-least-squares mean, and its variance in units of the run-to-run variance.
    """
    import numpy as np

    weights = found.whitened(np.ones(len(found)))
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

    free = {name: column for column, name in enumerate(sorted(set(found.candidates) - set(known_zero)))}
    degrees = len(found) - len(free)
    if degrees < 1:
        return None
    design = np.zeros((len(found), len(free)))
    own = [(row, free[name]) for row, name in enumerate(found.candidates) if name in free]
    design[[row for row, _ in own], [column for _, column in own]] = 1.0
    whitened = found.whitened(np.column_stack([found.effects, design]))
    means = np.linalg.solve(design.T @ whitened[:, 1:], design.T @ whitened[:, 0])
    squares = float((found.effects - design @ means) @ (whitened[:, 0] - whitened[:, 1:] @ means))
    return Noise(variance=max(squares, 0.0) / degrees, degrees_of_freedom=degrees)


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
