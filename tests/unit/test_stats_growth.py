"""Whether memory grows: what leaks is found, what only moves is not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from assay.stats.growth import ALPHA, LEVELS_OFF, MIN_CHANGES, growth

LOOKS = 60
SIMULATIONS = 3000
Law = Callable[[np.random.Generator], np.ndarray]


def found(values: np.ndarray, tolerated: float = 0.0) -> bool:
    told = growth(list(map(float, range(len(values)))), list(map(float, values)))
    assert told is not None
    return told.low > tolerated and not told.levels_off


def noise(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(LOOKS)


def walk(rng: np.random.Generator) -> np.ndarray:
    return np.cumsum(rng.standard_normal(LOOKS))


def collected(rng: np.random.Generator) -> np.ndarray:
    """Grows and is collected, again and again, beginning anywhere."""
    return (np.arange(LOOKS) + rng.integers(0, 13)) % 13 + 0.1 * rng.standard_normal(LOOKS)


@pytest.mark.parametrize("law", [noise, walk, collected])
def test_what_moves_without_a_drift_is_called_growing_no_oftener_than_declared(law: Law) -> None:
    rng = np.random.default_rng(7)

    alarms = sum(found(law(rng)) for _ in range(SIMULATIONS))

    assert alarms / SIMULATIONS <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / SIMULATIONS)


def test_the_drift_of_a_walk_lies_in_its_interval_as_often_as_declared() -> None:
    rng = np.random.default_rng(8)
    at = list(map(float, range(LOOKS)))
    held = 0
    for _ in range(SIMULATIONS):
        told = growth(at, list(map(float, walk(rng) + 0.3 * np.arange(LOOKS))))
        assert told is not None
        held += told.low <= 0.3 <= told.high

    share = 1 - 2 * ALPHA
    assert abs(held / SIMULATIONS - share) <= 3 * math.sqrt(share * (1 - share) / SIMULATIONS)


def test_a_leak_of_every_request_is_found_in_half_a_minute() -> None:
    rng = np.random.default_rng(9)
    leaks = [np.cumsum(rng.poisson(10, 30)) + rng.standard_normal(30) for _ in range(200)]

    assert all(found(leak, tolerated=5.0) for leak in leaks)


@pytest.mark.parametrize("at", range(25, LOOKS, 5))
def test_one_jump_is_not_growth_however_large(at: int) -> None:
    values = np.where(np.arange(LOOKS) < at, 0.0, 1e9)

    assert not found(values)


@pytest.mark.parametrize("time_constant", [2, 5, 10, 20, 25])
def test_a_pool_that_fills_levels_off(time_constant: int) -> None:
    told = growth(list(map(float, range(LOOKS))), [1 - math.exp(-at / time_constant) for at in range(LOOKS)])

    assert told is not None
    assert told.levels_off
    assert math.exp(-(LOOKS * 2 / 3 / 2) / time_constant) < LEVELS_OFF  # what the constant says of this span


def test_what_grows_steadily_does_not_level_off() -> None:
    told = growth([0.0, 1.0, 2.5, 3.0, 4.0, 6.0, 7.0, 8.0, 9.5, 10.0, 11.0], [2.0 * at for at in range(11)])

    assert told is not None
    assert not told.levels_off


def test_a_few_samples_say_nothing() -> None:
    enough = next(n for n in range(40) if growth(list(map(float, range(n))), [0.0] * n) is not None)

    assert enough - math.ceil(enough / 3) == MIN_CHANGES + 1
