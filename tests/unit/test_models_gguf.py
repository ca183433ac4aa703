"""A GGUF's tensors are counted exactly, type by type; attention comes from its metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from assay.engines.cache import cache_folder
from assay.engines.embedded_model import MEMBER
from assay.errors import UsageError
from assay.models import load
from assay.models.gguf_types import TYPES
from assay.records.model_shape import ModelShape

HIDDEN, VOCAB, LAYERS = 256, 512, 4
Type = gguf.GGMLQuantizationType
Tensors = dict[str, tuple[tuple[int, ...], Type]]
"""Shapes outermost first, as numpy has them."""


def dense_layer(layer: int, kind: Type = Type.Q4_K) -> Tensors:
    prefix = f"blk.{layer}"
    return {
        f"{prefix}.attn_norm.weight": ((HIDDEN,), Type.F32),
        f"{prefix}.attn_q.weight": ((HIDDEN, HIDDEN), kind),
        f"{prefix}.attn_k.weight": ((128, HIDDEN), kind),
        f"{prefix}.attn_v.weight": ((128, HIDDEN), Type.Q6_K),
        f"{prefix}.attn_output.weight": ((HIDDEN, HIDDEN), kind),
        f"{prefix}.ffn_norm.weight": ((HIDDEN,), Type.F32),
        f"{prefix}.ffn_gate.weight": ((768, HIDDEN), kind),
        f"{prefix}.ffn_up.weight": ((768, HIDDEN), kind),
        f"{prefix}.ffn_down.weight": ((HIDDEN, 768), Type.Q5_K),
    }


def expert_layer(layer: int) -> Tensors:
    prefix = f"blk.{layer}"
    found = {name: value for name, value in dense_layer(layer).items() if "ffn_" not in name or "norm" in name}
    return {
        **found,
        f"{prefix}.ffn_gate_inp.weight": ((8, HIDDEN), Type.F32),
        f"{prefix}.exp_probs_b.bias": ((8,), Type.F32),
        f"{prefix}.ffn_gate_exps.weight": ((8, 64, HIDDEN), Type.MXFP4),
        f"{prefix}.ffn_up_exps.weight": ((8, 64, HIDDEN), Type.MXFP4),
        f"{prefix}.ffn_down_exps.weight": ((8, HIDDEN, 64), Type.Q8_0),
        f"{prefix}.ffn_down_exps.bias": ((8, HIDDEN), Type.F32),
        f"{prefix}.ffn_gate_shexp.weight": ((64, HIDDEN), Type.IQ4_NL),
        f"{prefix}.ffn_up_shexp.weight": ((64, HIDDEN), Type.IQ4_NL),
        f"{prefix}.ffn_down_shexp.weight": ((HIDDEN, 64), Type.Q5_1),
    }


def model(layers: list[Tensors], *, head: bool = True) -> Tensors:
    outer: Tensors = {
        "token_embd.weight": ((VOCAB, HIDDEN), Type.Q6_K),
        "output_norm.weight": ((HIDDEN,), Type.F32),
    }
    if head:
        outer["output.weight"] = ((VOCAB, HIDDEN), Type.Q8_0)
    return {name: value for part in (outer, *layers) for name, value in part.items()}


def write(path: Path, arch: str, tensors: Tensors, keys: dict[str, Any] | None = None) -> Path:
    """A file whose tensors hold zeros."""
    writer = gguf.GGUFWriter(path, arch)
    writer.add_context_length(4096)
    writer.add_embedding_length(HIDDEN)
    for key, value in {"attention.head_count": 4, "attention.head_count_kv": 2, **(keys or {})}.items():
        if value is None:
            continue
        if isinstance(value, list):
            writer.add_array(f"{arch}.{key}", value)
        else:
            writer.add_uint32(f"{arch}.{key}", value)
    for name, (shape, kind) in tensors.items():
        if kind in {Type.F32, Type.F16}:
            writer.add_tensor(name, np.zeros(shape, np.float32 if kind == Type.F32 else np.float16))
        else:
            raw = np.zeros(gguf.quant_shape_to_byte_shape(shape, kind), np.uint8)
            writer.add_tensor(name, raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def file_bytes(path: Path) -> int:
    """Bytes of all tensors, by the reader of the gguf package."""
    return sum(int(tensor.n_bytes) for tensor in gguf.GGUFReader(path).tensors)


def file_elements(path: Path) -> int:
    return sum(int(tensor.n_elements) for tensor in gguf.GGUFReader(path).tensors)


def exact(path: Path) -> ModelShape:
    shape = load(str(path))
    draft = [(group.count, matrix) for group in shape.draft_layers for matrix in group.matrices]
    assert shape.weight_bytes + sum(count * matrix.weight_bytes for count, matrix in draft) == file_bytes(path)
    assert shape.parameters + sum(count * matrix.parameters for count, matrix in draft) == file_elements(path)
    return shape


def test_our_table_of_types_is_that_of_the_gguf_package() -> None:
    theirs = {int(kind): (kind.name, *size) for kind, size in gguf.GGML_QUANT_SIZES.items()}
    assert theirs == TYPES


@pytest.mark.parametrize("arch", ["llama", "qwen2", "qwen3", "olmo2", "gemma2", "gemma3", "phi3", "unheard-of"])
def test_bytes_of_a_dense_model_are_those_of_its_tensors(tmp_path: Path, arch: str) -> None:
    path = write(tmp_path / "m.gguf", arch, model([dense_layer(layer) for layer in range(LAYERS)]))
    shape = exact(path)
    assert (shape.architecture, shape.num_layers, shape.hidden, shape.vocab) == (arch, LAYERS, HIDDEN, VOCAB)
    assert shape.cache_bytes_per_token() == LAYERS * 2 * (64 + 64) * 2
    assert {matrix.storage.compute for _, matrix in shape.matrices()} == {"int8", "fp32"}


@pytest.mark.parametrize("arch", ["qwen3moe", "olmoe", "gpt-oss", "glm4moe", "llama4", "deepseek"])
def test_bytes_of_a_mixture_are_those_of_its_tensors(tmp_path: Path, arch: str) -> None:
    layers = [dense_layer(0), *(expert_layer(layer) for layer in range(1, LAYERS))]
    path = write(tmp_path / "m.gguf", arch, model(layers), {"expert_count": 8, "expert_used_count": 2})
    shape = exact(path)
    assert (shape.num_experts, shape.top_k) == (8, 2)
    assert {group.name: group.count for group in shape.layers} == {"dense": 1, "moe": 3}
    idle = 3 * 6 * (3 * 64 * HIDDEN + HIDDEN)
    assert shape.active_parameters == shape.parameters - idle


def test_layers_of_other_types_are_groups_of_their_own(tmp_path: Path) -> None:
    layers = [dense_layer(layer, Type.Q6_K if layer < 2 else Type.Q4_K) for layer in range(LAYERS)]
    shape = exact(write(tmp_path / "m.gguf", "llama", model(layers)))
    assert {group.name: group.count for group in shape.layers} == {"dense": 2, "dense #2": 2}


def test_a_head_that_is_missing_is_the_embedding(tmp_path: Path) -> None:
    shape = exact(write(tmp_path / "m.gguf", "llama", model([dense_layer(0)], head=False)))
    assert shape.tied_embeddings
    assert shape.parameters_by_part()["head"] == VOCAB * HIDDEN


def test_draft_layers_are_apart(tmp_path: Path) -> None:
    extra: Tensors = {"blk.1.nextn.eh_proj.weight": ((HIDDEN, 2 * HIDDEN), Type.Q8_0)}
    tensors = model([dense_layer(0), {**dense_layer(1), **extra}])
    shape = exact(write(tmp_path / "m.gguf", "glm4moe", tensors, {"nextn_predict_layers": 1, "block_count": 2}))
    assert (shape.num_layers, [group.count for group in shape.draft_layers]) == (1, [1])


@pytest.mark.parametrize(
    ("arch", "keys", "windowed"),
    [
        ("gemma2", {}, 2),
        ("gemma3", {}, 4),
        ("gpt-oss", {}, 2),
        ("gemma3n", {"attention.sliding_window_pattern": [True, True, True, False]}, 3),
        ("cohere2", {"attention.sliding_window_pattern": 4}, 3),
        ("unheard-of", {}, 0),
    ],
)
def test_windows_follow_the_metadata_then_the_architecture(
    tmp_path: Path, arch: str, keys: dict[str, Any], windowed: int
) -> None:
    tensors = model([dense_layer(layer) for layer in range(LAYERS)])
    shape = load(str(write(tmp_path / "m.gguf", arch, tensors, {"attention.sliding_window": 128, **keys})))
    found = sum(group.count for group in shape.layers if group.attention and group.attention.window == 128)
    assert found == windowed
    assert bool(shape.assumed) == (arch == "unheard-of")


def test_latent_attention_is_read_from_its_ranks(tmp_path: Path) -> None:
    layer: Tensors = {
        "blk.0.attn_q.weight": ((4 * 96, HIDDEN), Type.Q4_K),
        "blk.0.attn_kv_a_mqa.weight": ((512 + 32, HIDDEN), Type.Q8_0),
        "blk.0.attn_kv_a_norm.weight": ((512,), Type.F32),
        "blk.0.attn_k_b.weight": ((4, 512, 64), Type.Q8_0),
        "blk.0.attn_v_b.weight": ((4, 64, 512), Type.Q8_0),
        "blk.0.attn_output.weight": ((HIDDEN, 256), Type.Q4_K),
        "blk.0.ffn_up.weight": ((HIDDEN, HIDDEN), Type.Q4_K),
    }
    keys = {
        "attention.kv_lora_rank": 512,
        "rope.dimension_count": 32,
        "attention.key_length": 544,
        "attention.value_length": 512,
        "attention.key_length_mla": 96,
        "attention.value_length_mla": 64,
        "attention.head_count_kv": 1,
    }
    shape = exact(write(tmp_path / "m.gguf", "deepseek2", model([layer]), keys))
    attention = shape.layers[0].attention
    assert attention is not None
    assert (attention.kind, attention.qk_head_dim, attention.cached_elements_per_token) == ("mla", 96, 544)


def test_layers_with_a_state_cache_nothing(tmp_path: Path) -> None:
    linear: Tensors = {
        "blk.0.attn_qkv.weight": ((512, HIDDEN), Type.Q4_K),
        "blk.0.attn_gate.weight": ((256, HIDDEN), Type.Q4_K),
        "blk.0.ssm_conv1d.weight": ((512, 4), Type.F32),
        "blk.0.ssm_a": ((4,), Type.F32),
        "blk.0.ssm_out.weight": ((HIDDEN, 256), Type.Q4_K),
        "blk.0.ffn_up.weight": ((HIDDEN, HIDDEN), Type.Q4_K),
    }
    keys = {
        "ssm.inner_size": 256,
        "ssm.state_size": 64,
        "ssm.group_count": 2,
        "ssm.time_step_rank": 4,
        "ssm.conv_kernel": 4,
    }
    shape = exact(write(tmp_path / "m.gguf", "qwen3next", model([linear, dense_layer(1)]), keys))
    assert {group.name: group.count for group in shape.layers} == {"linear": 1, "full": 1}
    attention = shape.layers[0].attention
    assert attention is not None
    assert attention.state_elements == 4 * 64 * 64 + 3 * 512
    assert shape.cache_bytes_per_token() == 2 * (64 + 64) * 2


def test_without_metadata_heads_are_taken_from_the_tensors_and_that_is_said(tmp_path: Path) -> None:
    keys = {"attention.head_count": None, "attention.head_count_kv": None}
    shape = load(str(write(tmp_path / "m.gguf", "unheard-of", model([dense_layer(0)]), keys)))
    assert shape.assumed == ["heads are 128 wide: unheard-of.attention.head_count is missing"]


def test_every_part_of_a_split_file_is_read_and_a_missing_one_is_named(tmp_path: Path) -> None:
    first, second = (tmp_path / f"m-0000{number}-of-00002.gguf" for number in (1, 2))
    write(first, "llama", model([dense_layer(0)]))
    write(second, "llama", dense_layer(1))
    for path in (first, second, tmp_path):
        shape = load(str(path))
        assert shape.weight_bytes == file_bytes(first) + file_bytes(second)
    first.unlink()
    with pytest.raises(UsageError, match=r"not here: m-00001-of-00002\.gguf"):
        load(str(second))


@pytest.mark.parametrize(
    ("tensors", "keys", "told"),
    [
        ({"v.patch_embd.weight": ((8, 256), Type.F32)}, {}, "no token_embd.weight"),
        (model([expert_layer(0)]), {}, "no qwen3moe.expert_used_count"),
        (model([]), {}, "has 0 layers"),
        (model([dense_layer(0)]), {"attention.head_count_kv": [3.5]}, "want a whole number"),
    ],
)
def test_a_file_that_is_no_language_model_is_refused(
    tmp_path: Path, tensors: Tensors, keys: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError) as refused:
        load(str(write(tmp_path / "m.gguf", "qwen3moe", tensors, keys)))
    assert told in refused.value.message


def test_a_folder_with_two_models_asks_which(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        write(tmp_path / name, "llama", model([dense_layer(0)]))
    with pytest.raises(UsageError, match=r"holds 2 models: a\.gguf, b\.gguf"):
        load(str(tmp_path))


def test_the_embedded_model_is_read_to_the_byte() -> None:
    path = cache_folder() / "models" / Path(MEMBER).name
    if not path.is_file():
        pytest.skip("the embedded model is not in the cache: `assay demo` fetches it")
    shape = load(str(path))
    assert shape.weight_bytes == 96_576_768  # as gguf.GGUFReader counts; its reading takes seconds
    assert (shape.architecture, shape.num_layers, shape.tied_embeddings) == ("llama", 30, True)
    assert shape.parameters == 134_515_008
    assert shape.cache_bytes_per_token() == load("smollm2-135m").cache_bytes_per_token()
    assert {matrix.storage.name for _, matrix in shape.matrices()} >= {"Q4_1", "F32"}
