"""How alike settings are held to be before any run."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from assay.plan.dial_kernel import Places, draw_kernels
from assay.plan.dial_surface import Seen, believe


def cube(*, is_baseline_known: bool = True) -> Places:
    """Three knobs of two values each, the last one unordered; the baseline has the lowest of all."""
    points = [*product((0.0, 1.0), repeat=3), (0.0, 0.0, 0.0)]
    return Places(
        coordinates=np.array(points),
        is_ordered=[True, True, False],
        estimate=np.zeros(len(points)),
        is_baseline_known=is_baseline_known,
    )


def test_every_draw_is_a_covariance_with_the_variance_it_tells():
    places = cube()
    every = range(len(places.coordinates))
    for kernel in draw_kernels(places, None):
        found = kernel.between(places, every)
        assert np.allclose(found, found.T)
        assert np.allclose(np.diag(found), kernel.variance(places))
        assert np.linalg.eigvalsh(found).min() > -1e-9
        assert kernel.shares.sum() == pytest.approx(1.0)


def test_some_columns_are_those_of_the_whole():
    places = cube(is_baseline_known=False)
    for kernel in draw_kernels(places, 0.01)[:4]:
        assert np.allclose(kernel.between(places, [1, 8], [0, 3, 8]), kernel.between(places, [1, 8])[:, [0, 3, 8]])


def test_a_baseline_of_unknown_setting_says_nothing_of_the_settings():
    places = cube(is_baseline_known=False)
    for kernel in draw_kernels(places, None)[:4]:
        assert not kernel.between(places, [places.baseline])[0, :-1].any()
        assert not kernel.between(places, [0, 5])[:, places.baseline].any()
        assert kernel.between(places, [places.baseline])[0, -1] > 0


def test_what_two_knobs_do_together_is_believed_of_the_other_values_of_a_third():
    """Only both at once gain; seen with one value of the third knob, asked of the other."""
    places = cube()
    rows = {tuple(point): row for row, point in enumerate(places.coordinates[:-1].tolist())}
    runs = [Seen(row=rows[a, b, 0.0], time=n, value=a * b) for n, (a, b) in enumerate(product((0.0, 1.0), repeat=2))]
    mean = believe(places, runs, 0.01).mean
    together = mean[rows[1.0, 1.0, 1.0]] - mean[rows[1.0, 0.0, 1.0]]
    alone = mean[rows[1.0, 0.0, 1.0]] - mean[rows[0.0, 0.0, 1.0]]
    assert together > 0.3
    assert together > 2 * alone
