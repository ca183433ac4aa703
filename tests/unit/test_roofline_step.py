"""One step, by hand and by what has to hold for every step."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.records.device import Box
from assay.records.estimate import Layout, OperatingPoint, OpTime, Routing, StepEstimate
from assay.records.model_shape import Attention, LayerGroup, ModelShape, Storage
from assay.roofline import ceilings, quick, step
from tests.unit.shapes import (
    BF16,
    FP8,
    NVFP4,
    box_of,
    curve,
    device,
    ends,
    glm5,
    gpt_oss_like,
    heads_of,
    hybrid_like,
    llama_8b,
    matrix,
)

ONE = Layout()


def decode(sequences: int, context: int, new_tokens: int = 1) -> OperatingPoint:
    return OperatingPoint(phase="decode", sequences=sequences, context_tokens=context, new_tokens=new_tokens)


def prefill(sequences: int, tokens: int, context: int = 0) -> OperatingPoint:
    return OperatingPoint(phase="prefill", sequences=sequences, context_tokens=context, new_tokens=tokens)


def op(estimate: StepEstimate, name: str) -> OpTime:
    return next(one for one in estimate.ops if one.name == name)


def names(estimate: StepEstimate) -> set[str]:
    return {one.name for one in estimate.ops}


def one_matmul(storage=BF16) -> ModelShape:
    return ModelShape(
        name="one",
        architecture="One",
        source="test",
        hidden=4096,
        vocab=1000,
        outer=ends(4096, 1000),
        layers=[
            LayerGroup(
                name="dense", count=2, attention=None, matrices=[matrix("down_proj", "dense_ffn", 4096, 8192, storage)]
            )
        ],
    )


def test_a_matmul_of_one_token_is_bound_by_its_weights():
    # Two layers of 4096 x 8192 in BF16: 134.2 MB over 1 TB/s; 2 * 33.5e6 * 2 = 134.2 Mflop.
    found = op(step.estimate(one_matmul(), box_of(), ONE, decode(1, 0)), "dense_ffn.down")
    assert found.flops == pytest.approx(2 * 2 * 4096 * 8192)
    assert found.read_bytes == pytest.approx(2 * 4096 * 8192 * 2, rel=0.001)
    assert found.floor_s == pytest.approx(134.2e6 / 1e12, rel=0.001)
    assert found.bound == "memory"


def test_a_matmul_of_many_tokens_is_bound_by_arithmetic():
    # 4096 tokens: 2 * 4096 * 33.55e6 * 2 layers = 549.8 Gflop over 100 TFLOP/s = 5.5 ms.
    found = op(step.estimate(one_matmul(), box_of(), ONE, decode(4096, 0)), "dense_ffn.down")
    assert found.floor_s == pytest.approx(2 * 2 * 4096 * 4096 * 8192 / 100e12)
    assert found.bound == "compute"


def test_attention_of_decode_reads_every_cached_key_and_value_once():
    # Llama 3.1 8B, 16 sequences at 1000: 32 layers * 16 * 1001 tokens * 8 heads * 256 * 2 bytes.
    found = op(step.estimate(llama_8b(), box_of(), ONE, decode(16, 1000)), "attention.core")
    assert found.read_bytes == pytest.approx(32 * 16 * 1001 * 8 * 256 * 2)
    assert found.flops == pytest.approx(32 * 16 * 1001 * 2 * 32 * 256)


def test_decode_adds_up_what_attention_split_in_a_kernel_of_its_own_and_prefill_does_not():
    found = op(step.estimate(llama_8b(), box_of(), ONE, decode(16, 1000)), "attention.combine")
    assert (found.calls, found.floor_s, found.bound) == (32, 0.0, "launch")
    assert "attention.combine" in names(step.estimate(glm5(), box_of(), ONE, decode(1, 500)))
    assert "attention.combine" not in names(step.estimate(llama_8b(), box_of(), ONE, prefill(1, 100)))


def test_attention_of_prefill_is_causal():
    # 100 tokens after 50: 100 * 50 + 100 * 101 / 2 = 10,050 pairs, in 32 layers with 32 heads of 128 + 128.
    found = op(step.estimate(llama_8b(), box_of(), ONE, prefill(1, 100, context=50)), "attention.core")
    assert found.flops == pytest.approx(32 * 10_050 * 2 * 32 * 256)


def test_a_window_caps_what_is_read_and_multiplied():
    estimate = step.estimate(gpt_oss_like(), box_of(), ONE, decode(1, 10_000))
    full, window = op(estimate, "attention.core"), op(estimate, "attention.window")
    assert window.read_bytes / full.read_bytes == pytest.approx(128 / 10_001)
    assert window.flops / full.flops == pytest.approx(128 / 10_001)


def test_a_window_that_fills_during_prefill_is_counted_exactly():
    # 200 tokens from nothing with a window of 128: 1 + 2 + ... + 128 + 72 * 128.
    found = op(step.estimate(gpt_oss_like(), box_of(), ONE, prefill(1, 200)), "attention.window")
    assert found.flops == pytest.approx(18 * (128 * 129 / 2 + 72 * 128) * 2 * 64 * 128)


def test_tp_splits_heads_until_key_value_heads_run_out():
    one, eight, sixteen = (
        op(step.estimate(llama_8b(), box_of(tp), Layout(tp=tp), decode(4, 5000)), "attention.core").read_bytes
        for tp in (1, 8, 16)
    )
    assert eight == pytest.approx(one / 8)
    assert sixteen == pytest.approx(eight), "8 key/value heads: two ranks each hold the same one"


def test_mla_is_read_whole_on_every_tp_rank_and_split_by_dp():
    shape = glm5(sparse=False)
    alone = op(step.estimate(shape, box_of(8), Layout(tp=8), decode(64, 1000)), "attention.mla").read_bytes
    split = op(step.estimate(shape, box_of(8), Layout(dp=8, ep=8), decode(64, 1000)), "attention.mla").read_bytes
    assert alone == pytest.approx(78 * 64 * 1001 * 576 * 2)
    assert split == pytest.approx(alone / 8)


def test_mla_is_absorbed_in_decode_and_expanded_in_prefill():
    shape = glm5(sparse=False)
    absorbed = op(step.estimate(shape, box_of(), ONE, decode(1, 999)), "attention.mla").flops
    assert absorbed == pytest.approx(78 * 1000 * 64 * 2 * (2 * 512 + 64))
    expanded = op(step.estimate(shape, box_of(), ONE, prefill(1, 1000)), "attention.mla").flops
    assert expanded == pytest.approx(78 * 1000 * 1001 / 2 * 64 * 2 * 512)


def test_an_indexer_reads_all_keys_and_limits_what_attention_reads():
    estimate = step.estimate(glm5(), box_of(), ONE, decode(1, 100_000))
    assert op(estimate, "indexer.scores").read_bytes == pytest.approx(78 * 100_001 * 132)
    assert op(estimate, "attention.mla").read_bytes == pytest.approx(78 * 2049 * 576 * 2)


def test_below_its_top_k_an_indexer_has_no_floor():
    assert op(step.estimate(glm5(), box_of(), ONE, decode(1, 500)), "indexer.scores").floor_s == 0
    assert op(step.estimate(glm5(), box_of(), ONE, decode(1, 5000)), "indexer.scores").floor_s > 0


def test_a_linear_state_does_not_grow_with_the_context():
    near, far = (
        op(step.estimate(hybrid_like(), box_of(), ONE, decode(4, context)), "linear_attention.state").read_bytes
        for context in (10, 100_000)
    )
    assert near == far == pytest.approx(36 * 4 * 32 * 128 * 128 * 2 * 4)


def test_weights_of_experts_are_read_as_far_as_tokens_choose_them():
    estimate = step.estimate(glm5(sparse=False), box_of(8, l2_bytes=50e6), Layout(tp=8), decode(1, 0))
    moved = op(estimate, "routed_experts.gate_up").read_bytes
    assert moved == pytest.approx(75 * 8 * 2 * 2048 * 6144 * 4.5 / 8 / 8)
    assert estimate.experts_hit == pytest.approx(8)


def test_a_chip_without_fp4_reads_fp4_and_multiplies_in_bf16():
    estimate = step.estimate(one_matmul(NVFP4), box_of(), ONE, decode(4096, 0))
    found = op(estimate, "dense_ffn.down")
    assert found.compute == "bf16"
    assert found.floor_s == pytest.approx(2 * 2 * 4096 * 4096 * 8192 / 100e12)
    assert any("no fp4 rate" in note for note in estimate.notes)


def test_a_floor_allows_eight_bit_arithmetic_for_four_bit_weights():
    with_fp8 = box_of(fp8_flop_per_s=200e12)
    found = op(step.estimate(one_matmul(NVFP4), with_fp8, ONE, decode(4096, 0)), "dense_ffn.down")
    assert found.floor_s == pytest.approx(2 * 2 * 4096 * 4096 * 8192 / 200e12)
    assert found.compute == "bf16"


def test_what_a_cache_can_keep_between_steps_is_left_out_of_floors():
    without = step.estimate(one_matmul(), box_of(), ONE, decode(1, 0))
    half = step.estimate(one_matmul(), box_of(l2_bytes=71.2e6), ONE, decode(1, 0))
    whole = step.estimate(one_matmul(), box_of(l2_bytes=1e9), ONE, decode(1, 0))
    assert op(half, "dense_ffn.down").floor_s == pytest.approx(op(without, "dense_ffn.down").floor_s / 2, rel=0.01)
    assert op(whole, "dense_ffn.down").floor_s == pytest.approx(2 * 2 * 4096 * 8192 / 100e12)
    assert any("last-level cache" in note for note in whole.notes)


def test_two_all_reduces_a_layer_and_their_messages():
    estimate = step.estimate(llama_8b(), box_of(8, [curve()]), Layout(tp=8), decode(64, 100))
    for name in ("all_reduce.attention", "all_reduce.ffn"):
        assert op(estimate, name).calls == 32
        assert op(estimate, name).message_bytes == 64 * 4096 * 2


def test_experts_over_a_fabric_get_tokens_by_all_to_all_and_elsewhere_by_sums():
    layout = Layout(tp=8, ep=8)
    fabric = names(step.estimate(glm5(), box_of(8, link="NVLink 4"), layout, decode(64, 100)))
    assert {"all_to_all.dispatch", "all_to_all.combine", "reduce_scatter.attention"} <= fabric
    wire = step.estimate(glm5(), box_of(8), layout, decode(64, 100))
    assert "all_to_all.dispatch" not in names(wire)
    assert op(wire, "all_reduce.experts").message_bytes == 64 * 6144 * 2
    assert any("NVLink" in note for note in wire.notes)


@pytest.mark.parametrize(
    "layout", [Layout(tp=8), Layout(tp=8, ep=8), Layout(tp=2, dp=4), Layout(tp=2, dp=4, ep=4), Layout(dp=8, ep=8)]
)
def test_all_ranks_together_read_every_expert_once(layout: Layout):
    # 4096 tokens touch all 256 experts; 0.5625 bytes a weight, an eighth on each rank over 1 TB/s.
    estimate = step.estimate(glm5(sparse=False), box_of(8), layout, decode(4096, 0))
    floor = op(estimate, "routed_experts.gate_up").floor_s
    reading, computing = (
        75 * 256 * 2 * 2048 * 6144 * 0.5625 / 8 / 1e12,
        2 * 75 * 4096 * 8 * 2 * 2048 * 6144 / 8 / 100e12,
    )
    assert floor == pytest.approx(max(reading, computing))
    touched = op(estimate, "routed_experts.gate_up").flops
    assert touched >= 2 * 75 * 4096 * 8 * 2 * 2048 * 6144 / 8 * (1 - 1e-9)


def test_every_layout_reads_an_eighth_of_the_experts_on_each_rank():
    # Memory-bound: 256 tokens, and arithmetic a hundred times faster than usual.
    fast = box_of(8, bf16_flop_per_s=1e16)
    floors = [
        op(step.estimate(glm5(sparse=False), fast, layout, decode(256, 0)), "routed_experts.down").floor_s
        for layout in (Layout(tp=8), Layout(tp=8, ep=8), Layout(tp=2, dp=4), Layout(dp=8, ep=8))
    ]
    assert floors == pytest.approx([floors[0]] * 4)


def test_a_curve_faster_than_the_wire_is_held_to_the_wire():
    impossible = curve(points=[{"message_bytes": 1e5, "time_s": 1e-9}, {"message_bytes": 1e7, "time_s": 2e-9}])
    found = op(step.estimate(llama_8b(), box_of(8, [impossible]), Layout(tp=8), decode(64, 0)), "all_reduce.ffn")
    assert found.time_s.low == found.floor_s > 0


def test_stages_work_on_different_parts_of_the_batch():
    # 64 sequences in four stages: a step is a micro-batch of 16 through all layers.
    staged = step.estimate(llama_8b(), box_of(4), Layout(pp=4), decode(64, 1000))
    alone = step.estimate(llama_8b(), box_of(1), ONE, decode(16, 1000))
    assert op(staged, "attention.core").read_bytes == op(alone, "attention.core").read_bytes
    assert op(staged, "point_to_point.stages").calls == 3
    without_waiting = 64 / (staged.time_s.mid - op(staged, "pipeline.wait").time_s.mid)
    assert without_waiting == pytest.approx(4 * alone.tokens_per_s.mid, rel=0.02)


def test_stages_wait_for_the_one_that_has_the_head_too():
    # Four stages of eight layers, the last with head and sampling: each round takes four times the last one's time.
    staged = step.estimate(llama_8b(), box_of(4), Layout(pp=4), decode(64, 1000))
    head = sum(op(staged, name).time_s.mid for name in ("head", "sampling"))
    assert op(staged, "pipeline.wait").time_s.mid == pytest.approx(3 * head)
    assert op(staged, "pipeline.wait").floor_s == 0


def test_a_lone_prompt_fills_and_drains_the_pipeline():
    alone = step.estimate(llama_8b(), box_of(1), ONE, prefill(1, 1000))
    staged = step.estimate(llama_8b(), box_of(4), Layout(pp=4), prefill(1, 1000))
    # One prompt passes all four stages; it is no faster than on one device, but its floor could be.
    assert staged.time_s.mid == pytest.approx(alone.time_s.mid, rel=0.03)
    assert staged.floor_s < alone.floor_s
    four = step.estimate(llama_8b(), box_of(4), Layout(pp=4), prefill(4, 1000))
    assert 1.7 * alone.time_s.mid < four.time_s.mid < 2 * alone.time_s.mid, "T + 3 * T / 4, and the head"


def test_sequences_fewer_than_stages_wait_for_nobody():
    staged = step.estimate(llama_8b(), box_of(4), Layout(pp=4), decode(2, 1000))
    assert op(staged, "pipeline.wait").time_s.mid == 0


@pytest.mark.parametrize(
    ("measured", "sequences", "bound", "basis"),
    [
        ("memory_read_bytes_per_s", 1, "memory", ["measured"]),
        ("bf16_flop_per_s", 1, "memory", ["spec"]),
        ("bf16_flop_per_s", 4096, "compute", ["measured"]),
        ("memory_read_bytes_per_s", 4096, "compute", ["spec"]),
    ],
)
def test_a_time_rests_on_the_ceiling_that_binds_it_and_on_no_other(
    measured: str, sequences: int, bound: str, basis: list[str]
):
    box = box_of()
    facts = {
        name: [fact.model_copy(update={"basis": "measured"}) for fact in known] if name == measured else known
        for name, known in box.device.facts.items()
    }
    told = box.model_copy(update={"device": box.device.model_copy(update={"facts": facts})})
    found = op(step.estimate(one_matmul(), told, ONE, decode(sequences, 0)), "dense_ffn.down")
    assert (found.bound, found.basis) == (bound, basis)


def test_a_shared_indexer_scores_nothing_and_limits_what_attention_reads():
    shape = glm5()
    groups = []
    for group in shape.layers:
        assert group.attention is not None
        assert group.attention.indexer is not None
        told = group.attention.indexer.model_copy(update={"shared": True})
        groups.append(group.model_copy(update={"attention": group.attention.model_copy(update={"indexer": told})}))
    estimate = step.estimate(shape.model_copy(update={"layers": groups}), box_of(), ONE, decode(1, 100_000))
    assert "indexer.scores" not in names(estimate)
    assert op(estimate, "attention.mla").read_bytes == pytest.approx(78 * 2049 * 576 * 2)


def test_biases_of_experts_change_neither_the_arithmetic_nor_the_kernels():
    shape = gpt_oss_like()
    first = shape.layers[0]
    bias = matrix("gate_up_bias", "routed_experts", 5760, 1).model_copy(update={"copies": 128, "active_copies": 4.0})
    with_bias = shape.model_copy(
        update={"layers": [first.model_copy(update={"matrices": [bias, *first.matrices]}), *shape.layers[1:]]}
    )
    box = box_of(fp4_flop_per_s=400e12)
    plain, biased = (step.estimate(one, box, ONE, decode(8, 0)) for one in (shape, with_bias))
    assert names(plain) == names(biased)
    found = op(biased, "routed_experts.gate_up")
    assert found.compute == "fp4"
    assert found.flops == pytest.approx(op(plain, "routed_experts.gate_up").flops, rel=0.001)


def test_matrices_of_one_name_are_all_counted():
    once = one_matmul()
    layer = once.layers[0]
    twice = once.model_copy(update={"layers": [layer.model_copy(update={"matrices": layer.matrices * 2})]})
    one, two = (op(step.estimate(shape, box_of(), ONE, decode(1, 0)), "dense_ffn.down") for shape in (once, twice))
    assert (two.flops, two.floor_s) == (pytest.approx(2 * one.flops), pytest.approx(2 * one.floor_s))


def test_eight_bit_integers_quantize_their_inputs_and_need_a_rate():
    q8 = Storage(name="q8_0", bits_per_weight=8.5, compute="int8")
    fast = step.estimate(llama_8b(q8), box_of(int8_flop_per_s=200e12), ONE, prefill(1, 2000))
    slow = step.estimate(llama_8b(q8), box_of(), ONE, prefill(1, 2000))
    assert {"elementwise.quantize"} <= names(fast)
    assert op(fast, "dense_ffn.gate_up").compute == "int8"
    assert op(slow, "dense_ffn.gate_up").floor_s == pytest.approx(2 * op(fast, "dense_ffn.gate_up").floor_s)
    assert any("no int8 rate" in note for note in slow.notes)


def test_a_device_without_arithmetic_that_stands_in_for_all_other_is_refused():
    with pytest.raises(UsageError, match="no rate of arithmetic in BF16 or FP32"):
        step.estimate(llama_8b(), box_of(bf16_flop_per_s=0, fp8_flop_per_s=1e14), ONE, decode(1, 0))


def test_experts_in_packed_formats_are_read_more_slowly_than_in_sixteen_bits():
    sixteen = step.estimate(glm5(BF16, sparse=False), box_of(8), Layout(tp=8), decode(64, 0))
    packed = step.estimate(glm5(FP8, sparse=False), box_of(8), Layout(tp=8), decode(64, 0))
    shares = [op(one, "routed_experts.gate_up").speed_of_light or 0 for one in (sixteen, packed)]
    assert shares[0] > 1.2 * shares[1]


def test_a_ceiling_that_rests_on_routing_says_so():
    assert any("routing" in note for note in step.estimate(glm5(), box_of(8), Layout(tp=8), decode(8, 0)).notes)
    assert not any("routing" in note for note in step.estimate(llama_8b(), box_of(), ONE, decode(8, 0)).notes)


def test_replicas_of_a_dense_model_do_not_talk():
    estimate = step.estimate(llama_8b(), box_of(4), Layout(dp=4), decode(64, 1000))
    assert not any(one.collective for one in estimate.ops)


def test_the_head_sees_every_token_in_decode_and_the_last_of_each_prompt():
    assert op(step.estimate(llama_8b(), box_of(), ONE, decode(8, 10)), "head").flops == 8 * 2 * 128256 * 4096
    assert op(step.estimate(llama_8b(), box_of(), ONE, prefill(2, 500)), "head").flops == 2 * 2 * 128256 * 4096


def test_verifying_drafts_reads_the_cache_once():
    one, four = (op(step.estimate(llama_8b(), box_of(), ONE, decode(8, 4000, new)), "attention.core") for new in (1, 4))
    assert four.read_bytes == pytest.approx(one.read_bytes, rel=0.001)
    assert four.flops == pytest.approx(4 * one.flops, rel=0.001)


def test_a_device_without_bandwidth_is_refused():
    nothing = device().model_copy(update={"facts": {}})
    with pytest.raises(UsageError, match="memory_read_bytes_per_s"):
        step.estimate(llama_8b(), Box(device=nothing, count=1), ONE, decode(1, 0))


SHAPES = [llama_8b(), llama_8b(FP8), glm5(), gpt_oss_like(), hybrid_like()]
points = st.builds(
    OperatingPoint,
    phase=st.sampled_from(["prefill", "decode"]),
    sequences=st.integers(1, 512),
    context_tokens=st.integers(0, 50_000),
    new_tokens=st.sampled_from([1, 4, 100]),
)
layouts = st.sampled_from([ONE, Layout(tp=2), Layout(tp=4, pp=2), Layout(tp=8), Layout(tp=2, dp=4, ep=8)])


@settings(max_examples=60, deadline=None)
@given(shape=st.sampled_from(SHAPES), point=points, layout=layouts, link=st.sampled_from(["NVLink 4", "PCIe 5.0 x16"]))
def test_no_time_is_below_its_floor_and_no_speed_above_the_ceiling(
    shape: ModelShape, point: OperatingPoint, layout: Layout, link: str
):
    estimate = step.estimate(shape, box_of(8, link=link, l2_bytes=50e6), layout, point)
    for one in estimate.ops:
        assert one.floor_s <= one.time_s.low <= one.time_s.mid <= one.time_s.high
    assert estimate.floor_s <= estimate.time_s.low
    assert estimate.tokens_per_s.high <= estimate.ceiling_tokens_per_s
    assert sum(estimate.share(one) for one in estimate.ops) <= 1 + 1e-9


@settings(max_examples=40, deadline=None)
@given(shape=st.sampled_from(SHAPES), point=points, layout=layouts, link=st.sampled_from(["NVLink 4", "PCIe 5.0 x16"]))
def test_a_quick_step_takes_as_long_as_its_estimate(
    shape: ModelShape, point: OperatingPoint, layout: Layout, link: str
):
    box = box_of(8, link=link, l2_bytes=50e6)
    full = step.estimate(shape, box, layout, point)
    found = quick.step_time(shape, box, ceilings.of(box.device), layout, point, routing=Routing())
    for end in ("low", "mid", "high"):
        assert getattr(found.time_s, end) == pytest.approx(getattr(full.time_s, end), rel=0.03)
    assert found.slowest_share == pytest.approx(quick.of_estimate(shape, layout, full).slowest_share, rel=1e-6)
    if layout.pp == 1:
        assert found.time_s.mid == pytest.approx(full.time_s.mid)
        assert found.bound == full.bound


@settings(max_examples=40, deadline=None)
@given(
    shape=st.sampled_from(SHAPES),
    point=points,
    layout=layouts,
    fact=st.sampled_from(["memory_read_bytes_per_s", "bf16_flop_per_s", "link_bytes_per_s", "l2_bytes"]),
    factor=st.floats(1, 8),
)
def test_a_better_device_is_never_slower(
    shape: ModelShape, point: OperatingPoint, layout: Layout, fact: str, factor: float
):
    usual = {"memory_read_bytes_per_s": 1e12, "bf16_flop_per_s": 100e12, "link_bytes_per_s": 50e9, "l2_bytes": 50e6}
    slow = step.estimate(shape, box_of(8, l2_bytes=50e6), layout, point)
    fast = step.estimate(shape, box_of(8, **{"l2_bytes": 50e6, fact: usual[fact] * factor}), layout, point)
    assert fast.floor_s <= slow.floor_s * (1 + 1e-9)
    assert fast.time_s.mid <= slow.time_s.mid * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(shape=st.sampled_from(SHAPES), sequences=st.integers(1, 300), more=st.integers(1, 300), layout=layouts)
def test_more_sequences_never_make_a_step_shorter(shape: ModelShape, sequences: int, more: int, layout: Layout):
    few, many = (
        step.estimate(shape, box_of(8), layout, decode(count, 1000)) for count in (sequences, sequences + more)
    )
    assert few.floor_s <= many.floor_s * (1 + 1e-9)
    assert few.time_s.mid <= many.time_s.mid * (1 + 1e-9)


def test_a_step_of_a_hundred_layers_is_estimated_in_milliseconds():
    groups = [
        LayerGroup(name=f"g{n}", count=1, attention=mixer, matrices=heads_of(mixer, 4096))
        for n in range(100)
        for mixer in [Attention(kind="full", heads=32, kv_heads=8, qk_head_dim=128, v_head_dim=128)]
    ]
    alike = glm5().model_copy(update={"layers": [group.model_copy(update={"count": 50}) for group in glm5().layers]})
    unlike = llama_8b().model_copy(update={"layers": groups})
    for shape, limit in ((alike, 0.05), (unlike, 0.5)):
        start = time.process_time()
        for _ in range(3):
            step.estimate(shape, box_of(8), Layout(tp=8), decode(64, 1000))
        # Ten times what is wanted on a quiet machine: this catches a change of order, not a busy neighbour.
        assert (time.process_time() - start) / 3 < limit
