"""Where memory goes, which layouts are possible, and which part of each matrix a rank holds."""

from __future__ import annotations

import pytest

from assay import models
from assay.errors import UsageError
from assay.probes import devices
from assay.records.estimate import Layout
from assay.records.model_shape import Attention, Storage
from assay.roofline import layouts, memory, sharding, storages
from tests.unit.shapes import BF16, FP8, box_of, glm5, gpt_oss_like, hybrid_like, llama_8b, matrix

GQA = Attention(kind="full", heads=32, kv_heads=8, qk_head_dim=128, v_head_dim=128)
MLA = Attention(kind="mla", heads=64, kv_heads=64, qk_head_dim=256, v_head_dim=256, latent_rank=512, rope_dim=64)


@pytest.mark.parametrize(
    ("name", "attention", "share"),
    [
        ("q_proj", GQA, 1 / 16),
        ("k_proj", GQA, 1 / 8),
        ("v_proj", GQA, 1 / 8),
        ("o_proj", GQA, 1 / 16),
        ("qkv_proj", GQA, (32 / 16 + 16 / 8) / 48),
        ("q_a_proj", MLA, 1.0),
        ("kv_a_proj_with_mqa", MLA, 1.0),
        ("q_b_proj", MLA, 1 / 16),
        ("kv_b_proj", MLA, 1 / 16),
    ],
)
def test_a_rank_holds_its_heads_and_whole_what_all_heads_need(name: str, attention: Attention, share: float):
    one = matrix(name, "attention", 4096, 4096)
    assert sharding.local_share(one, attention, Layout(tp=16)) == pytest.approx(share)


@pytest.mark.parametrize(
    ("name", "part", "kernel"),
    [
        ("q_proj", "attention", "attention.qkv_proj"),
        ("kv_a_proj_with_mqa", "attention", "attention.qkv_a_proj"),
        ("kv_b_proj", "attention", "attention.kv_b_proj"),
        ("up_proj", "routed_experts", "routed_experts.gate_up"),
        ("gate_up_bias", "routed_experts", "routed_experts.gate_up"),
        ("ffn_down_exps", "routed_experts", "routed_experts.down"),
        ("gate", "router", "router.gate"),
        ("lm_head", "head", "head.lm_head"),
    ],
)
def test_matrices_that_engines_fuse_are_one_operation(name: str, part: str, kernel: str):
    assert sharding.kernel_name(name, part) == kernel  # type: ignore[arg-type]


def test_weights_of_all_ranks_are_at_least_the_models():
    whole = glm5().weight_bytes
    spread = sharding.weight_bytes_per_rank(glm5(), Layout(tp=8))
    assert whole <= 8 * spread <= 1.12 * whole, "down projections, routers and indexers stand on each rank"


def test_the_budget_adds_up():
    found = memory.budget(llama_8b(), box_of(), Layout(), memory_fraction=0.9)
    parts = found.weight_bytes + found.activation_bytes + found.graph_bytes + found.reserved_bytes + found.cache_bytes
    assert parts == pytest.approx(found.device_bytes)
    assert found.cache_bytes_per_token == 32 * 8 * 256 * 2 == 131_072
    assert found.cache_tokens == int(found.cache_bytes / 131_072)


def test_a_model_that_does_not_fit_says_how_much_is_missing():
    found = memory.budget(glm5(), box_of(), Layout())
    assert not found.fits
    assert found.cache_tokens == 0
    assert "missing" in found.notes[0]


def test_dp_attention_multiplies_the_tokens_of_an_mla_cache():
    tp8 = memory.budget(glm5(), box_of(8), Layout(tp=8))
    dp8 = memory.budget(glm5(), box_of(8, memory_bytes=200e9), Layout(dp=8, ep=8))
    assert tp8.cache_bytes_per_token == dp8.cache_bytes_per_token == 100_152
    assert dp8.cache_tokens == 8 * int(dp8.cache_bytes / 100_152)


def test_tp_splits_a_gqa_cache_while_there_are_heads():
    assert [memory.cache_bytes_per_token(llama_8b(), Layout(tp=tp)) for tp in (1, 8, 16)] == [131_072, 16_384, 16_384]


def test_an_eight_bit_cache_holds_twice_the_tokens():
    sixteen, eight = (
        memory.budget(llama_8b(), box_of(), Layout(), cache_bytes_per_element=one).cache_tokens for one in (2.0, 1.0)
    )
    assert eight == pytest.approx(2 * sixteen, abs=2)


@pytest.mark.parametrize("fraction", [0, -0.1, 1.01])
def test_a_fraction_that_is_none_is_refused(fraction: float):
    with pytest.raises(UsageError, match="fraction"):
        memory.budget(llama_8b(), box_of(), Layout(), memory_fraction=fraction)


def test_layers_with_a_window_or_a_state_are_pointed_out():
    assert any("window" in note for note in memory.budget(gpt_oss_like(), box_of(2), Layout(tp=2)).notes)
    assert any("linear" in note for note in memory.budget(hybrid_like(), box_of(), Layout()).notes)


@pytest.mark.parametrize(
    ("shape", "layout", "word"),
    [
        (llama_8b(), Layout(tp=16), "16 devices"),
        (llama_8b(), Layout(tp=3), "32 attention heads"),
        (llama_8b(), Layout(tp=2, ep=2), "has none"),
        (glm5(), Layout(tp=4, ep=3), "does not divide"),
        (hybrid_like(), Layout(tp=6), "16 attention heads"),
        (llama_8b().model_copy(update={"layers": llama_8b().layers[:1]}), Layout(pp=8), None),
        (gpt_oss_like(), Layout(tp=8), None),
        (glm5(FP8), Layout(tp=8), None),
        (glm5(FP8), Layout(tp=32), "share a scale"),
        (gpt_oss_like(), Layout(tp=8, ep=8), None),
        (glm5(), Layout(tp=8), None),
        (llama_8b(FP8), Layout(tp=8), None),
    ],
)
def test_what_does_not_divide_is_named_with_its_numbers(shape, layout: Layout, word: str | None):
    told = layouts.check(shape, box_of(32 if layout.tp == 32 else 8), layout)
    assert told is None if word is None else word in (told or "")


def test_key_value_heads_have_to_divide_or_be_divided():
    odd = llama_8b().layers[0].attention.model_copy(update={"heads": 48, "kv_heads": 3})
    shape = llama_8b().model_copy(
        update={"layers": [llama_8b().layers[0].model_copy(update={"attention": odd})], "hidden": 4096}
    )
    assert "3 key/value heads" in (layouts.check(shape, box_of(8), Layout(tp=2)) or "")


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("nvfp4", 16),
        ("mxfp4", 32),
        ("fp8-block128", 128),
        ("int4-g128", 128),
        ("Q4_K", 256),
        ("Q8_0", 32),
        ("IQ2_XXS", 256),
        ("bf16", 1),
    ],
)
def test_how_many_weights_share_a_scale(name: str, group: int):
    assert layouts.group_size(matrix("x", "dense_ffn", 512, 512, Storage(name=name, bits_per_weight=8))) == group


@pytest.mark.parametrize(
    ("layout", "width", "gigabytes"),
    [
        # 90 groups of 32: eight ranks get twelve each (384), four 23 (736, a tile more is 768); 61 GB of weights.
        (Layout(tp=8), 384, 128 * 36 * 3 * 2880 * (384 - 360) * 4.25 / 8 / 1e9),
        (Layout(tp=4), 768, 128 * 36 * 3 * 2880 * (768 - 720) * 4.25 / 8 / 1e9),
    ],
)
def test_experts_in_mxfp4_are_padded_and_the_padding_is_told(layout: Layout, width: int, gigabytes: float):
    shape = gpt_oss_like()
    assert layouts.check(shape, box_of(8), layout) is None
    assert sharding.padding(shape, layout) == (2880, width, pytest.approx(gigabytes * 1e9))
    budget = memory.budget(shape, box_of(8), layout)
    assert any(f"padded to {width}" in note and f"{gigabytes:.1f} GB" in note for note in budget.notes)
    spread = sharding.weight_bytes_per_rank(shape, Layout(tp=layout.tp, ep=layout.tp))
    assert budget.weight_bytes == pytest.approx(spread + gigabytes * 1e9)


def test_whole_experts_on_each_rank_need_no_padding():
    assert sharding.padding(gpt_oss_like(), Layout(tp=8, ep=8)) is None
    assert sharding.padding(glm5(), Layout(tp=8)) is None


def test_a_shared_indexer_has_no_keys_of_its_own():
    shape = glm5()
    first = shape.layers[0]
    assert first.attention is not None
    assert first.attention.indexer is not None
    shared = first.attention.indexer.model_copy(update={"shared": True})
    told = first.model_copy(update={"attention": first.attention.model_copy(update={"indexer": shared})})
    fewer = shape.model_copy(update={"layers": [told, shape.layers[1]]})
    lost = memory.cache_bytes_per_token(shape, Layout()) - memory.cache_bytes_per_token(fewer, Layout())
    assert lost == pytest.approx(3 * 132)


@pytest.mark.parametrize(
    ("name", "tokens"), [("qwen3-30b-a3b", 744_688), ("llama-3.1-8b", 919_824)], ids=["mixture", "dense"]
)
def test_the_pools_that_vllm_made_on_an_h200_come_out_within_three_percent(name: str, tokens: int):
    budget = memory.budget(models.load(name), devices.box("h200"), Layout(), memory_fraction=0.92)
    assert budget.cache_tokens == pytest.approx(tokens, rel=0.03)


def test_formats_by_part_leave_biases_and_what_is_not_named():
    stored = storages.stored_by_part(gpt_oss_like(), {"default": "fp8", "routed_experts": "nvfp4", "head": "bf16"})
    by_part = {m.part: m.storage.name for _, m in stored.matrices()}
    assert by_part == {
        "attention": "fp8",
        "routed_experts": "nvfp4",
        "router": "bf16",
        "embedding": "bf16",
        "head": "bf16",
    }
    assert not any(m.part == "indexer" for _, m in storages.without_indexer(glm5()).matrices())


def test_possible_layouts_pass_the_check_and_fit():
    found = layouts.possible(glm5(), box_of(8))
    assert Layout(tp=8) in found
    assert Layout(tp=8, ep=8) in found
    assert Layout(dp=8, ep=8) not in found, "26 GB of attention on each device of 80 GB leave no room"
    assert all(layout.devices == 8 for layout in found)


def test_a_format_shrinks_only_what_has_more_bits():
    fp8 = storages.STORAGES["fp8-block128"]
    shape = storages.stored_as(glm5(), fp8)
    assert {m.storage.name for _, m in shape.matrices() if m.part == "routed_experts"} == {"nvfp4"}
    assert {m.storage.name for _, m in shape.matrices() if m.part == "attention"} == {"fp8-block128"}
    assert {m.storage for _, m in shape.matrices() if m.part == "head"} == {BF16}
    assert storages.would_shrink(llama_8b(), fp8)
    assert not storages.would_shrink(llama_8b(FP8), fp8)
