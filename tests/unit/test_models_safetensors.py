"""Weight files are believed over config.json, from their headers alone, and differences are said."""

from __future__ import annotations

import json
import struct
from math import prod
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UsageError
from assay.models import load

HIDDEN, INNER, VOCAB, LAYERS, EXPERTS = 64, 128, 100, 2, 4
CONFIG = {
    "model_type": "deepseek_v3",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "moe_intermediate_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "first_k_dense_replace": 1,
    "n_routed_experts": EXPERTS,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "num_nextn_predict_layers": 1,
    "vocab_size": VOCAB,
    "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8"},
}
Tensors = dict[str, tuple[str, tuple[int, ...]]]
BYTES = {"BF16": 2, "F32": 4, "F8_E4M3": 1, "U8": 1}


def feed_forward(prefix: str, inner: int, dtype: str) -> Tensors:
    shapes = {"gate_proj": (inner, HIDDEN), "up_proj": (inner, HIDDEN), "down_proj": (HIDDEN, inner)}
    return {f"{prefix}.{name}.weight": (dtype, shape) for name, shape in shapes.items()}


def tensors(attention: str = "F8_E4M3", experts: str = "F8_E4M3") -> Tensors:
    """What a file of the model holds; head dimension 16."""
    found: Tensors = {
        "model.embed_tokens.weight": ("BF16", (VOCAB, HIDDEN)),
        "lm_head.weight": ("BF16", (VOCAB, HIDDEN)),
        "model.norm.weight": ("BF16", (HIDDEN,)),
    }
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            found[f"{prefix}.self_attn.{name}.weight"] = (attention, (HIDDEN, HIDDEN))
        for name in ("input_layernorm", "post_attention_layernorm"):
            found[f"{prefix}.{name}.weight"] = ("BF16", (HIDDEN,))
    found |= feed_forward("model.layers.0.mlp", INNER, "F8_E4M3")
    found |= feed_forward("model.layers.1.mlp.shared_experts", 32, "F8_E4M3")
    for expert in range(EXPERTS):
        found |= feed_forward(f"model.layers.1.mlp.experts.{expert}", 32, experts)
    found["model.layers.1.mlp.gate.weight"] = ("BF16", (EXPERTS, HIDDEN))
    found["model.layers.1.mlp.gate.e_score_correction_bias"] = ("BF16", (EXPERTS,))
    return found


def size_bytes(found: Tensors) -> int:
    return sum(BYTES[dtype] * prod(shape) for dtype, shape in found.values())


def write(path: Path, found: Tensors) -> None:
    """A safetensors file; its data is a hole."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in found.items():
        begin, end = end, end + BYTES[dtype] * prod(shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    content = json.dumps(header).encode()
    with path.open("wb") as sink:
        sink.write(struct.pack("<Q", len(content)) + content)
        sink.truncate(8 + len(content) + end)


def folder(tmp_path: Path, found: Tensors, **changes: Any) -> str:
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    write(tmp_path / "model.safetensors", found)
    return str(tmp_path)


def test_bytes_are_those_of_the_files_and_draft_layers_that_are_not_there_are_dropped(tmp_path: Path) -> None:
    shape = load(folder(tmp_path, tensors()))
    assert shape.weight_bytes == size_bytes(tensors())
    assert shape.draft_layers == []
    assert shape.assumed == ["the 1 draft layers of config.json are not in the weight files"]


def test_a_part_stored_otherwise_than_config_json_says_is_taken_from_the_files_and_said(tmp_path: Path) -> None:
    shape = load(folder(tmp_path, tensors(attention="BF16")))
    assert shape.weight_bytes == size_bytes(tensors(attention="BF16"))
    stored = {matrix.storage.name for group in shape.layers for matrix in group.matrices if matrix.part == "attention"}
    assert stored == {"bf16"}
    assert "attention: the weight files hold 65,536 bytes and are believed, config.json implies 32,768" in shape.assumed


def test_packed_weights_and_their_scales_give_the_bits(tmp_path: Path) -> None:
    found = tensors()
    for name in [name for name in found if ".experts." in name]:
        rows, cols = found[name][1]
        found[name] = ("U8", (rows, cols // 2))
        found[f"{name}_scale"] = ("F8_E4M3", (rows, cols // 16))
    quantization = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["re:.*(self_attn|mlp.[gdu]).*"]}
    shape = load(folder(tmp_path, found, quantization_config=quantization))
    experts = [matrix for matrix in shape.layers[1].matrices if matrix.part == "routed_experts"]
    assert {(matrix.storage.name, matrix.storage.bits_per_weight) for matrix in experts} == {("nvfp4", 4.5)}
    assert shape.weight_bytes == size_bytes(found)


def test_tensors_of_other_modalities_are_left_out_and_said(tmp_path: Path) -> None:
    found = {**tensors(), "visual.blocks.0.attn.qkv.weight": ("BF16", (10, 10))}
    shape = load(folder(tmp_path, found))
    assert shape.weight_bytes == size_bytes(tensors())
    assert any("200 bytes of the weight files are no part" in sentence for sentence in shape.assumed)


def test_a_head_that_is_not_in_the_files_is_the_embedding(tmp_path: Path) -> None:
    found = tensors()
    del found["lm_head.weight"]
    shape = load(folder(tmp_path, found))
    assert shape.tied_embeddings
    assert shape.weight_bytes == size_bytes(found)


def test_files_of_an_index_are_read_together(tmp_path: Path) -> None:
    found = tensors()
    halves = [dict(list(found.items())[::2]), dict(list(found.items())[1::2])]
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    path = folder(tmp_path, {})
    (tmp_path / "model.safetensors").unlink()
    for name, half in zip(names, halves, strict=True):
        write(tmp_path / name, half)
    places = {tensor: name for name, half in zip(names, halves, strict=True) for tensor in half}
    index = {"metadata": {"total_size": size_bytes(found)}, "weight_map": places}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert load(path).weight_bytes == size_bytes(found)
    (tmp_path / names[1]).unlink()
    assert any("1 weight files of the index are not here" in sentence for sentence in load(path).assumed)


def test_an_index_alone_is_held_against_what_config_json_implies(tmp_path: Path) -> None:
    path = folder(tmp_path, {})
    (tmp_path / "model.safetensors").unlink()
    index = {"metadata": {"total_size": 10_000_000}, "weight_map": dict.fromkeys(tensors(), "model-1.safetensors")}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    said = load(path).assumed
    assert any("the index says 10,000,000 bytes of weights, config.json implies" in sentence for sentence in said)


@pytest.mark.parametrize("place", ["../model.safetensors", "..", "a/b.safetensors"])
def test_an_index_that_points_out_of_its_folder_is_refused(tmp_path: Path, place: str) -> None:
    path = folder(tmp_path, {})
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"lm_head.weight": place}}))
    with pytest.raises(UsageError, match="not a file of its folder"):
        load(path)


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, {"lm_head.weight": ("BF16", (4, 4))})
    content = (tmp_path / "model.safetensors").read_bytes()
    for length in range(len(content)):
        (tmp_path / "model.safetensors").write_bytes(content[:length])
        with pytest.raises(UsageError, match=r"cut short or damaged|is no JSON"):
            load(path)
