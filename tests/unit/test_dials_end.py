"""When a search may end, read off surfaces that are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from assay.plan.dial_end import chance_of_better
from assay.plan.dial_kernel import Places
from assay.plan.dial_surface import Seen, Surface, believe

BY = 0.02


def line(num_places: int) -> Places:
    """One knob from 0 to 1, nothing estimated; the baseline is at its low end."""
    levels = np.append(np.linspace(0.0, 1.0, num_places), 0.0)
    return Places(
        coordinates=levels[:, None], is_ordered=[True], estimate=np.zeros(num_places + 1), is_baseline_known=True
    )


def seen(places: Places, values: dict[int, float], *, times: int = 1) -> Surface:
    """Every value as often as said."""
    runs = [(row, value) for _ in range(times) for row, value in values.items()]
    return believe(places, [Seen(row=row, time=n, value=value) for n, (row, value) in enumerate(runs)], 0.01)


def chance(surface: Surface, best: int, may_run: float = 1.0, by: float = BY) -> float:
    num_points = len(surface.places.coordinates) - 1
    return chance_of_better(surface, best, np.full(num_points, may_run), by)


def test_of_a_single_other_setting_the_chance_is_what_its_normal_distributions_say():
    surface = seen(line(2), {0: 1.0})
    means, spreads = surface.against(0)
    exact = float(surface.weights @ ndtr((means[:, 1] - BY) / spreads[:, 1]))
    assert chance(surface, 0) == pytest.approx(exact, abs=0.05)  # three standard deviations of 1024 draws
    assert chance(surface, 0, may_run=0.5) == pytest.approx(exact / 2, abs=0.05)
    assert chance(surface, 0, may_run=0.0) == 0.0


def test_settings_that_rise_and_fall_together_count_about_once():
    few, many = seen(line(3), {0: 1.0, 2: 1.0}), seen(line(65), {0: 1.0, 64: 1.0})
    assert chance(few, 0) < chance(many, 0) < 2.5 * chance(few, 0)


def test_the_chance_falls_as_runs_settle_what_the_others_are():
    values = {0: 0.7, 1: 0.85, 2: 1.0, 3: 0.9, 4: 0.75}
    after = [chance(seen(line(5), dict(list(values.items())[:count])), min(count - 1, 2)) for count in (2, 3, 5)]
    assert after == sorted(after, reverse=True)
    assert chance(seen(line(5), values, times=4), 2) < 0.01
    assert chance(seen(line(5), values), 0) == 1.0


def test_two_equal_settings_are_told_apart_no_finer_than_what_matters():
    """None of the two is better by more than that: the search need not go on until it knows which."""
    surface = seen(line(2), {0: 1.0, 1: 1.0}, times=3)
    assert chance(surface, 0) < 0.05
    assert chance(surface, 0, by=0.0) == pytest.approx(0.5, abs=0.1)
