"""A measured time, split by cause: the parts sum up to it, and what nobody knows is called so."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.formats.server_metrics import server_times
from assay.records.attribution import Attribution, MeasuredRun, ServerTimes, TraceFacts
from assay.records.estimate import Bound, Layout, OperatingPoint, OpTime, Range, Routing, StepEstimate
from assay.roofline import attribution


def operation(name: str, floor_s: float, time_s: float, *, bound: Bound = "memory", wire: bool = False) -> OpTime:
    return OpTime(
        name=name, part="communication" if wire else "dense_ffn", calls=10, flops=2e9, read_bytes=1e9,
        collective="all_reduce" if wire else None, floor_s=floor_s,
        time_s=Range(low=floor_s, mid=time_s, high=2 * time_s), bound=bound, basis=["measured"],
    )  # fmt: skip


def step(
    *ops: OpTime, overhead_s: float = 0.5e-3, sequences: int = 4, new_tokens: int = 1, context: int = 100
) -> StepEstimate:
    total_s = overhead_s + sum(op.time_s.mid for op in ops)
    time_s = Range(low=total_s / 2, mid=total_s, high=2 * total_s)
    point = OperatingPoint(
        phase="decode" if new_tokens == 1 else "prefill", sequences=sequences, context_tokens=context,
        new_tokens=new_tokens,
    )  # fmt: skip
    floor_s = sum(op.floor_s for op in ops)
    return StepEstimate(
        point=point, layout=Layout(), routing=Routing(), ops=list(ops), floor_s=floor_s, time_s=time_s,
        overhead_s=Range(low=overhead_s / 2, mid=overhead_s, high=2 * overhead_s),
        tokens_per_s=Range(low=1, mid=point.tokens / total_s, high=1e9), bound="memory",
        ceiling_tokens_per_s=point.tokens / floor_s,
    )  # fmt: skip


DECODE = step(
    operation("ffn", 5e-3, 7e-3),
    operation("all_reduce", 1e-3, 1.5e-3, bound="communication", wire=True),
    operation("norms", 0.0, 0.5e-3, bound="launch"),
)
PROMPT = step(operation("ffn", 20e-3, 25e-3, bound="compute"), sequences=1, new_tokens=200, context=0)


def run(**changes: object) -> MeasuredRun:
    return MeasuredRun.model_validate({"source": "a run", "sequences": 4.0, **changes})


def trace(**changes: object) -> TraceFacts:
    fields: dict[str, object] = {
        "tool": "nsys", "file": "t", "devices": 1, "span_s": 1.0, "kernels_s": 0.6, "communication_s": 0.2,
        "overlapped_s": 0.05, "launch_gaps_s": 0.05, "idle_s": 0.15, "gap_limit_s": 2e-5, "num_kernels": 9, "top": [],
    }  # fmt: skip
    return TraceFacts.model_validate({**fields, **changes})


def seconds(found: Attribution | None) -> dict[str, float]:
    assert found is not None
    assert sum(part.seconds for part in found.parts) == pytest.approx(found.measured_s)
    return {part.cause: part.seconds for part in found.parts}


def test_without_a_trace_the_roofline_expects_and_the_rest_is_unexplained() -> None:
    found = attribution.decode(run(tpot_s=15e-3), DECODE, None, None)

    assert seconds(found) == pytest.approx(
        {
            "floor": 6e-3, "kernels": 2e-3, "communication": 0.5e-3, "launch gaps": 0.5e-3, "scheduling, CPU": 0.5e-3,
            "unexplained": 5.5e-3,
        }
    )  # fmt: skip
    assert found is not None
    assert {part.basis for part in found.parts} == {"predicted", "rest"}


def test_expectations_never_claim_more_than_there_is() -> None:
    found = attribution.decode(run(tpot_s=7e-3), DECODE, None, None)

    split = seconds(found)
    assert split["floor"] == pytest.approx(6e-3)
    assert split["kernels"] == pytest.approx(1e-3 * 2 / 3.5)
    assert "unexplained" not in split
    assert found is not None
    assert "scaled to fit" in found.notes[0]


def test_a_measurement_below_the_floor_is_said_to_be_impossible() -> None:
    found = attribution.decode(run(tpot_s=3e-3), DECODE, None, None)

    assert seconds(found) == pytest.approx({"floor": 3e-3})
    assert found is not None
    assert "below the floor" in found.notes[0]


def test_a_trace_goes_before_expectations() -> None:
    found = attribution.decode(run(tpot_s=20e-3), DECODE, PROMPT, trace())

    assert seconds(found) == pytest.approx(
        {
            "floor": 6e-3,
            "kernels": 12e-3 - 5e-3,
            "communication": 4e-3 - 1e-3,
            "launch gaps": 1e-3,
            "scheduling, CPU": 3e-3,
        }
    )
    assert found is not None
    assert {part.basis for part in found.parts} == {"predicted", "measured"}


def test_a_trace_whose_kernels_are_faster_than_their_floor_was_taken_elsewhere() -> None:
    found = attribution.decode(run(tpot_s=20e-3), DECODE, None, trace(kernels_s=0.1, idle_s=0.65))

    seconds(found)
    assert found is not None
    assert "another load" in found.notes[0]


def test_prompts_between_the_steps_are_counted_by_how_often_an_answer_ends() -> None:
    found = attribution.decode(run(tpot_s=30e-3, output_tokens=10.0), DECODE, PROMPT, None)

    assert seconds(found)["prefill in between"] == pytest.approx(3 / 10 * PROMPT.time_s.mid)


def test_one_sequence_has_no_prompts_in_between() -> None:
    found = attribution.decode(run(tpot_s=30e-3, output_tokens=10.0, sequences=1.0), DECODE, PROMPT, None)

    assert "prefill in between" not in seconds(found)


def test_the_queue_is_what_the_server_says_else_what_little_s_law_says() -> None:
    told = ServerTimes(engine="vllm", watched_s=10, queue_s=0.4)
    waiting = run(ttft_s=1.0, in_flight=8.0, requests_per_s=5.0)

    assert seconds(attribution.first_token(waiting, PROMPT, None, told))["queueing"] == pytest.approx(0.4)
    assert seconds(attribution.first_token(waiting, PROMPT, None, None))["queueing"] == pytest.approx(4 / 5)


def test_the_client_s_delay_and_the_server_s_prefill_are_parts_of_the_first_token() -> None:
    told = ServerTimes(engine="vllm", watched_s=10, queue_s=0.1, prefill_s=0.08)
    found = attribution.first_token(run(ttft_s=0.5, client_lag_s=0.02), PROMPT, DECODE, told)

    assert seconds(found) == pytest.approx(
        {
            "floor": 0.02, "queueing": 0.1, "client": 0.02, "kernels": 0.06,
            "scheduling, CPU": DECODE.time_s.mid / 2, "unexplained": 0.3 - DECODE.time_s.mid / 2,
        }
    )  # fmt: skip


def test_without_a_model_there_is_no_floor_and_nothing_is_made_up() -> None:
    found = attribution.decode(run(tpot_s=10e-3), None, None, None)

    assert seconds(found) == pytest.approx({"unexplained": 10e-3})
    assert found is not None
    assert found.floor_s is None


def test_what_was_not_measured_is_not_split() -> None:
    assert attribution.decode(run(), DECODE, PROMPT, trace()) is None
    assert attribution.first_token(run(), PROMPT, DECODE, None) is None


def test_utilization_is_bytes_and_operations_over_the_peaks() -> None:
    found = attribution.efficiency(DECODE, 400.0, peak_bytes_per_s=1e12, peak_flop_per_s=4e12)

    assert found is not None
    assert found.mbu == pytest.approx(2e9 / 0.01 / 1e12)
    assert found.mfu == pytest.approx(4e9 / 0.01 / 4e12)
    assert found.ceiling_share == pytest.approx(400 / (4 / 6e-3))
    assert attribution.efficiency(DECODE, 0.0, peak_bytes_per_s=1e12, peak_flop_per_s=1e12) is None


TIME = st.floats(1e-6, 10.0)


@settings(max_examples=200, deadline=None)
@given(
    measured=TIME,
    floor=TIME,
    excess=TIME,
    queue=st.none() | TIME,
    lag=st.none() | TIME,
    shares=st.none() | st.floats(0, 1),
)
def test_the_parts_always_sum_up_and_none_is_negative(
    measured: float, floor: float, excess: float, queue: float | None, lag: float | None, shares: float | None
) -> None:
    at = step(operation("ffn", floor, floor + excess))
    profile = None if shares is None else trace(kernels_s=shares, communication_s=0, launch_gaps_s=0, idle_s=1 - shares)
    told = ServerTimes(engine="vllm", watched_s=1, queue_s=queue)
    what = run(tpot_s=measured, ttft_s=measured, client_lag_s=lag, output_tokens=5.0)
    for found in (
        attribution.decode(what, at, at, profile),
        attribution.first_token(what, at, at, told),
    ):
        assert all(part >= 0 for part in seconds(found).values())


def test_counters_of_a_watched_stretch_are_what_was_added_in_it() -> None:
    before = {
        "vllm:request_queue_time_seconds_sum": 100.0, "vllm:request_queue_time_seconds_count": 50.0,
        "vllm:time_to_first_token_seconds_sum": 200.0, "vllm:time_to_first_token_seconds_count": 50.0,
        "vllm:inter_token_latency_seconds_sum": 10.0, "vllm:inter_token_latency_seconds_count": 1000.0,
        "vllm:generation_tokens_total": 1000.0, "vllm:prompt_tokens_total": 5000.0, "vllm:request_success_total": 50.0,
        "vllm:num_requests_running": 3.0, "vllm:num_requests_waiting": 2.0,
    }  # fmt: skip
    after = {name: value + 10 for name, value in before.items()} | {"vllm:num_requests_waiting": 7.0}

    found = server_times(before, after, 5.0, 4.5)

    assert found is not None
    assert (found.engine, found.running, found.waiting) == ("vllm", 4.5, 7.0)
    assert (found.queue_s, found.ttft_s, found.tpot_s) == (1.0, 1.0, 1.0)
    assert (found.requests, found.output_tokens_per_s, found.input_tokens) == (10.0, 2.0, 1.0)


def test_counters_since_the_start_have_no_rate() -> None:
    counters = {
        "llamacpp:tokens_predicted_total": 100.0, "llamacpp:tokens_predicted_seconds_total": 2.0,
        "llamacpp:n_busy_slots_per_decode": 1.5, "llamacpp:prompt_tokens_total": 10.0,
    }  # fmt: skip
    found = server_times(None, counters, None, None)

    assert found is not None
    assert (found.tpot_s, found.running, found.output_tokens_per_s, found.queue_s) == (0.02, 1.5, None, None)


def test_a_server_that_was_started_anew_meanwhile_has_no_means() -> None:
    before = {"sglang:queue_time_seconds_sum": 9.0, "sglang:queue_time_seconds_count": 9.0}
    found = server_times(
        before, {"sglang:queue_time_seconds_sum": 1.0, "sglang:queue_time_seconds_count": 1.0}, 1.0, None
    )

    assert found is not None
    assert found.queue_s is None


def test_counters_of_another_program_are_of_no_engine() -> None:
    assert server_times(None, {"process_cpu_seconds_total": 1.0}, None, None) is None


def test_times_of_a_second_and_more_are_told_in_seconds_and_never_with_an_exponent() -> None:
    found = attribution.decode(run(tpot_s=2.47), step(operation("ffn", 1.0, 2.48)), None, None)

    assert found is not None
    assert "sums up to 1.48 s where 1.47 s are left: scaled to fit" in found.notes[0]
