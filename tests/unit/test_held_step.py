"""An estimate held against a profiled decode step: what counts as close, and what is said of the rest."""

from __future__ import annotations

import pytest

from assay.records.estimate import Layout, OperatingPoint, OpTime, Range, Routing, StepEstimate
from assay.records.traced_step import HeldStep, TracedKernel, TracedOperation, TracedSteps
from assay.roofline import held_step

STARTS = Range(low=0.5e-6, mid=1e-6, high=2e-6)


def op(name: str, part: str, calls: int, each_us: float, *, floor_us: float = 0.0) -> OpTime:
    """Expected with the start of each kernel."""
    time_s = 1e-6 * calls * (each_us + 1)
    return OpTime(
        name=name, part=part, calls=calls, flops=0, read_bytes=0, floor_s=1e-6 * calls * floor_us,
        time_s=Range(low=0.8 * time_s, mid=time_s, high=1.5 * time_s), bound="memory", basis=["measured"],
    )  # fmt: skip


def estimate(*ops: OpTime, host_us: float = 100.0) -> StepEstimate:
    total_s = sum(one.time_s.mid for one in ops) + 1e-6 * host_us
    return StepEstimate(
        point=OperatingPoint(phase="decode", sequences=64, context_tokens=320), layout=Layout(), routing=Routing(),
        ops=list(ops), floor_s=1e-4, time_s=Range(low=0.8 * total_s, mid=total_s, high=1.5 * total_s),
        overhead_s=Range(low=0, mid=1e-6 * host_us, high=4e-6 * host_us),
        tokens_per_s=Range(low=1, mid=2, high=3), ceiling_tokens_per_s=4, bound="memory",
    )  # fmt: skip


def traced(*parts: tuple[str, float, float], idle_us: float = 100.0, left_out: int = 1) -> TracedSteps:
    operations = [
        TracedOperation.model_validate(
            {
                "operation": name, "seconds": 1e-6 * us, "calls": calls,
                "kernels": [TracedKernel(name=f"void {name.split()[0]}_kernel<int>", seconds=1e-6 * us, calls=calls)],
            }
        )
        for name, us, calls in parts
    ]  # fmt: skip
    busy_s = sum(one.seconds for one in operations)
    return TracedSteps(
        marked_by="engine", steps=9, left_out=left_out, sequences=64, context_tokens=320,
        period_s=busy_s + 1e-6 * idle_us, busy_s=busy_s, short_pauses_s=0.4e-6 * idle_us,
        long_pauses_s=0.6e-6 * idle_us, operations=operations,
    )  # fmt: skip


EXPECTED = estimate(
    op("routed_experts.gate_up", "routed_experts", 16, 340, floor_us=300), op("elementwise.norm", "elementwise", 32, 2)
)
SEEN = (("experts gate-up", 16 * 340.0, 16.0), ("norms", 32 * 2.0, 32.0))


def hold(seen: TracedSteps, measured_us: float | None, step: StepEstimate = EXPECTED) -> HeldStep:
    measured_s = None if measured_us is None else 1e-6 * measured_us
    return held_step.held(step, seen, starts_s=STARTS, measured_s=measured_s, measured_by="a load test")


def test_what_is_as_expected_is_close_and_nothing_is_told() -> None:
    found = hold(traced(*SEEN), 16 * 340 + 32 * 2 + 48 + 100)

    assert found.close
    assert found.error == pytest.approx(0)
    assert found.words == []
    assert [row.ratio for row in found.operations] == pytest.approx([1, 1])


def test_the_parts_of_the_expected_and_of_the_measured_step_sum_up_to_them() -> None:
    found = hold(traced(*SEEN), 6000)

    measured_s = sum(row.measured_s or 0 for row in found.operations) + found.between_s
    expected_s = sum(row.expected_s.mid for row in found.operations if row.expected_s) + found.expected_between_s.mid
    assert measured_s == pytest.approx(found.measured_s)
    assert expected_s == pytest.approx(found.expected_s.mid)


def test_a_device_that_waits_for_the_host_is_told_first() -> None:
    found = hold(traced(*SEEN, idle_us=3000), 8200)

    assert not found.close
    assert found.words[0].startswith(
        "between kernels: nothing runs for 33% of the step (2.7 ms); 0.148 ms were expected"
    )
    assert "0.048 ms for 48 starts and 0.1 ms for the host" in found.words[0]


def test_kernels_slower_than_expected_are_told_with_their_number_and_time() -> None:
    found = hold(traced(("experts gate-up", 16 * 440.0, 16.0), SEEN[1]), 7400)

    assert found.words == [
        "experts gate-up: 1.6 ms more than expected; 16 kernels of 440 µs, 340 µs expected, floor 300 µs",
        "between kernels: " + found.words[1].removeprefix("between kernels: "),
    ]


def test_another_number_of_kernels_than_expected_is_told_with_their_names() -> None:
    found = hold(traced(SEEN[0], ("norms", 64 * 5.0, 64.0)), 6000)

    assert "norms: 0.256 ms more than expected; 64 kernels of 5 µs, 32 of 2 µs were expected: norms_kernel (64)" in (
        found.words
    )


def test_what_the_estimate_lacks_and_what_the_trace_lacks_have_no_ratio() -> None:
    seen = traced(("other", 900.0, 16.0), ("norms", 64.0, 32.0))
    found = hold(seen, 1200)

    rows = {row.operation: row for row in found.operations}
    assert rows["other"].ratio is None
    assert rows["experts gate-up"].ratio is None
    assert "other: 0.9 ms that the estimate has no operation for: other_kernel (16)" in found.words
    assert "experts gate-up: 5.44 ms expected, and no such kernel in the trace" in found.words


def test_without_a_load_test_the_traces_own_steps_are_measured() -> None:
    found = hold(traced(*SEEN), None)

    assert found.measured_s == pytest.approx(1e-6 * (16 * 340 + 64 + 100))
    assert "a profiler makes them longer" in found.measured_by


def test_a_trace_of_another_load_is_noted() -> None:
    assert "taken at another load" in hold(traced(*SEEN), 3000).notes[0]


def test_many_steps_with_prompts_are_noted() -> None:
    assert "8 of 17 steps" in hold(traced(*SEEN, left_out=8), 6000).notes[0]


@pytest.mark.parametrize(
    ("name", "part", "operation"),
    [
        ("attention.qkv_a_proj", "attention", "qkv projection"),
        ("attention.o_proj", "attention", "output projection"),
        ("attention.mla", "attention_core", "attention"),
        ("shared_experts.gate_up", "shared_experts", "dense gate-up"),
        ("dense_ffn.down", "dense_ffn", "dense down"),
        ("router.gate", "router", "router"),
        ("embedding.lookup", "embedding", "inputs"),
        ("head", "head", "head"),
    ],
)
def test_operations_of_an_estimate_have_their_kind_in_a_trace(name: str, part: str, operation: str) -> None:
    assert held_step.operation_of(op(name, part, 1, 1)) == operation
