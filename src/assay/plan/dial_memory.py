"""Which settings have the memory they need: what failures rule out, and the chance of the others.

A knob declares what a larger value does to the memory taken; how much it takes nobody has to know. A setting that ran
out of memory rules out every setting that takes no less on any knob; one that ran clears every setting that takes no
more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from assay.plan.dial_runs import History
from assay.plan.dial_space import Space

Floats = NDArray[np.float64]
LEAST_CHANCE = 0.05
"""Of a setting that nothing rules out."""


def chances(space: Space, found: History) -> Floats:
    """The chance of each setting to run at all, shape (num_points,); 0: it failed, or must fail.

    How far a setting goes beyond what ran is set against how far it stays below what ran out of memory, over the knobs
    that matter, each knob's range being 1: midway the chance is one half. As long as nothing ran out of memory, the
    limit is held to lie as far beyond the largest setting as that is beyond the setting in question, and again.
    """
    spans = np.array([max(len(axis.values) - 1, 1) for axis in space.axes], dtype=float)
    signs = np.array([axis.memory for axis in space.axes], dtype=float)
    points = signs * np.array(space.points, dtype=float) / spans
    ran: list[Sequence[float]] = [trial.point for trial in found.valid if trial.point is not None]
    if space.baseline is not None:
        ran.append(space.baseline)
    short = [one.point for one in found.excluded if one.by_memory]
    over = _beyond(points, signs * np.array(ran, dtype=float) / spans) if ran else np.ones(len(points))
    largest = np.array([[float(axis.memory > 0) for axis in space.axes]])
    under = (
        _beyond_each(signs * np.array(short, dtype=float) / spans, points)
        if short
        else 2 * _beyond_each(largest, points) + over
    )
    result = np.where(over <= 0, 1.0, np.maximum(under / np.maximum(under + over, 1e-12), LEAST_CHANCE))
    result[_ruled_out(space, found)] = 0.0
    return np.asarray(result)


def _beyond(points: Floats, others: Floats) -> Floats:
    """How far each point goes beyond that one of the others which it goes beyond least."""
    return np.asarray(np.maximum(points[:, None, :] - others[None, :, :], 0.0).sum(axis=2).min(axis=1))


def _beyond_each(others: Floats, points: Floats) -> Floats:
    """How far each point stays below that one of the others which it is closest to."""
    return np.asarray(np.maximum(others[None, :, :] - points[:, None, :], 0.0).sum(axis=2).min(axis=1))


def _ruled_out(space: Space, found: History) -> NDArray[np.bool_]:
    """Settings that failed, and those that must fail as others did."""
    levels = np.array(space.points)
    out = np.zeros(len(levels), dtype=bool)
    for one in found.excluded:
        same = levels == np.array(one.point)
        out |= same.all(axis=1)
        if one.by_memory and any(axis.memory for axis in space.axes):
            # Along a knob that takes no memory a failure says the same of every value; of unordered ones only its own.
            fails = [
                axis.memory * levels[:, knob] >= axis.memory * one.point[knob]
                if axis.memory
                else np.full(len(levels), axis.knob.is_ordered) | same[:, knob]
                for knob, axis in enumerate(space.axes)
            ]
            out |= np.all(fails, axis=0)
    return out
