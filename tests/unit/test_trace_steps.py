"""Decode steps in a trace: where they begin, which count, and which operation each of their kernels is."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.formats.kernel_kinds import Kind, kind_of
from assay.formats.trace_steps import annotated
from assay.formats.traces import read_trace
from assay.records.traced_step import Operation, TracedSteps
from tests.unit import kineto
from tests.unit.kineto import ATTENTION, DENSE, EXPERTS, FLASH, PRODUCT, Tape, decode_name, decode_tape

LAYERS = 3


def steps_of(tape: Tape, folder: Path, *, without: list[str] | None = None) -> TracedSteps:
    found = read_trace(tape.write(folder / "trace.json.gz", without=without or [])).decode
    assert found is not None
    return found


def microseconds(found: TracedSteps) -> dict[Operation, float]:
    return {one.operation: round(1e6 * one.seconds, 3) for one in found.operations}


def test_a_step_of_a_replayed_graph_is_told_operation_by_operation(tmp_path: Path) -> None:
    found = steps_of(decode_tape(layers=LAYERS), tmp_path)

    assert microseconds(found) == {
        "experts gate-up": 340 * LAYERS,
        "experts down": 200 * LAYERS,
        "head": 95,
        "attention": 33 * LAYERS,
        "qkv projection": 27 * LAYERS,  # the sum of its split parts is of the same product
        "output projection": 19 * LAYERS,
        "experts sort, sum": 12 * LAYERS,
        "norms": 10 * LAYERS + 3,
        "router": 7 * LAYERS,
        "sampling": 25,  # with the copies before and after it
        "rope, cache write": 4 * LAYERS,
        "inputs": 8,
        "activation": 2 * LAYERS,
    }
    assert [one.calls for one in found.operations if one.operation == "experts sort, sum"] == [3 * LAYERS]


def test_what_runs_and_what_does_not_make_up_the_time_of_a_step(tmp_path: Path) -> None:
    found = steps_of(decode_tape(layers=LAYERS), tmp_path)

    assert found.busy_s == pytest.approx(sum(one.seconds for one in found.operations))
    assert found.busy_s + found.short_pauses_s + found.long_pauses_s == pytest.approx(found.period_s)
    assert 1e6 * found.long_pauses_s == pytest.approx(kineto.HOST_US, abs=2)


def test_steps_with_prompts_in_them_are_left_out_and_the_last_one_has_no_end(tmp_path: Path) -> None:
    found = steps_of(decode_tape(sequences=64, context=320, steps=9), tmp_path)

    assert (found.steps, found.left_out, found.sequences, found.marked_by) == (7, 1, 64, "engine")
    assert found.context_tokens == pytest.approx(320)


def test_brief_annotations_do_not_tell_the_context(tmp_path: Path) -> None:
    assert steps_of(decode_tape(context=None), tmp_path).context_tokens is None


def test_the_most_frequent_number_of_sequences_counts(tmp_path: Path) -> None:
    tape = Tape()
    for sequences in (15, 16, 16, 15, 16, 16):
        tape.step(decode_name(sequences), [*ATTENTION, *EXPERTS])

    found = steps_of(tape, tmp_path)

    assert (found.sequences, found.steps, found.left_out) == (16, 3, 2)


def test_without_the_hosts_annotations_the_devices_own_mark_the_steps(tmp_path: Path) -> None:
    tape = decode_tape()

    found = steps_of(tape, tmp_path, without=["user_annotation"])

    assert (found.marked_by, found.sequences, found.steps) == ("engine", 64, 3)
    assert microseconds(found) == microseconds(steps_of(tape, tmp_path))


def test_without_annotations_a_step_is_a_launch_of_the_large_graph(tmp_path: Path) -> None:
    tape = Tape()
    for _ in range(4):
        tape.step("", [*ATTENTION, *EXPERTS], annotate=False)
        tape.launch("cudaGraphLaunch", [("small", 1.0)])

    found = steps_of(tape, tmp_path)

    assert (found.marked_by, found.sequences, found.steps) == ("graph launches", None, 3)
    assert microseconds(found)["experts gate-up"] == 340


def test_without_annotations_and_graphs_no_steps_are_told_apart(tmp_path: Path) -> None:
    tape = Tape()
    for _ in range(4):
        tape.step("", [*ATTENTION, *DENSE], annotate=False, graph=False)

    assert read_trace(tape.write(tmp_path / "trace.json")).decode is None


def test_dense_layers_and_the_head_are_told_apart_by_their_places(tmp_path: Path) -> None:
    tape = Tape()
    for _ in range(3):
        tape.step(decode_name(8), [*ATTENTION, *DENSE] * 2)

    found = microseconds(steps_of(tape, tmp_path))

    assert (found["dense gate-up"], found["dense down"], found["head"]) == (120, 60, 95)
    assert (found["qkv projection"], found["output projection"]) == (54, 38)


def test_products_around_a_nameless_grouped_matmul_are_the_experts(tmp_path: Path) -> None:
    renamed = [(PRODUCT if name == "fused_moe_kernel" else name, took) for name, took in EXPERTS]
    tape = Tape()
    for _ in range(3):
        tape.step(decode_name(8), [*ATTENTION, *renamed] * 2)

    found = microseconds(steps_of(tape, tmp_path))

    assert (found["experts gate-up"], found["experts down"], found["router"]) == (680, 400, 14)


def test_a_kernel_that_no_rule_knows_is_told_with_its_name(tmp_path: Path) -> None:
    tape = Tape()
    for _ in range(3):
        tape.step(decode_name(8), [*ATTENTION, ("mystery_kernel", 7.0), *EXPERTS])

    other = next(one for one in steps_of(tape, tmp_path).operations if one.operation == "other")

    assert [(one.name, one.calls) for one in other.kernels] == [("mystery_kernel", 1)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fused_moe_kernel", "experts"),
        ("gate_up_sorted", "gate_up"),
        ("down_pairs_by_block", "down"),
        ("sum_slots", "sort"),
        ("void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, 32, int>", "router"),
        ("void vllm::moe::grouped_topk_fused_small_expert_count_kernel<float>", "router"),
        ("moe_fused_mul_sum_kernel", "sort"),
        ("moe_sum_kernel", "sort"),
        (FLASH, "attention"),
        ("_fwd_grouped_kernel_stage1", "attention"),
        ("kernel_unified_attention", "attention"),
        ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<x>", "attention"),
        ("_topk_topp_kernel", "sampling"),
        ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>", "sampling"),
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<GroupProblemShape<X> > >", "experts"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16>", "product"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64", "product"),
        ("void vllm::act_and_mul_kernel<c10::BFloat16>", "activation"),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", "norm"),
        ("void vllm::scaled_fp8_quant_kernel<c10::BFloat16>", "quantize"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "communication"),
        ("Memcpy DtoH (Device -> Pinned)", "plain"),
    ],
)
def test_kernels_are_told_by_their_names(name: str, kind: Kind) -> None:
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("execute_context_0(0)_generation_64(64)", (64, False, None)),
        ("execute_context_1(256)_generation_63(63)", (63, True, None)),
        ("execute_context_0(0)_generation_8(32)", (8, True, None)),  # several tokens each: speculation
        (decode_name(16, 300), (16, False, 300.0)),
        ("execute_context_0(0)_generation_0(0)", (0, True, None)),
        ("ProfilerStep#3", None),
    ],
)
def test_an_annotation_tells_sequences_prompts_and_context(
    name: str, told: tuple[int, bool, float | None] | None
) -> None:
    assert annotated(name) == told
