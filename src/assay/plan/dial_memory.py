"""Which settings have the memory they need: what failures rule out, and the chance of the others.

A knob declares what a larger value does to the memory taken; how much it takes nobody has to know. A setting that ran
out of memory rules out every setting that takes no less on any knob; one that ran clears every setting that takes no
more. Between them lies a boundary, of which more is learned from where it was met: the memory taken is held to be a
weighted sum of the knobs, w . z with w >= 0 and sum 1 and each knob's range being 1, and a setting fails where that
exceeds a limit. Every division w is held to be as likely as any other, and every limit up to twice what the largest
setting takes: then the largest setting is as likely to run as not. Runs and failures leave of each w the limits between
the most that ran and the least that failed:

    P(w | runs) ~ length of that interval,    P(x runs | w) = the part of it that lies beyond w . x

A boundary that is no plane leaves no limit for some w, or for all: an empty interval counts as one of width `BEND`,
with a weight that falls by e with every further `BEND` by which its ends are crossed.

Source: the product of such a chance and the expected improvement, Gelbart, Snoek & Adams, Bayesian optimization with
unknown constraints, 2014.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from assay.plan.dial_runs import History
from assay.plan.dial_space import Space

Floats = NDArray[np.float64]
LEAST_CHANCE = 0.02
"""Of a setting that nothing rules out: the model of the boundary may be wrong, so none is given up for good."""
DIVISIONS = 512
"""Drawn; each knob's share is then known to within a hundredth or so."""
SEED = 1952
LARGEST_LIMIT = 2.0
"""The largest setting takes 1."""
BEND = 0.02
"""Half of what a step of one knob in three takes, where that knob has about ten values."""


def chances(space: Space, found: History) -> Floats:
    """The chance of each setting to run at all, shape (num_points,); 0: it failed, or must fail."""
    result = np.ones(len(space.points))
    if any(axis.memory for axis in space.axes):
        taken = _taken(space, space.points)
        ran = _taken(space, _that_ran(space, found))
        short = _taken(space, [one.point for one in found.excluded if one.by_memory])
        is_clear = np.any(np.all(taken[:, None, :] <= ran[None, :, :], axis=2), axis=1)
        result = np.where(is_clear, 1.0, np.maximum(_below_the_limit(taken, ran, short), LEAST_CHANCE))
    result[_ruled_out(space, found)] = 0.0
    return np.asarray(result)


def _taken(space: Space, points: object) -> Floats:
    """What the knobs say of the memory, each from 0 to 1 and more taking more, shape (num_points, num_knobs)."""
    levels = np.asarray(points, dtype=float).reshape(-1, len(space.axes))
    spans = np.array([max(len(axis.values) - 1, 1) for axis in space.axes], dtype=float)
    signs = np.array([axis.memory for axis in space.axes])
    return np.asarray(np.where(signs > 0, levels / spans, 1 - levels / spans)[:, signs != 0])


def _that_ran(space: Space, found: History) -> list[tuple[float, ...]]:
    ran = [tuple(map(float, trial.point)) for trial in found.valid if trial.point is not None]
    return ran if space.baseline is None else [*ran, space.baseline]


def _below_the_limit(taken: Floats, ran: Floats, short: Floats) -> Floats:
    divisions = np.random.default_rng(SEED).dirichlet(np.ones(taken.shape[1]), DIVISIONS)
    low = (divisions @ ran.T).max(axis=1, initial=0.0)
    high = (divisions @ short.T).min(axis=1, initial=LARGEST_LIMIT)
    weights = BEND * np.logaddexp(0.0, (high - low) / BEND)
    middle, half = (low + high) / 2, np.maximum(high - low, BEND) / 2
    part = (middle + half - (divisions @ taken.T).T) / (2 * half)
    return np.asarray(np.clip(part, 0.0, 1.0) @ weights / weights.sum())


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
