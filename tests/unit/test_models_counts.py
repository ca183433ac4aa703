"""Models known by name have the parameters, active parameters and cache that their publishers state."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from benchmarks.parameter_counts import active, total

from assay.errors import UsageError
from assay.models import known, library, load
from assay.probes import devices
from assay.records.estimate import Layout
from assay.roofline import memory

FILES = sorted(library.FOLDER.glob("*.json"))
TOLERANCE = 0.005


def last_digit(value: int) -> int:
    """The worth of the last digit that is not zero, as published: 22 billion is known to a billion."""
    return 10 ** (len(str(value)) - len(str(value).rstrip("0")))


def test_thirty_models_of_each_kind_are_known_by_name_and_by_alias() -> None:
    assert len(FILES) >= 30
    assert {"gpt2", "glm-5-nvfp4", "zai-org/glm-5", "deepseek-r1", "minimax-m1"} <= set(known())
    assert load("zai-org/GLM-5").parameters == load("glm-5").parameters


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_total_parameters_are_those_published(path: Path) -> None:
    told = library.published(path)
    ours = total(load(path.stem), told.get("parameters_counted", ""))
    assert ours == pytest.approx(told["parameters"], rel=TOLERANCE)
    assert told["source"]


@pytest.mark.parametrize(
    "path", [path for path in FILES if library.published(path)["active_parameters"]], ids=lambda path: path.stem
)
def test_active_parameters_are_those_published_to_the_last_digit_given(path: Path) -> None:
    """Half a digit where publishers round, up to a whole one where they cut off (Qwen3-30B-A3B: 3.35 is "3.3")."""
    told = library.published(path)
    ours = active(load(path.stem), told["active_counts"])
    assert abs(ours - told["active_parameters"]) < last_digit(told["active_parameters"])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llama-3.1-405b", 405_853_388_800),
        ("qwen3-235b-a22b", 235_093_634_560),
        ("gpt-oss-120b", 116_829_156_672),
        ("gpt-oss-20b", 20_914_757_184),
        ("mixtral-8x22b", 140_620_634_112),
        ("gemma-2-27b", 27_227_128_320),
        ("phi-4", 14_659_507_200),
        ("deepseek-v2", 235_741_434_880),
        ("minimax-text-01", 456_089_655_296),
        ("gpt2", 124_439_808),
    ],
)
def test_where_publishers_count_every_weight_the_count_is_exact(name: str, parameters: int) -> None:
    assert load(name).parameters == parameters


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("glm-5", 753_864_139_008),
        ("glm-5.2", 753_329_940_480),
        ("glm-4.6", 356_785_898_816),
        ("glm-4.5-air", 109_227_310_848),
    ],
)
def test_draft_layers_make_up_the_rest_of_the_weight_files(name: str, parameters: int) -> None:
    assert total(load(name), "with draft layers") == parameters


def test_known_models_assume_nothing_but_that_encoders_are_left_out() -> None:
    said = {sentence for path in FILES for sentence in load(path.stem).assumed}
    only = "only the text model (text_config) is counted, "
    assert said == {only + "no encoder of images or sound", only + "its encoder of images counts in memory alone"}


def test_an_encoder_of_images_counts_in_memory_and_in_no_parameters_of_the_language_model() -> None:
    scout = load("llama-4-scout")
    assert scout.parameters + scout.encoders[0].parameters == 108_641_793_536  # as in its weight files
    box = devices.box("8xH200")
    with_encoder, without = (
        memory.budget(shape, box, Layout(tp=8)).weight_bytes
        for shape in (scout, scout.model_copy(update={"encoders": []}))
    )
    assert with_encoder - without == pytest.approx(scout.encoders[0].weight_bytes / 8)


def test_the_encoder_of_gemma_3_has_the_size_that_is_published(tmp_path: Path) -> None:
    told = json.loads((library.FOLDER / "gemma-3-27b.json").read_text(encoding="utf-8"))
    told["vision_config"] = {
        "model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
        "image_size": 896, "patch_size": 14,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(told), encoding="utf-8")
    shape = load(str(tmp_path))
    projection = 1152 + 1152 * shape.hidden
    assert shape.encoders[0].parameters - projection == 416_866_032  # "417M": arXiv 2503.19786, table 1


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [
        ("glm-5", 89_856),
        ("deepseek-v3", 70_272),  # DeepSeek-V3: 576 x 61 layers x 2 bytes, "70 KB per token"
        ("llama-3.1-8b", 131_072),
        ("llama-3.1-405b", 516_096),  # the same source: 516 KB
        ("qwen2.5-72b", 327_680),  # the same source: 327 KB
        ("gpt-oss-120b", 73_728),
        ("qwen3-next-80b-a3b", 24_576),
    ],
)
def test_the_cache_of_a_token_is_exact(name: str, kv_bytes: int) -> None:
    """BF16. The three comparisons: "Insights into DeepSeek-V3", arXiv 2505.09343, table 1."""
    assert load(name).cache_bytes_per_token(2.0, with_indexer=False) == kv_bytes


def test_the_pool_of_the_founding_box_holds_as_many_tokens_as_its_log_says() -> None:
    """voipmonitor/rtx6kpro: 29.32 GiB a GPU for 314,304 tokens, every rank holding the whole latent."""
    per_token = load("glm-5-nvfp4").cache_bytes_per_token(2.0)
    assert per_token == 100_152
    assert 314_304 * per_token / 2**30 == pytest.approx(29.32, abs=0.005)


def test_windows_states_and_indexers_stand_on_the_right_layers() -> None:
    counts = {name: {group.name: group.count for group in load(name).layers} for name in ("gemma-3-27b", "gpt-oss-20b")}
    assert counts == {"gemma-3-27b": {"sliding": 52, "full": 10}, "gpt-oss-20b": {"sliding moe": 12, "full moe": 12}}
    hybrid = {group.name: group for group in load("minimax-text-01").layers}
    assert (hybrid["linear moe"].count, hybrid["full moe"].count) == (70, 10)
    assert hybrid["linear moe"].attention is not None
    assert hybrid["linear moe"].attention.state_elements == 64 * 128 * 128
    indexer = load("glm-5").layers[0].attention
    assert indexer is not None
    assert indexer.indexer is not None
    assert (indexer.indexer.heads, indexer.indexer.top_k, indexer.indexer.cache_bytes_per_token) == (32, 2048, 132)


def test_the_quantized_flagship_keeps_all_but_its_routed_experts_in_bf16() -> None:
    shape = load("glm-5-nvfp4")
    stored = {
        (matrix.part, matrix.storage.name) for group in shape.layers for matrix in group.matrices if matrix.cols > 1
    }
    assert {part for part, name in stored if name == "nvfp4"} == {"routed_experts"}
    assert {part for part, name in stored if name == "bf16"} == {
        "attention",
        "indexer",
        "dense_ffn",
        "shared_experts",
        "router",
    }
    assert shape.weight_bytes_by_part()["routed_experts"] == 75 * 256 * 3 * 6144 * 2048 * 4.5 / 8
    assert shape.draft_layers == []


def test_tied_embeddings_are_counted_once_as_the_head() -> None:
    shape = load("llama-3.2-1b")
    assert shape.tied_embeddings
    assert [matrix.part for matrix in shape.outer] == ["head", "vector"]


def test_an_unknown_name_is_refused_with_the_near_ones() -> None:
    with pytest.raises(UsageError, match="'glm5' is no file and no model") as refused:
        load("glm5")
    assert "glm-5" in (refused.value.hint or "")


def test_our_data_holds_what_real_config_files_hold_and_our_own_keys_apart() -> None:
    for path in FILES:
        content = json.loads(path.read_text())
        assert {key for key in content if key.startswith("_")} == {"_aliases", "_published"}
        assert "model_type" in content
        assert math.isfinite(content["_published"]["parameters"])
