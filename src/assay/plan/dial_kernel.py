"""How alike two settings are held to be before any of them has run, and draws of the scales of that.

The surface is the sum of what the knobs do one by one, in pairs, and all together, to be learned in which shares s: the
covariance of two settings is

    a^2 (s_1 mean_k M(d_k / l_k) + s_2 mean_{j<k} M(d_j / (r l_j)) M(d_k / (r l_k)) + s_3 prod_k M(d_k / (r l_k)))

with d_k the distance along knob k, M the Matern 3/2 correlation, a the amplitude and l_k the length of knob k. What two
knobs do together is held to be the same whatever the others are: with the product alone, a pair would have to be
learned anew at every value of a knob that does not matter. An interaction may turn faster than what the knobs do one by
one (a KV cache is outgrown from one step to the next, and where hangs on the other knobs): its reach r is drawn from a
fifth to the whole of the lengths, so that neighbours of a good setting stay uncertain until the runs say that it is
smooth.

Sources: kernels of one, two and all inputs, Duvenaud, Nickisch & Rasmussen, Additive Gaussian processes, 2011; Matern
3/2, Rasmussen & Williams 2006, section 4.2.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

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
REACH = (0.2, 1.0)
"""Of an interaction, in lengths of the knobs."""
SHARES = (1.0, 1.0, 1.0)
"""Of single knobs, pairs and all of them, parameters of a Dirichlet distribution: every division is as likely."""
NOISE, NOISE_SPREAD = 0.02, 0.7
"""Where the box's noise is not known; known noise is trusted to within a quarter."""
KNOWN_NOISE_SPREAD = 0.25
DRIFT = (0.01, 0.3)
"""Standard deviation of the drift from run to run, in units of the noise."""


@dataclass(frozen=True, kw_only=True)
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

    @property
    def is_guided(self) -> bool:
        """Whether the estimate tells settings apart."""
        return bool(np.ptp(self.estimate) > 0)

    @cached_property
    def levels(self) -> list[tuple[Floats, NDArray[np.intp]]]:
        """Of each knob, how far its values are apart, shape (num_values, num_values), and which one each place has."""
        found = []
        for knob, is_ordered in enumerate(self.is_ordered):
            values, which = np.unique(self.coordinates[:, knob], return_inverse=True)
            apart = np.abs(values[:, None] - values[None, :])
            found.append((apart if is_ordered else (apart > 0).astype(float), which.ravel()))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """The scales of one draw."""

    amplitude: float
    lengths: Floats
    shares: Floats
    """Of single knobs, pairs and all of them; their sum is 1."""
    reach: float
    noise: float
    drift: float

    def between(self, places: Places, rows: Sequence[int], columns: Sequence[int] | None = None) -> Floats:
        """Prior covariance of some places with others (None: with all), shape (num_rows, num_columns)."""
        others = np.arange(len(places.coordinates)) if columns is None else np.asarray(columns)
        surface = self._surface(places, np.asarray(rows), others)
        guided = WEIGHT_SD**2 * places.estimate[rows][:, None] * places.estimate[others][None, :]
        found = np.asarray(LEVEL_SD**2 + self.amplitude**2 * surface + guided)
        if not places.is_baseline_known:  # one of unknown setting tells nothing of the others, nor they of it
            found[(np.asarray(rows) == places.baseline)[:, None] != (others == places.baseline)[None, :]] = 0.0
        return found

    def _surface(self, places: Places, rows: NDArray[np.intp], others: NDArray[np.intp]) -> Floats:
        whole = np.ones((len(rows), len(others)))
        single, close, squares = (np.zeros_like(whole) for _ in range(3))
        for (apart, which), length in zip(places.levels, self.lengths, strict=True):
            at = np.ix_(which[rows], which[others])
            single += _matern(apart, float(length))[at]
            one = _matern(apart, self.reach * float(length))[at]
            close += one
            squares += one**2
            whole *= one
        count = len(self.lengths)
        pairs = (close**2 - squares) / (count * (count - 1)) if count > 1 else whole
        parts = (single / count, pairs, whole)
        return np.asarray(sum(share * part for share, part in zip(self.shares, parts, strict=True)))

    def variance(self, places: Places) -> Floats:
        """Prior variance of every place, shape (num_places,)."""
        return np.asarray(LEVEL_SD**2 + self.amplitude**2 + WEIGHT_SD**2 * places.estimate**2)


def draw_kernels(places: Places, noise: float | None) -> list[Kernel]:
    """The same draws every time: what is next depends on the record alone.

    Args:
        places: what may be run.
        noise: run-to-run standard deviation of the log objective; None: unknown.
    """
    rng = np.random.default_rng(SEED)
    num_knobs = places.coordinates.shape[1]
    typical = AMPLITUDE if places.is_guided else UNGUIDED * AMPLITUDE
    found = []
    for _ in range(DRAWS):
        z = rng.standard_normal(num_knobs + 2)
        drift, reach = _log_uniform(rng, DRIFT), _log_uniform(rng, REACH)
        found.append(
            Kernel(
                amplitude=typical * math.exp(AMPLITUDE_SPREAD * z[0]),
                noise=NOISE * math.exp(NOISE_SPREAD * z[1]) if noise is None else _near(noise, z[1]),
                lengths=LENGTH * np.exp(LENGTH_SPREAD * z[2:]),
                shares=rng.dirichlet(SHARES),
                reach=reach,
                drift=drift,
            )
        )
    return found


def _log_uniform(rng: np.random.Generator, ends: tuple[float, float]) -> float:
    return math.exp(rng.uniform(math.log(ends[0]), math.log(ends[1])))


def _near(noise: float, z: float) -> float:
    return max(noise, 1e-4) * math.exp(KNOWN_NOISE_SPREAD * z)


def _matern(apart: Floats, length: float) -> Floats:
    scaled = math.sqrt(3) * apart / length
    return np.asarray((1 + scaled) * np.exp(-scaled))
