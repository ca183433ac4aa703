"""How the host's part of a step and its kernels add up, by the engine's scheduling and graphs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.gpu.moe_model import config
from hypothesis import given
from hypothesis import strategies as st

from assay.models import load
from assay.records.estimate import (
    Host,
    HostTime,
    Layout,
    MechanismCeiling,
    OperatingPoint,
    Range,
    Routing,
    Scheduling,
    StepEstimate,
)
from assay.roofline import calibration, ceilings, efficiency, host, mechanisms, mixed, quick, step
from assay.roofline.calibration import Calibration
from tests.unit.shapes import box_of, llama_8b

ONE = Layout()
FAST = box_of(memory_read_bytes_per_s=2e13, bf16_flop_per_s=4e15)
"""A device that is done before its host has launched kernel by kernel."""
VLLM = Host(engine="vllm", why="a test")
SERIAL = VLLM.model_copy(update={"scheduling": "serial"})


def decode(sequences: int, context: int = 1000) -> OperatingPoint:
    return OperatingPoint(phase="decode", sequences=sequences, context_tokens=context)


def estimated(at: Host, sequences: int = 64) -> StepEstimate:
    return step.estimate(llama_8b(), box_of(), ONE, decode(sequences), host=at)


def with_a_prompt(at: Host, sequences: int) -> StepEstimate:
    prompt = OperatingPoint(phase="prefill", sequences=1, context_tokens=0, new_tokens=64)
    return mixed.estimate(llama_8b(), FAST, ONE, decode(sequences), prompt, host=at)


def exactly(ms: float) -> Range:
    return Range(low=ms * 1e-3, mid=ms * 1e-3, high=ms * 1e-3)


def work(*, ahead: float = 2.0, rest: float = 0.5, launches: float = 0.0) -> HostTime:
    return HostTime(
        ahead_s=exactly(ahead / 2), ahead_sequences_s=exactly(ahead / 2), rest_s=exactly(rest),
        rest_sequences_s=exactly(0.0), launches_s=exactly(launches),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("scheduling", "kernels", "launches", "whole"),
    [
        ("serial", 6.0, 0.0, 8.5),
        ("overlapped", 6.0, 0.0, 6.5),
        ("overlapped", 1.0, 0.0, 2.5),  # the host sets the pace
        ("serial", 1.0, 0.0, 3.5),
        ("serial", 6.0, 9.0, 11.5),
        ("overlapped", 6.0, 9.0, 11.5),  # one thread prepares and launches
        ("overlapped", 6.0, 3.0, 6.5),
    ],
)
def test_serial_work_is_added_to_the_kernels_and_overlapped_work_hides_behind_them(
    scheduling: Scheduling, kernels: float, launches: float, whole: float
) -> None:
    at = Host(scheduling=scheduling)

    assert host.step_s(exactly(kernels), work(launches=launches), at).mid == pytest.approx(whole * 1e-3)
    assert host.overhead_s(exactly(kernels), work(launches=launches), at).mid == pytest.approx((whole - kernels) * 1e-3)


@given(kernels=st.floats(0.01, 50), ahead=st.floats(0, 10), rest=st.floats(0, 5), launches=st.floats(0, 50))
def test_overlapping_never_makes_a_step_longer_and_never_shorter_than_kernels_or_host(
    kernels: float, ahead: float, rest: float, launches: float
) -> None:
    time = work(ahead=ahead, rest=rest, launches=launches)
    serial = host.step_s(exactly(kernels), time, Host(scheduling="serial")).mid
    overlapped = host.step_s(exactly(kernels), time, Host(scheduling="overlapped")).mid

    assert overlapped <= serial + 1e-12
    assert overlapped >= max(kernels, ahead + launches) * 1e-3 - 1e-12


def test_a_step_is_its_kernels_and_what_the_device_waits_for() -> None:
    for at in (VLLM, SERIAL, Host()):
        found = estimated(at)
        for end in ("low", "mid", "high"):
            kernels = sum(getattr(op.time_s, end) for op in found.ops)
            assert getattr(found.time_s, end) == pytest.approx(kernels + getattr(found.overhead_s, end))
        assert found.host == at
        assert 0 < found.sequences_s.mid < found.overhead_s.mid


@pytest.mark.parametrize(
    ("engine", "sequences", "measured_ms"),
    [("vllm", 64, 1.94), ("vllm", 16, 1.38), ("sglang", 64, 2.86), ("sglang", 16, 1.54)],
)
def test_switching_overlapping_off_costs_a_step_what_it_cost_on_an_h200(
    engine: str, sequences: int, measured_ms: float
) -> None:
    """Measured there: examples/gpu/h200-vllm, r0006; h200-sglang, r0007, without what prompts' own steps lost."""
    serial, overlapped = (
        estimated(Host(engine=engine, scheduling="serial"), sequences),
        estimated(Host(engine=engine, scheduling="overlapped"), sequences),
    )

    assert 1e3 * (serial.time_s.mid - overlapped.time_s.mid) == pytest.approx(measured_ms, rel=0.05)


def test_engines_without_a_python_loop_have_nothing_to_overlap() -> None:
    for engine in efficiency.COMPILED:
        serial = estimated(Host(engine=engine, scheduling="serial"))
        assert serial.time_s == estimated(Host(engine=engine, scheduling="overlapped")).time_s


def test_processors_are_estimated_as_before_whatever_the_scheduling() -> None:
    limits = ceilings.of(box_of().device.model_copy(update={"kind": "cpu"}))
    time = host.time_of(limits, Host(), 8, 100, captured=True)

    assert host.ahead_s(time) == host.NOTHING
    assert host.rest_s(time).mid == pytest.approx(0.15e-3 + 8 * 10e-6)


def test_without_graphs_the_launches_set_the_pace_of_a_fast_device() -> None:
    eager, replayed = (
        step.estimate(llama_8b(), FAST, ONE, decode(1), host=VLLM.model_copy(update={"graphs": graphs}))
        for graphs in ("none", "all")
    )
    assert eager.host_time is not None

    assert eager.host_time.launches_s.mid == pytest.approx(70e-6 * sum(op.calls for op in eager.ops))
    assert eager.time_s.mid > eager.host_time.launches_s.mid > replayed.time_s.mid
    assert eager.floor_s == replayed.floor_s


def test_graphs_of_decode_alone_leave_steps_with_prompts_to_the_host() -> None:
    both, alone = (with_a_prompt(one, 4) for one in (VLLM, VLLM.model_copy(update={"graphs": "decode"})))

    assert estimated(VLLM.model_copy(update={"graphs": "decode"})).time_s == estimated(VLLM).time_s
    assert alone.time_s.mid > both.time_s.mid


def test_a_step_of_more_tokens_than_any_captured_size_is_launched_kernel_by_kernel() -> None:
    small = VLLM.model_copy(update={"captured_decode_tokens": 64, "captured_prompt_tokens": 64 + 4})

    assert estimated(small, 64).time_s == estimated(VLLM, 64).time_s
    assert estimated(small, 65).host_time != estimated(VLLM, 65).host_time
    assert with_a_prompt(small, 4).time_s == with_a_prompt(VLLM, 4).time_s
    assert with_a_prompt(small, 5).time_s == with_a_prompt(VLLM.model_copy(update={"graphs": "none"}), 5).time_s


@pytest.mark.parametrize(("sequences", "measured_s"), [(16, 17.7e-3), (64, 17.1e-3)])
def test_an_eager_step_of_a_python_engine_takes_what_its_launches_take(
    sequences: int, measured_s: float, tmp_path: Path
) -> None:
    """Measured: the median gap between tokens of SGLang without graphs (examples/gpu/h200-sglang, r0011, r0015).

    The cost of a launch is set by traces of vLLM; these arms were known by then.
    """
    (tmp_path / "config.json").write_text(json.dumps(config(layers=12, intermediate=256, vocabulary=32768)))
    eager = Host(engine="sglang", graphs="none")
    found = step.estimate(load(str(tmp_path)), FAST, ONE, decode(sequences, 400), host=eager)

    assert found.time_s.mid == pytest.approx(measured_s, rel=0.15)


def test_a_search_counts_the_host_as_an_estimate_does() -> None:
    for at in (VLLM, SERIAL, VLLM.model_copy(update={"graphs": "none"})):
        found = quick.step_time(
            llama_8b(), box_of(), ceilings.of(box_of().device), ONE, decode(8), routing=Routing(), host=at
        )
        assert found.time_s.mid == pytest.approx(estimated(at, 8).time_s.mid)


def test_a_calibration_corrects_hidden_work_as_well() -> None:
    small = estimated(VLLM)
    slower = calibration.apply(small, Calibration(overhead=50.0))
    assert small.host_time is not None
    ahead_s = 50 * small.host_time.ahead_s.mid + small.host_time.ahead_sequences_s.mid

    kernels_s = sum(op.time_s.mid for op in slower.ops)
    assert ahead_s > kernels_s  # the host sets the pace now
    assert slower.time_s.mid == pytest.approx(ahead_s + 50 * small.host_time.rest_s.mid + small.sequences_s.mid)


def test_what_hides_behind_kernels_is_told_and_no_part_of_the_step() -> None:
    found = estimated(VLLM)
    assert found.host_time is not None
    hidden = host.hidden_s(host.kernels_s(found.ops), found.host_time, VLLM)

    assert hidden.mid == pytest.approx(host.ahead_s(found.host_time).mid)
    assert host.hidden_s(host.kernels_s(found.ops), found.host_time, SERIAL) == host.NOTHING


def ceiling(name: str, at: Host, sequences: int = 64) -> MechanismCeiling:
    found = mechanisms.ceilings(estimated(at, sequences), llama_8b(), box_of(), ONE)
    return next(one for one in found if one.id == name)


def control(name: str, at: Host, prompts_per_step: float | None = 0.3) -> MechanismCeiling:
    base = step.estimate(llama_8b(), FAST, ONE, decode(64), host=at)
    both = with_a_prompt(at, 64)
    found = mechanisms.controls(base, llama_8b(), FAST, ONE, mixed=both, prompts_per_step=prompts_per_step)
    return next(one for one in found if one.id == name)


def graphs_worth(at: Host, point: OperatingPoint) -> MechanismCeiling:
    base = step.estimate(llama_8b(), FAST, ONE, point, host=at)
    return next(one for one in mechanisms.ceilings(base, llama_8b(), FAST, ONE) if one.id == "cuda-graphs")


def test_graphs_are_worth_the_launches_that_a_step_without_them_waits_for() -> None:
    eager, replayed = (VLLM.model_copy(update={"graphs": graphs}) for graphs in ("none", "all"))
    times = [step.estimate(llama_8b(), FAST, ONE, decode(1), host=at).time_s.mid for at in (eager, replayed)]

    found = graphs_worth(eager, decode(1))

    assert found.applies
    assert found.gain.mid == pytest.approx(times[0] / times[1] - 1)
    assert 0 <= found.gain.low < found.gain.mid < found.gain.high


def test_graphs_in_use_bring_nothing_more_but_to_steps_of_prompts() -> None:
    prompt = OperatingPoint(phase="prefill", sequences=1, context_tokens=0, new_tokens=64)

    assert not graphs_worth(VLLM, decode(1)).applies
    assert graphs_worth(VLLM, prompt).gain.mid > 0


def kernels(name: str, at: Host) -> int:
    found = step.estimate(load("qwen3-30b-a3b"), box_of(), ONE, decode(8), host=at)
    return next(op.calls for op in found.ops if op.name == name)


def test_norms_of_queries_and_keys_are_kernels_of_their_own_where_nothing_is_compiled() -> None:
    layers = load("qwen3-30b-a3b").num_layers
    plain = VLLM.model_copy(update={"compiles": False})

    assert kernels("elementwise.norm", VLLM) == 2 * layers
    assert kernels("elementwise.norm", plain) == 4 * layers
    assert kernels("elementwise.norm", Host()) == 2 * layers


def test_kernels_outside_of_layers_are_those_of_a_trace_for_the_engine_that_was_traced() -> None:
    assert (kernels("elementwise.inputs", VLLM), kernels("sampling", VLLM)) == (22, 10)
    assert (kernels("elementwise.inputs", Host()), kernels("sampling", Host())) == (4, 6)


def test_overlapping_is_worth_what_it_hides_and_nothing_where_it_is_in_use() -> None:
    gain = ceiling("async-scheduling", SERIAL).gain
    before, after = estimated(SERIAL).time_s.mid, estimated(VLLM).time_s.mid

    assert gain.mid == pytest.approx(before / after - 1)
    assert gain.low <= gain.mid <= gain.high
    used = ceiling("async-scheduling", VLLM)
    assert not used.applies
    assert "in use" in used.reason


def test_switching_it_off_is_a_loss_at_both_ends() -> None:
    gain = control("serial-scheduling", VLLM).gain

    before, after = (step.estimate(llama_8b(), FAST, ONE, decode(64), host=at).time_s.mid for at in (VLLM, SERIAL))

    assert gain.mid == pytest.approx(before / after - 1)
    assert gain.low < gain.mid < gain.high < 0
    assert not control("serial-scheduling", SERIAL).applies


def test_graphs_for_decode_alone_cost_no_more_than_their_share_of_the_steps() -> None:
    some, more = (control("graphs-for-decode-alone", VLLM, prompts) for prompts in (0.1, 1.0))

    assert more.gain.low < some.gain.low <= 0
    assert not control("graphs-for-decode-alone", VLLM, None).applies
    assert not control("graphs-for-decode-alone", VLLM.model_copy(update={"graphs": "decode"})).applies
    assert control("no-graphs", VLLM).gain.low < 0
    assert not control("no-graphs", VLLM.model_copy(update={"graphs": "none"})).applies
