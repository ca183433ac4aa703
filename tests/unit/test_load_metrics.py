"""Metrics against values computed by hand, gates against the samples that must trip them."""

from __future__ import annotations

import dataclasses
from array import array

import msgspec
import numpy as np
import pytest

from assay.load.columns import Columns, columns
from assay.load.gates import Rules, load_gates, window_gates
from assay.load.lag import Lag, worst_lag_s
from assay.load.metrics import (
    ClientCost,
    Windows,
    e2e_s,
    itl_per_token_s,
    itl_s,
    measure,
    quantiles,
    tokens_by_window,
    tpot_s,
    ttft_from_intended_s,
    ttft_s,
)
from assay.load.spool import SpooledRequest
from assay.records.run import Gate

MS = 1_000_000
WINDOWS = Windows(start_ns=1_000 * MS, length_ns=1_000 * MS, count=2)
CLIENT = ClientCost(
    cpu_share=0.02, busiest_share=0.02, max_lag_s=0.004, kernel_stamps=False, warmup_s=0.9, load_began_ns=100 * MS
)
STEADY = Gate(name="steady", passed=True, evidence="10, 10")


def sample(sent: int, chunks: list[int], ended: int, index: int = 0, **changes) -> SpooledRequest:
    """Times in milliseconds."""
    whole = SpooledRequest(
        index=index,
        turn=0,
        stream=0,
        intended_ns=(sent - 5) * MS,
        sent_ns=sent * MS,
        ended_ns=ended * MS,
        chunks=array("q", [at * MS for at in chunks]).tobytes(),
        chunk_tokens=array("i", [0] * len(chunks)).tobytes(),
        merged=0,
        input_tokens=10,
        output_tokens=len(chunks),
        cached_tokens=0,
        wanted_input_tokens=10,
        wanted_output_tokens=len(chunks),
        shared_tokens=0,
        status=200,
        finish_reason="length",
        first_text=" a",
        error=None,
        digest=b"",
        opening=index.to_bytes(8, "little"),
    )
    return replace(whole, **changes)


def replace(request: SpooledRequest, **changes) -> SpooledRequest:
    return msgspec.structs.replace(request, **changes)


def in_flight(sent: int, chunks: list[int], ended: int, **changes) -> SpooledRequest:
    cut = {"input_tokens": None, "output_tokens": None, "cached_tokens": None, "error": "cut-by-drain"}
    return sample(sent, chunks, ended, **{**cut, **changes})


def table(*requests: SpooledRequest) -> Columns:
    return columns(requests)


def test_latencies_of_one_request_are_what_their_definitions_say():
    one = table(sample(1_000, [1_100, 1_120, 1_150], 1_160))
    assert ttft_s(one) == pytest.approx(0.100)
    assert ttft_from_intended_s(one) == pytest.approx(0.105)
    assert e2e_s(one) == pytest.approx(0.160)
    assert tpot_s(one) == pytest.approx(0.030)
    assert itl_s(one, WINDOWS) == pytest.approx([0.020, 0.030])


def test_what_is_undefined_is_none_and_not_zero():
    assert np.isnan(ttft_s(table(sample(1_000, [], 1_160))))
    assert np.isnan(tpot_s(table(sample(1_000, [1_100], 1_160))))
    assert np.isnan(tpot_s(table(sample(1_000, [1_100, 1_200], 1_260, output_tokens=None))))
    assert quantiles([]).p50_s is None
    assert quantiles([None]).num_samples == 0


def test_a_request_packed_two_tokens_a_chunk_has_its_time_per_token_by_usage():
    assert tpot_s(table(sample(1_000, [1_100, 1_200], 1_300, output_tokens=5))) == pytest.approx(0.050)


def test_quantiles_interpolate_between_order_statistics():
    known = quantiles([4.0, 1.0, None, 3.0, 2.0])
    assert (known.num_samples, known.mean_s, known.p50_s) == (4, 2.5, 2.5)
    assert known.p90_s == pytest.approx(3.7)
    assert known.p95_s == pytest.approx(3.85)


def test_a_p99_needs_a_thousand_samples():
    assert quantiles(float(n) for n in range(999)).p99_s is None
    assert quantiles(float(n) for n in range(1_000)).p99_s == pytest.approx(989.01)


def test_a_gap_counts_where_its_later_chunk_arrived():
    borders = sample(500, [900, 1_050, 2_990, 3_000], 3_010)
    assert itl_s(table(borders), WINDOWS) == pytest.approx([0.150, 1.940])


def test_tokens_fall_into_the_window_in_which_they_arrived_half_open():
    one = sample(900, [999, 1_000, 1_999, 2_000, 2_999, 3_000], 3_001)
    assert tokens_by_window(table(one), WINDOWS) == pytest.approx([2, 2])


def test_chunks_of_a_request_weigh_by_its_usage_and_those_in_flight_by_the_runs_mean():
    packed = sample(1_000, [1_100, 1_200], 1_300, output_tokens=6)
    plain = sample(1_000, [1_100, 1_200], 1_300, output_tokens=2)
    cut = in_flight(1_900, [1_950, 2_100], 2_200)
    assert tokens_by_window(table(packed, plain, cut), WINDOWS) == pytest.approx([6 + 2 + 2, 2])


def test_measures_of_a_small_run_match_a_calculation_by_hand():
    samples = [
        sample(800, [900, 1_000, 1_100], 1_100),
        sample(1_100, [1_300, 1_400], 1_500, index=1),
        in_flight(1_500, [1_800, 2_200], 3_100, index=2),
    ]
    found = measure(table(*samples), WINDOWS, CLIENT)
    assert [window.output_tokens for window in found.windows] == [5, 1]
    assert [window.start_s for window in found.windows] == pytest.approx([0.9, 1.9])
    assert found.output_tokens_per_s == pytest.approx(3.0)
    assert found.total_tokens_per_s == pytest.approx((6 + 20) / 2)
    assert (found.requests_completed, found.requests_per_s) == (2, 1.0)
    assert found.ttft.mean_s == pytest.approx((0.100 + 0.200) / 2)
    assert found.tpot.mean_s == pytest.approx((0.100 + 0.200) / 2)
    assert found.e2e.mean_s == pytest.approx((0.300 + 0.400) / 2)
    assert found.itl.num_samples == 4
    assert (found.mean_input_tokens, found.mean_output_tokens) == (10, 2.5)
    assert (found.client_cpu_share, found.client_max_lag_s, found.warmup_s) == (0.02, 0.004, 0.9)


def test_failed_requests_and_those_that_end_outside_are_in_no_latency():
    samples = [
        sample(1_100, [1_200], 1_300, error="short: 1 of 2"),
        sample(100, [200, 300], 999, index=1),
        sample(2_900, [2_950], 3_000, index=2),
    ]
    found = measure(table(*samples), WINDOWS, CLIENT)
    assert (found.requests_completed, found.ttft.num_samples, found.mean_output_tokens) == (0, 0, None)


def test_a_gap_before_a_chunk_of_two_tokens_is_half_as_long_for_each_of_them():
    told = sample(1_000, [1_100, 1_120, 1_180], 1_180, output_tokens=4)
    told = replace(told, chunk_tokens=array("i", [1, 1, 2]).tobytes())
    gaps, weights = itl_per_token_s(table(told), WINDOWS)
    assert gaps == pytest.approx([0.020, 0.030])
    assert list(weights) == [1, 2]


def test_where_the_stream_does_not_tell_a_chunk_holds_its_requests_tokens_per_chunk():
    gaps, weights = itl_per_token_s(table(sample(1_000, [1_100, 1_200], 1_200, output_tokens=4)), WINDOWS)
    assert gaps == pytest.approx([0.050])
    assert list(weights) == [2]


def test_the_worst_lag_of_the_windows_includes_a_wait_that_overlaps_them():
    lags = [Lag(500 * MS, 0.9), Lag(1_500 * MS, 0.010), Lag(3_200 * MS, 0.3), Lag(9_000 * MS, 0.7)]
    assert worst_lag_s(lags, WINDOWS.start_ns, WINDOWS.end_ns) == pytest.approx(0.3)
    assert worst_lag_s([], WINDOWS.start_ns, WINDOWS.end_ns) == pytest.approx(2.0)


def failed(requests: list[SpooledRequest], rules: Rules = Rules(steady=STEADY)) -> set[str]:  # noqa: B008 - frozen
    return {gate.name for gate in load_gates(table(*requests), WINDOWS, rules) if not gate.passed}


GOOD = sample(1_000, [1_100, 1_200], 1_300)
OTHER = sample(1_000, [1_100, 1_200], 1_300, index=1)


def test_good_samples_pass_every_gate():
    assert failed([GOOD, OTHER]) == set()


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"error": "reset: gone"}, "no-errors"),
        ({"output_tokens": 3}, "tokens-as-asked"),
        ({"input_tokens": 9}, "tokens-as-asked"),
        ({"output_tokens": None}, "tokens-counted"),
        ({"cached_tokens": 1}, "prefix-cache-as-declared"),
    ],
)
def test_one_bad_sample_trips_its_gate(changes: dict[str, object], name: str):
    assert failed([GOOD, replace(OTHER, **changes)]) == {name}


def test_what_happens_in_the_drain_trips_nothing():
    assert failed([GOOD, sample(3_000, [3_100], 3_200, index=1, error="reset: gone")]) == set()


def test_prompts_that_begin_alike_trip_their_gate():
    assert failed([GOOD, replace(OTHER, opening=GOOD.opening)]) == {"prompts-distinct"}


def test_an_answer_before_its_question_trips_its_gate():
    assert failed([GOOD, replace(OTHER, sent_ns=1_150 * MS)]) == {"stamps-in-order"}


def test_a_declared_prefix_may_come_from_the_cache_and_no_more():
    assert failed([replace(GOOD, shared_tokens=8, cached_tokens=8)]) == set()
    assert failed([replace(GOOD, shared_tokens=8, cached_tokens=9)]) == {"prefix-cache-as-declared"}


def test_failures_up_to_the_share_that_was_allowed_are_shown_and_do_not_void_the_test():
    requests = [
        replace(OTHER, index=n, opening=bytes([n]), error="http-503: full" if n == 0 else None) for n in range(10)
    ]
    assert failed(requests, Rules(steady=STEADY, max_error_share=0.1)) == set()
    assert failed(requests, Rules(steady=STEADY, max_error_share=0.09)) == {"no-errors"}


def test_without_forced_lengths_a_short_answer_is_no_fault_and_a_long_one_is():
    free = Rules(steady=STEADY, force_length=False)
    assert failed([replace(GOOD, wanted_output_tokens=5)], free) == set()
    assert failed([replace(GOOD, wanted_output_tokens=1)], free) == {"tokens-as-asked"}


def test_a_server_that_tells_nothing_of_its_cache_is_not_held_to_have_a_warm_one():
    assert failed([replace(GOOD, cached_tokens=None)]) == set()


def window_failures(requests: list[SpooledRequest], concurrency: int = 1, client: ClientCost = CLIENT) -> set[str]:
    return {gate.name for gate in window_gates(table(*requests), WINDOWS, concurrency, client) if not gate.passed}


BUSY = sample(900, [1_100, 2_900], 2_950)


def test_a_stream_that_is_busy_all_the_time_holds_the_concurrency():
    assert window_failures([BUSY]) == set()


def test_a_stream_idle_for_a_tenth_of_the_windows_does_not_hold_the_concurrency():
    assert window_failures([replace(BUSY, sent_ns=1_200 * MS)]) == {"concurrency-held"}
    assert window_failures([BUSY, replace(BUSY, index=1)], concurrency=2) == {"concurrency-held"}


@pytest.mark.parametrize("changes", [{"max_lag_s": 0.050}, {"busiest_share": 0.9}])
def test_a_late_or_busy_client_is_saturated(changes: dict[str, float]):
    assert window_failures([BUSY], client=dataclasses.replace(CLIENT, **changes)) == {"client-not-saturated"}


def test_a_late_loop_ages_no_stamp_of_the_kernel_unless_it_is_very_late():
    late = dataclasses.replace(CLIENT, max_lag_s=0.1)
    assert window_failures([BUSY], client=dataclasses.replace(late, kernel_stamps=True)) == set()
    very_late = dataclasses.replace(late, max_lag_s=0.25, kernel_stamps=True)
    assert window_failures([BUSY], client=very_late) == {"client-not-saturated"}


def test_a_run_in_which_nothing_was_completed_has_too_few_requests():
    assert window_failures([in_flight(900, [1_100], 3_500)]) == {"enough-requests"}


def test_every_failed_gate_names_a_remedy():
    bad = replace(GOOD, error="reset: gone")
    gates = load_gates(table(bad), WINDOWS, Rules(steady=STEADY)) + window_gates(table(), WINDOWS, 8, CLIENT)
    assert all(gate.remedy for gate in gates if not gate.passed)
    assert any(not gate.passed for gate in gates)
