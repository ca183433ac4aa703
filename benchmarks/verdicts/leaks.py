"""How often the test of a soak (`assay.stats.growth`) says that a server's memory grows, by what it really does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from assay.stats.growth import growth

Floats = NDArray[np.float64]
Law = Callable[[np.random.Generator, int], Floats]
JUMP = 64.0
"""MiB: an arena of glibc."""


def level(rng: np.random.Generator, count: int) -> Floats:
    """Scatters by 1 MiB around a level."""
    return rng.standard_normal(count)


def walk(rng: np.random.Generator, count: int) -> Floats:
    """Takes and gives back 1 MiB at random, and keeps what it has."""
    return np.cumsum(rng.standard_normal(count))


def jumps(rng: np.random.Generator, count: int) -> Floats:
    """Up to three jumps, anywhere."""
    return np.asarray(
        JUMP * (rng.integers(0, count, rng.integers(0, 4))[:, None] <= np.arange(count)).sum(axis=0), float
    )


def filling(rng: np.random.Generator, count: int) -> Floats:
    """A pool of 200 MiB that fills, with a time constant from a twentieth to a third of the soak."""
    constant = count * rng.uniform(1 / 20, 1 / 3)
    return 200 * (1 - np.exp(-np.arange(count) / constant)) + 0.2 * rng.standard_normal(count)


def collected(rng: np.random.Generator, count: int) -> Floats:
    """Garbage that is collected about five times within the soak."""
    period = count / rng.uniform(4, 6)
    return 20 * ((np.arange(count) / period + rng.random()) % 1) + 0.2 * rng.standard_normal(count)


def leaking(mib: float) -> Law:
    """Loses so much from one sample to the next, on top of a walk."""

    def law(rng: np.random.Generator, count: int) -> Floats:
        return walk(rng, count) + mib * np.arange(count)

    return law


LAWS: dict[str, Law] = {
    "scatters around a level": level,
    "walks (1 MiB a sample)": walk,
    "makes up to three jumps of 64 MiB": jumps,
    "fills a pool of 200 MiB": filling,
    "is collected, again and again": collected,
    "walks, and leaks 0.5 MiB a sample": leaking(0.5),
    "walks, and leaks 1 MiB a sample": leaking(1.0),
    "walks, and leaks 2 MiB a sample": leaking(2.0),
}
"""What memory does, in words."""


def alarms(law: Law, count: int, servers: int, tolerated: float = 0.0) -> int:
    """Of so many servers, how many are said to grow by more than is tolerated."""
    found = 0
    for seed in range(servers):
        values = law(np.random.default_rng([seed, count]), count)
        told = growth([float(at) for at in range(count)], [float(value) for value in values])
        found += told is not None and told.low > tolerated and not told.levels_off
    return found
