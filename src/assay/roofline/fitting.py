"""Fitting a calibration: factors that a few operating points give.

The logarithms of the factors (`assay.roofline.calibration`) minimize

    sum of (log expected - log measured)^2 / noise^2 + sum of (log factor)^2 / prior^2

so that two measurements correct what they can see and leave the rest near 1. Source: ridge regression in the logs,
solved by Gauss-Newton; own derivation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.errors import UsageError
from assay.records.estimate import StepEstimate
from assay.roofline.calibration import Calibration, Components, components

NOISE = 0.05
"""Standard deviation of one measurement's logarithm: runs of one code path differ by 3-6% (voipmonitor/rtx6kpro)."""
PRIOR = (0.5, 0.5, 0.35, 0.8, 2.0)
"""Standard deviations of the log factors before anything is measured: memory, compute, communication, overhead,
sequences. The last is wide because engines differ by so much: batches inside a C++ runtime cost the host a microsecond
a sequence, answers streamed by vLLM 0.11.1 around 55 (docs/predicted_against_published.md)."""
MISFIT = 0.15
"""Standard deviation of the log of what five factors cannot fit, before residuals tell more, and how many residuals
that counts for. Two points are always fitted nearly exactly, so that their residuals say nothing of it. Set so that the
calibrated range holds 83% (two points) and 90% (all but one) of docs/predicted_against_published.md."""
MISFIT_WEIGHT = 3
_ITERATIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """An operating point: what was expected without calibration, and what was measured."""

    expected: Components
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A point predicted from the other ones."""

    measured_s: float
    predicted_s: float

    @property
    def relative_error(self) -> float:
        """(predicted - measured) / measured."""
        return self.predicted_s / self.measured_s - 1


def measured(step: StepEstimate, tokens_per_s: float) -> Measured:
    """A step (estimated without calibration) and the tokens/s measured at its operating point."""
    return Measured(expected=components(step), time_s=step.point.tokens / tokens_per_s)


def fit(points: Sequence[Measured], *, source: str = "", noise: float = NOISE) -> Calibration:
    """Factors that bring the expected times to the measured ones.

    Raises:
        UsageError: there is no point, or one without a time.
    """
    if not points or any(point.time_s <= 0 or point.expected.time_s <= 0 for point in points):
        raise UsageError(
            "a calibration needs at least one operating point with a measured time above 0",
            hint="measure one or two points that differ in what bounds them: one sequence, and many",
        )
    parts = np.array([_row(point.expected) for point in points])
    logs = np.log([point.time_s for point in points])
    prior = np.diag(1 / np.square(PRIOR))
    theta = np.zeros(len(PRIOR))
    for _ in range(_ITERATIONS):
        jacobian, residuals = _linearized(parts, logs, theta)
        hessian = jacobian.T @ jacobian / noise**2 + prior
        step = np.linalg.solve(hessian, jacobian.T @ residuals / noise**2 - prior @ theta)
        theta = theta + np.clip(step, -1.0, 1.0)
        if np.max(np.abs(step)) < 1e-10:  # noqa: PLR2004 - far below any figure shown
            break
    jacobian, residuals = _linearized(parts, logs, theta)
    covariance = np.linalg.inv(jacobian.T @ jacobian / noise**2 + prior)
    pooled = (MISFIT_WEIGHT * MISFIT**2 + float(np.sum(residuals**2))) / (MISFIT_WEIGHT + len(points))
    misfit = max(noise**2, pooled)
    uncertain = float(np.mean(np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian)))
    memory, compute, communication, overhead, sequences = (float(one) for one in np.exp(theta))
    return Calibration(
        memory=memory,
        compute=compute,
        communication=communication,
        overhead=overhead,
        sequences=sequences,
        spread=float(np.sqrt(misfit + uncertain)),
        points=len(points),
        source=source,
    )


def leave_one_out(points: Sequence[Measured], *, noise: float = NOISE) -> list[LeftOut]:
    """Every point predicted by a calibration on the other ones; none without at least two."""
    found = []
    for index, point in enumerate(points):
        rest = [*points[:index], *points[index + 1 :]]
        if rest:
            fitted = fit(rest, noise=noise)
            found.append(LeftOut(measured_s=point.time_s, predicted_s=point.expected.calibrated_s(fitted)))
    return found


def _row(expected: Components) -> tuple[float, float, float, float, float]:
    return expected.memory, expected.compute, expected.communication, expected.overhead, expected.sequences


def _linearized(parts: np.ndarray, logs: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of the log times by the log factors, and what is left of the measured logs."""
    scaled = parts * np.exp(theta)
    totals = scaled.sum(axis=1)
    return scaled / totals[:, None], logs - np.log(totals)
