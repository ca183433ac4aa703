"""config.json files are read whatever spelling they use; what cannot be assumed is asked for by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UsageError
from assay.models import load

TINY: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
DENSE_LAYER = 64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128 + 2 * 64
OUTER = 2 * 100 * 64 + 64


def folder(tmp_path: Path, *without: str, **changes: Any) -> str:
    content = {key: value for key, value in {**TINY, **changes}.items() if key not in without}
    (tmp_path / "config.json").write_text(json.dumps(content))
    return str(tmp_path)


def test_every_parameter_of_a_dense_model_is_counted(tmp_path: Path) -> None:
    shape = load(folder(tmp_path))
    assert shape.parameters == 4 * DENSE_LAYER + OUTER
    assert (shape.name, shape.num_layers, shape.assumed) == (tmp_path.name, 4, [])


def test_a_folder_and_its_config_json_are_the_same_model(tmp_path: Path) -> None:
    path = folder(tmp_path)
    assert load(path).model_dump() == load(f"{path}/config.json").model_dump()


def test_older_spellings_of_the_keys_mean_the_same(tmp_path: Path) -> None:
    old = {"n_embd": 64, "n_inner": 256, "n_layer": 2, "n_head": 4, "n_positions": 512, "vocab_size": 100}
    new = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}
    (tmp_path / "a.json").write_text(json.dumps({"model_type": "gpt2", **old}))
    (tmp_path / "b.json").write_text(
        json.dumps({"architectures": ["GPT2LMHeadModel"], "max_position_embeddings": 512, "vocab_size": 100, **new})
    )
    assert load(str(tmp_path / "a.json")).parameters == load(str(tmp_path / "b.json")).parameters


@pytest.mark.parametrize(
    ("model_type", "keys", "more"),
    [
        ("llama", {"attention_bias": True}, 64 + 64 + 64),
        ("llama", {"mlp_bias": True}, 2 * 128 + 64),
        ("qwen2", {}, 64 + 64),
        ("qwen3", {"head_dim": 16}, 2 * 16),
        ("olmo2", {}, 64 + 32),
        ("gpt_oss", {}, 64 + 64 + 64 + 4),
        ("gemma2", {"head_dim": 16}, 2 * 64),
    ],
)
def test_biases_norms_and_sinks_of_a_family_are_counted(
    tmp_path: Path, model_type: str, keys: dict[str, Any], more: int
) -> None:
    shape = load(folder(tmp_path, model_type=model_type, **keys))
    assert shape.parameters == 4 * (DENSE_LAYER + more) + OUTER


def test_the_first_layers_of_a_mixture_may_be_dense_and_shared_experts_serve_every_token(tmp_path: Path) -> None:
    shape = load(folder(tmp_path, model_type="glm4_moe", first_k_dense_replace=1, n_shared_experts=2, **EXPERTS))
    assert {group.name: group.count for group in shape.layers} == {"dense": 1, "moe": 3}
    parts = shape.parameters_by_part()
    assert parts["routed_experts"] == 3 * 8 * 3 * 64 * 32
    assert parts["shared_experts"] == 3 * 3 * 64 * 64
    idle = 3 * 6 * 3 * 64 * 32
    assert shape.active_parameters == shape.parameters - idle


@pytest.mark.parametrize(
    ("law", "layers"),
    [
        ({"decoder_sparse_step": 2}, [1, 3]),
        ({"mlp_only_layers": [0, 3]}, [1, 2]),
        ({"first_k_dense_replace": 1, "moe_layer_freq": 2}, [2]),
        ({"moe_layer_freq": [0, 1, 1, 0]}, [1, 2]),
        ({"mlp_layer_types": ["dense", "sparse", "dense", "sparse"]}, [1, 3]),
        ({"interleave_moe_layer_step": 4}, [3]),
        ({"moe_layers": [2]}, [2]),
        ({}, [0, 1, 2, 3]),
    ],
)
def test_every_way_of_spreading_experts_over_layers_is_read(
    tmp_path: Path, law: dict[str, Any], layers: list[int]
) -> None:
    shape = load(folder(tmp_path, model_type="qwen3_moe", **EXPERTS, **law))
    assert {group.name: group.count for group in shape.layers}["moe"] == len(layers)


@pytest.mark.parametrize(
    ("model_type", "law", "windowed"),
    [
        ("mistral", {"sliding_window": 128}, 4),
        ("mistral", {"sliding_window": None}, 0),
        ("mistral", {"sliding_window": 4096}, 0),
        ("gemma2", {"sliding_window": 128}, 2),
        ("gemma3_text", {"sliding_window": 128, "sliding_window_pattern": 4}, 3),
        ("qwen2", {"sliding_window": 128, "use_sliding_window": False}, 0),
        ("qwen2", {"sliding_window": 128, "use_sliding_window": True, "max_window_layers": 3}, 1),
        ("llama4_text", {"attention_chunk_size": 128}, 3),
        ("llama4_text", {"attention_chunk_size": 128, "no_rope_layers": [1, 0, 1, 0]}, 2),
        ("olmo3", {"sliding_window": 128, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]}, 3),
    ],
)
def test_every_way_of_giving_windows_to_layers_is_read(
    tmp_path: Path, model_type: str, law: dict[str, Any], windowed: int
) -> None:
    shape = load(folder(tmp_path, model_type=model_type, **law))
    found = sum(group.count for group in shape.layers if group.attention and group.attention.window == 128)
    assert found == windowed


def test_indexers_may_be_shared_between_layers(tmp_path: Path) -> None:
    latent = {"q_lora_rank": 32, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8}
    index = {"index_topk": 64, "index_n_heads": 2, "index_head_dim": 128, "index_topk_freq": 2}
    shape = load(folder(tmp_path, model_type="glm_moe_dsa", index_skip_topk_offset=1, **latent, **index))
    uses = {
        group.attention.indexer.shared: (group.count, group.attention.indexer.cache_bytes_per_token)
        for group in shape.layers
        if group.attention and group.attention.indexer
    }
    assert uses == {False: (2, 132), True: (2, 0)}
    assert shape.parameters_by_part()["indexer"] == 2 * (256 * 32 + 128 * 64 + 2 * 64)
    assert shape.cache_bytes_per_token(2.0) == 4 * 20 * 2 + 2 * 132


def test_the_text_model_inside_a_wrapper_is_read_and_that_is_said(tmp_path: Path) -> None:
    inner = {key: value for key, value in TINY.items() if key not in {"model_type", "torch_dtype"}}
    wrapped = {"model_type": "qwen2_5_vl", "text_config": inner, "vision_config": {"depth": 3}, "dtype": "float16"}
    (tmp_path / "config.json").write_text(json.dumps(wrapped))
    shape = load(str(tmp_path))
    assert shape.parameters == 4 * (DENSE_LAYER + 128) + OUTER
    assert shape.outer[0].storage.name == "fp16"
    assert shape.assumed == ["only the text model (text_config) is counted, no encoder of images or sound"]


def test_an_unknown_architecture_is_read_and_every_assumption_is_said(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        "tie_word_embeddings",
        "num_key_value_heads",
        "torch_dtype",
        model_type="strange",
        memory_slots=7,
        max_position_embeddings=512,
    )
    shape = load(path)
    assert shape.parameters == 4 * (DENSE_LAYER + 2 * 64 * 32) + OUTER
    said = "\n".join(shape.assumed)
    for words in (
        "'strange' is not known",
        "num_key_value_heads",
        "tie_word_embeddings",
        "torch_dtype",
        "memory_slots",
    ):
        assert words in said


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"])
def test_a_key_that_cannot_be_assumed_is_named_with_its_file(tmp_path: Path, key: str) -> None:
    with pytest.raises(UsageError, match=f"config.json has no {key}"):
        load(folder(tmp_path, key))


def test_experts_without_a_number_to_choose_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="8 experts and no num_experts_per_tok"):
        load(folder(tmp_path, num_experts=8))


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("hidden_size", -1, "want a whole number"),
        ("hidden_size", "64", "want a whole number"),
        ("hidden_size", 10**40, "a number of 133 bits"),
        ("num_hidden_layers", 10**6, "want a whole number from 1 to 512"),
        ("num_key_value_heads", 3, "a divisor of the 4 heads"),
        ("num_attention_heads", 5, "a divisor of the hidden size 64"),
        ("layer_types", ["full_attention"], "each of the 4 layers, not 1"),
        ("layer_types", ["memory"] * 4, "full_, sliding_, chunked_ or linear_attention"),
        ("tie_word_embeddings", "yes", "true or false"),
        ("quantization_config", "fp8", "an object"),
        ("mamba_d_state", 16, "state-space layers"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_place(tmp_path: Path, key: str, value: Any, told: str) -> None:
    with pytest.raises(UsageError, match=f"config.json.*{key}") as refused:
        load(folder(tmp_path, **{key: value}))
    assert told in refused.value.message


def test_a_folder_without_a_model_and_a_file_without_json_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"neither config\.json nor a GGUF"):
        load(str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "lla')
    with pytest.raises(UsageError, match="is no JSON"):
        load(str(tmp_path))


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").symlink_to(tmp_path / "b.gguf")
    (tmp_path / "b.gguf").symlink_to(tmp_path / "a.gguf")
    (tmp_path / "config.json").symlink_to(tmp_path / "config.json")
    for name in ("a.gguf", "config.json", ""):
        with pytest.raises(UsageError):
            load(str(tmp_path / name))
