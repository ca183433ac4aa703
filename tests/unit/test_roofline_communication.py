"""How long collectives take: points, alpha and beta, limits of algorithms, and what is assumed without any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.records.device import Collective
from assay.roofline import communication
from tests.unit.shapes import box_of, curve

POINTS = [{"message_bytes": 1e4, "time_s": 20e-6}, {"message_bytes": 1e6, "time_s": 80e-6}]


def mid(where: object, collective: Collective, world: int, size: float, **more: object) -> float:
    return communication.collective_s(where, collective, world, size, **more)[0].mid  # type: ignore[arg-type]


def test_an_all_reduce_by_hand():
    # 8 ranks, 25.2 MB: 20 us + 2 * 7/8 * 25.2e6 / 40e9 = 1122.5 us.
    time, basis = communication.collective_s([curve()], "all_reduce", 8, 25.2e6)
    assert time.mid == pytest.approx(20e-6 + 1.75 * 25.2e6 / 40e9)
    assert time.low <= time.mid <= time.high
    assert basis == "elsewhere"


@pytest.mark.parametrize(
    ("collective", "factor"),
    [("all_reduce", 1.75), ("reduce_scatter", 0.875), ("all_to_all", 0.875), ("all_gather", 7), ("point_to_point", 1)],
)
def test_volume_factors_of_a_ring_of_eight(collective: Collective, factor: float):
    assert communication.volume_factor(collective, 8) == pytest.approx(factor)


def test_between_points_times_are_interpolated_in_the_logarithms():
    measured = curve(points=POINTS)
    assert communication.curve_s(measured, 1e5) == pytest.approx((20e-6 * 80e-6) ** 0.5)
    assert communication.curve_s(measured, 1e4) == pytest.approx(20e-6)


def test_outside_of_the_points_alpha_and_beta_count():
    measured = curve(points=POINTS)
    assert communication.curve_s(measured, 1e9) == pytest.approx(20e-6 + 1.75 * 1e9 / 40e9)
    assert communication.curve_s(measured, 1) == pytest.approx(20e-6, rel=1e-3)


@given(small=st.floats(1, 1e9), factor=st.floats(1, 100))
def test_a_larger_message_is_never_faster(small: float, factor: float):
    measured = curve(points=POINTS)
    assert communication.curve_s(measured, small) <= communication.curve_s(measured, small * factor) * (1 + 1e-12)


def test_an_algorithm_for_small_messages_does_not_act_on_large_ones():
    curves = [curve(), curve(algorithm="mscclpp", latency_s=5e-6, bus_bytes_per_s=80e9, max_message_bytes=2**20)]
    both = {"nccl", "mscclpp"}
    assert mid(curves, "all_reduce", 8, 1e5, algorithms=both) < mid(curves, "all_reduce", 8, 1e5)
    assert mid(curves, "all_reduce", 8, 25e6, algorithms=both) == mid(curves, "all_reduce", 8, 25e6)


def test_an_algorithm_that_is_not_switched_on_is_not_used():
    curves = [curve(), curve(algorithm="one-shot", latency_s=5e-6)]
    assert mid(curves, "all_reduce", 8, 1e3) == pytest.approx(20e-6, rel=0.01)


def test_another_number_of_ranks_borrows_the_nearest_curve_and_says_so():
    time, basis = communication.collective_s([curve()], "all_reduce", 4, 1e6)
    assert time.mid == pytest.approx(20e-6 + 1.5 * 1e6 / 40e9)
    assert basis == "assumed"


def test_without_a_curve_a_ring_over_the_link_is_assumed():
    time, basis = communication.collective_s(box_of(8), "all_reduce", 8, 1e9)
    assert basis == "assumed"
    assert time.low > communication.wire_floor_s(box_of(8), "all_reduce", 8, 1e9)


def test_one_rank_has_nobody_to_talk_to():
    assert mid(box_of(1), "all_reduce", 1, 1e6) == 0


def test_a_switch_that_adds_up_halves_the_floor_of_an_all_reduce():
    ring, switch = box_of(8), box_of(8, link="NVLink 4")
    assert communication.wire_floor_s(ring, "all_reduce", 8, 1e9) == pytest.approx(1.75e9 / 50e9)
    assert communication.wire_floor_s(switch, "all_reduce", 8, 1e9) == pytest.approx(1e9 / 50e9)
