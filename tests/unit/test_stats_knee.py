"""The knee: where theory puts it, and nowhere on a curve that has none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assay.stats.knee import knee

LOADS = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def ideal_servers(load: int, servers: int) -> tuple[float, float]:
    """A closed system of identical servers without any waiting before all of them are busy: (throughput, latency)."""
    return min(load, servers) / 0.5, 0.5 * max(1.0, load / servers)


def batching_engine(load: int, fixed_s: float, each_s: float) -> tuple[float, float]:
    """A decoder whose step takes `fixed + each x batch` seconds: (tokens/s, seconds per token)."""
    step_s = fixed_s + each_s * load
    return load / step_s, step_s


def mm_c(rate: float, servers: int) -> tuple[float, float]:
    """M/M/c with unit service time (Erlang C): (throughput, mean time in the system)."""
    offered = rate
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    waiting = last / (sum(terms) + last)
    return rate, 1 + waiting / (servers - rate)


def columns(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


@pytest.mark.parametrize("servers", [2, 8, 64, 128])
def test_ideal_servers_have_their_knee_where_all_of_them_are_just_busy(servers: int) -> None:
    found = knee(*columns([ideal_servers(load, servers) for load in LOADS]))

    assert found.index is not None
    assert LOADS[found.index] == servers


@pytest.mark.parametrize(("fixed_s", "each_s", "load"), [(0.008, 0.001, 8), (0.016, 0.0005, 32), (0.02, 0.0003125, 64)])
def test_a_batching_engine_has_its_knee_where_a_step_takes_twice_as_long_as_an_empty_one(
    fixed_s: float, each_s: float, load: int
) -> None:
    found = knee(*columns([batching_engine(load, fixed_s, each_s) for load in LOADS]))

    assert found.index == LOADS.index(load)
    assert "+33%, latency by +50%" in found.reason


def test_mm1_has_its_knee_at_half_the_capacity() -> None:
    rates = [i / 20 for i in range(1, 20)]

    found = knee(*columns([mm_c(rate, 1) for rate in rates]))

    assert found.index is not None
    assert rates[found.index] == pytest.approx(0.5)


def test_more_servers_move_the_knee_closer_to_their_capacity() -> None:
    shares = [i / 40 for i in range(4, 40)]

    places = [knee(*columns([mm_c(share * servers, servers) for share in shares])).index for servers in (1, 4, 16, 64)]

    assert None not in places
    assert places == sorted(places, key=lambda place: place or 0)
    assert shares[places[-1] or 0] > 0.8


def test_units_do_not_move_it_and_neither_do_points_far_beyond_it() -> None:
    throughputs, latencies = columns([ideal_servers(load, 16) for load in LOADS])

    shorter = knee(throughputs[:6], latencies[:6])
    scaled = knee([x / 60 for x in throughputs], [1000 * y for y in latencies])

    assert shorter.index == scaled.index == LOADS.index(16)


@pytest.mark.parametrize(
    ("latency", "said"),
    [
        (lambda load: 0.5, "go higher"),
        (lambda load: 0.5 * load, "go higher"),
        (lambda load: 0.5 + 0.01 * load, "go higher"),
        (lambda load: 0.5 * load**2, "go lower"),
    ],
)
def test_a_straight_line_or_one_that_only_bends_outside_the_sweep_has_none(latency, said: str) -> None:
    loads = list(range(1, 11))

    found = knee([10.0 * load for load in loads], [latency(load) for load in loads])

    assert found.index is None
    assert said in found.reason


def test_a_saturated_server_has_none_within_the_sweep() -> None:
    found = knee([100.0, 101.0, 99.0], [1.0, 2.0, 4.0])

    assert found.index is None
    assert "go lower" in found.reason


def test_points_that_were_not_measured_are_passed_over_and_do_not_shift_the_index() -> None:
    found = knee([2.0, None, 8.0, 8.0, 8.0], [1.0, 1.0, 1.0, None, 4.0])

    assert found.index == 2
    assert "+0%, latency by +300%" in found.reason


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_points_have_no_knee(count: int) -> None:
    assert knee([1.0, 1.0][:count], [1.0, 5.0][:count]).index is None


def test_points_without_any_throughput_have_none() -> None:
    assert knee([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]).index is None


def test_scatter_of_single_runs_moves_it_by_at_most_one_point_and_invents_none_on_a_line() -> None:
    """A run scatters by 2% here: on a line, power would have to lose 10%, five of these deviations, by chance."""
    rng = np.random.default_rng(3)
    throughputs, latencies = columns([batching_engine(load, 0.008, 0.001) for load in LOADS])
    line = [float(load) for load in range(1, 10)]
    for _ in range(200):
        scatter = np.exp(0.02 * rng.standard_normal((2, len(LOADS))))
        found = knee(list(scatter[0] * throughputs), list(scatter[1] * latencies))
        assert found.index is not None
        assert abs(found.index - LOADS.index(8)) <= 1
        assert knee(list(scatter[0] * line), list(np.full(9, 0.5))).index is None
