"""Every way of quantizing is read: bits with their scales, what the matmul runs in, and what is left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UsageError
from assay.models import load
from assay.records.model_shape import ModelShape, Storage

CONFIG: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 256,
    "intermediate_size": 512,
    "moe_intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "mlp_only_layers": [0],
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}


def quantized(tmp_path: Path, quantization: dict[str, Any], *, beside: bool = False) -> ModelShape:
    config = CONFIG if beside else {**CONFIG, "quantization_config": quantization}
    (tmp_path / "config.json").write_text(json.dumps(config))
    if beside:
        (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": quantization}))
    return load(str(tmp_path))


def storages(shape: ModelShape, layer: str = "moe") -> dict[str, Storage]:
    group = next(group for group in shape.layers if group.name == layer)
    return {matrix.part: matrix.storage for matrix in group.matrices}


GROUP_OF_INT4 = {"num_bits": 4, "type": "int", "group_size": 32, "symmetric": True}
GROUP_OF_FP8 = {"num_bits": 8, "type": "float", "strategy": "channel"}


@pytest.mark.parametrize(
    ("quantization", "name", "bits", "compute"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block128", 8 + 32 / 128**2, "fp8"),
        ({"quant_method": "fp8"}, "fp8", 8, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8", 8, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", 4.5, "fp4"),
        ({"quant_algo": "FP8"}, "fp8", 8, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4"}, "nvfp4", 4.5, "bf16"),
        ({"quant_method": "mxfp4"}, "mxfp4", 4.25, "bf16"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, "int4-g128", 4.15625, "bf16"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 64, "sym": True}, "int4-g64", 4.3125, "bf16"),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8", 8, "bf16"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "bnb-int8", 8, "int8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "bnb-nf4", 4.5, "bf16"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": GROUP_OF_INT4}}},
            "int4-g32",
            4.5,
            "bf16",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "a": {"weights": GROUP_OF_FP8, "input_activations": {"num_bits": 8, "type": "float"}}
                },
            },
            "fp8",
            8,
            "fp8",
        ),
        ({"quant_method": "new-thing", "bits": 4, "group_size": 32}, "int4-g32", 4.625, "bf16"),
    ],
)
def test_experts_are_stored_as_the_method_says(
    tmp_path: Path, quantization: dict[str, Any], name: str, bits: float, compute: str
) -> None:
    storage = storages(quantized(tmp_path, quantization))["routed_experts"]
    assert (storage.name, storage.bits_per_weight, storage.compute) == (name, bits, compute)


def test_router_norms_and_embedding_stay_as_they_were(tmp_path: Path) -> None:
    shape = quantized(tmp_path, {"quant_method": "fp8", "weight_block_size": [128, 128]})
    found = storages(shape)
    assert {part: found[part].name for part in ("attention", "router", "vector")} == {
        "attention": "fp8-block128",
        "router": "bf16",
        "vector": "bf16",
    }
    assert {matrix.storage.name for matrix in shape.outer} == {"bf16"}


def test_mxfp4_quantizes_experts_alone(tmp_path: Path) -> None:
    found = storages(quantized(tmp_path, {"quant_method": "mxfp4"}))
    assert (found["attention"].name, found["routed_experts"].name) == ("bf16", "mxfp4")


@pytest.mark.parametrize(
    "names",
    [
        ["model.layers.1.self_attn*", "model.layers.2.self_attn*", "model.layers.0.*", "lm_head"],
        ["language_model.model.layers.*.self_attn", "model.language_model.layers.0*", "lm_head"],
        ["re:.*self_attn.*", "re:.*layers\\.0\\..*", "lm_head"],
        ["self_attn", "model.layers.0", "lm_head"],
    ],
)
@pytest.mark.parametrize("key", ["ignore", "exclude_modules", "modules_to_not_convert"])
def test_modules_that_are_listed_are_left_alone(tmp_path: Path, names: list[str], key: str) -> None:
    shape = quantized(tmp_path, {"quant_algo": "NVFP4", key: names}, beside=True)
    assert {storage.name for storage in storages(shape, "dense").values()} == {"bf16"}
    found = storages(shape)
    assert (found["attention"].name, found["routed_experts"].name) == ("bf16", "nvfp4")
    assert shape.outer[1].storage.name == "bf16"


def test_layers_that_are_quantized_otherwise_are_a_group_of_their_own(tmp_path: Path) -> None:
    shape = quantized(tmp_path, {"quant_algo": "NVFP4", "ignore": ["model.layers.2.mlp*"]})
    assert {group.name: group.count for group in shape.layers} == {"dense": 1, "moe": 1, "moe #2": 1}


def test_a_name_is_matched_whole_so_that_gate_is_not_gate_proj(tmp_path: Path) -> None:
    found = storages(quantized(tmp_path, {"quant_method": "fp8", "modules_to_not_convert": ["gate", "lm_head"]}))
    assert (found["router"].name, found["routed_experts"].name) == ("bf16", "fp8")


def test_a_mixed_model_lists_each_module(tmp_path: Path) -> None:
    layers = {
        "model.layers.1.self_attn.q_proj": {"quant_algo": "FP8"},
        "model.layers.1.mlp.experts": {"quant_algo": "NVFP4", "group_size": 16},
    }
    shape = quantized(tmp_path, {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers}, beside=True)
    mixed = next(group for group in shape.layers if any(matrix.storage.name == "nvfp4" for matrix in group.matrices))
    assert {matrix.name: matrix.storage.name for matrix in mixed.matrices if matrix.storage.name != "bf16"} == {
        "q_proj": "fp8",
        "gate_proj": "nvfp4",
        "up_proj": "nvfp4",
        "down_proj": "nvfp4",
    }


@pytest.mark.parametrize(
    ("dtype", "name", "bits"),
    [("float32", "fp32", 32), ("float16", "fp16", 16), ("torch.bfloat16", "bf16", 16), ("auto", "bf16", 16)],
)
def test_without_quantization_the_dtype_counts(tmp_path: Path, dtype: str, name: str, bits: int) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "torch_dtype": dtype}))
    shape = load(str(tmp_path))
    assert (shape.outer[0].storage.name, shape.outer[0].storage.bits_per_weight) == (name, bits)
    assert bool(shape.assumed) == (dtype == "auto")


@pytest.mark.parametrize(
    ("quantization", "told"),
    [
        ({"quant_method": "quarks"}, "'quarks' is not known, and no key gives the bits"),
        ({"quant_method": "gptq"}, "has no quantization_config.bits"),
        ({"quant_method": "fp8", "weight_block_size": [0]}, "rows and columns of a block"),
        ({"quant_algo": "FP3"}, "quant_algo: want one of"),
        ({"quant_method": "compressed-tensors", "config_groups": {}}, "has no quantization_config.config_groups"),
        ({"quant_algo": "NVFP4", "ignore": ["re:(a+)+$"]}, "is not understood: too long or too deep"),
        ({"quant_algo": "NVFP4", "ignore": ["re:("]}, "is not understood"),
        ({"quant_algo": "NVFP4", "ignore": [3]}, "a list of texts"),
    ],
)
def test_a_quantization_that_cannot_be_read_is_refused(tmp_path: Path, quantization: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        quantized(tmp_path, quantization)
    assert told in refused.value.message
