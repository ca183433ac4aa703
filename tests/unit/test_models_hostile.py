"""Whatever a file holds, it is read or refused with a hint; nothing else is raised and nothing takes long."""

from __future__ import annotations

import json
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.models import library, load
from assay.records.model_shape import ModelShape

NAMES = ("gpt2", "qwen3-next-80b-a3b", "glm-5-nvfp4", "llama-4-scout", "minimax-m2", "gemma-3-4b", "kimi-k2-thinking")
CONFIGS = [json.loads((library.FOLDER / f"{name}.json").read_text()) for name in NAMES]
KEYS = sorted({key for config in CONFIGS for part in (config, config.get("text_config", {})) for key in part})
EXTRA = ["layer_types", "indexer_types", "index_topk_pattern", "no_rope_layers", "head_dim", "moe_layer_freq"]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 5)
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["re:(a|a)*b", "re:[", "*", "model.layers.*", "NVFP4", "sliding_attention", "\x1b[31m"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*KEYS, *EXTRA]), inner, max_size=4),
    max_leaves=8,
)
QUANTIZATION_KEYS = "quant_method quant_algo bits group_size ignore config_groups quantized_layers load_in_4bit"
QUANTIZATION = st.dictionaries(
    st.sampled_from(QUANTIZATION_KEYS.split()),
    VALUES | st.sampled_from(["fp8", "modelopt", "compressed-tensors", "awq", "bitsandbytes", "MIXED_PRECISION"]),
    max_size=5,
)


def read_or_refuse(path: Path) -> None:
    try:
        shape = load(str(path))
    except UsageError as error:
        assert error.hint  # noqa: PT017 - either outcome is right
        assert error.message.isprintable()  # noqa: PT017
    else:
        assert isinstance(shape, ModelShape)
        assert shape.parameters > 0
        assert shape.weight_bytes > 0
        assert all(text.isprintable() for text in (shape.name, shape.architecture, *shape.assumed))


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::FutureWarning")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    base=st.sampled_from(CONFIGS),
    changes=st.dictionaries(st.sampled_from([*KEYS, *EXTRA]), VALUES, max_size=4),
    quantization=st.none() | QUANTIZATION,
    inside=st.booleans(),
)
def test_any_config_json_is_read_or_refused(
    base: dict[str, Any], changes: dict[str, Any], quantization: dict[str, Any] | None, *, inside: bool
) -> None:
    config = {**base, **({} if quantization is None else {"quantization_config": quantization})}
    if inside and isinstance(config.get("text_config"), dict):
        config["text_config"] = {**config["text_config"], **changes}
    else:
        config |= changes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.json")
        path.write_text(json.dumps(config))
        read_or_refuse(path)


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=64) | st.integers(0, 400).map(lambda cut: json.dumps(CONFIGS[2]).encode()[:cut]))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("config.json", "model.gguf"):
            path = Path(folder, name)
            path.write_bytes(content)
            read_or_refuse(path)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"hidden_size": ' + b"9" * 10_000 + b"}",
        b'{"a": ' * 50_000,
        b"\xff\xfe\x00",
        b"null",
        b'{"text_config": ' * 400 + b"{}" + b"}" * 400,
    ],
)
def test_json_made_to_hurt_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(UsageError):
        load(str(path))


def test_the_most_layers_with_the_longest_list_of_modules_take_no_time(tmp_path: Path) -> None:
    ignored = [f"model.layers.{layer}.mlp{word}*" for layer in range(512) for word in range(8)]
    ignored += [f"visual.blocks.{block}*" for block in range(3000)]
    ignored += [f"re:.*a.*b.*{'c' * number}" for number in range(200)]
    quantization = {"quant_algo": "NVFP4", "ignore": ignored}
    config = {**CONFIGS[2], "num_hidden_layers": 512, "quantization_config": quantization}
    (tmp_path / "config.json").write_text(json.dumps(config))
    began_s = time.process_time()
    assert load(str(tmp_path)).num_layers == 512
    assert time.process_time() - began_s < 10


ENTRY = st.fixed_dictionaries(
    {"dtype": st.sampled_from(["BF16", "U8", "X9"]) | VALUES, "shape": VALUES, "data_offsets": VALUES}
)


@settings(max_examples=60, deadline=None)
@given(
    header=st.dictionaries(
        st.sampled_from(["lm_head.weight", "h.0.attn.c_attn.weight", "h.9999999.x"]), ENTRY | VALUES
    ),
    length=st.none() | st.integers(0, 2**64 - 1),
    tail=st.integers(0, 64),
)
def test_any_safetensors_header_is_read_or_refused(header: dict[str, Any], length: int | None, tail: int) -> None:
    content = json.dumps(header).encode()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(CONFIGS[0]))
        written = struct.pack("<Q", len(content) if length is None else length) + content + bytes(tail)
        Path(folder, "model.safetensors").write_bytes(written)
        read_or_refuse(Path(folder))


def text(word: str) -> bytes:
    return struct.pack("<Q", len(word)) + word.encode()


def small_gguf() -> bytes:
    """A mixture of one layer, its header alone with the few bytes of its data."""
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("toy"),
        text("toy.attention.head_count") + struct.pack("<II", 4, 2),
        text("toy.expert_used_count") + struct.pack("<II", 4, 1),
        text("toy.attention.head_count_kv") + struct.pack("<IIQI", 9, 4, 1, 1),
    ]
    shapes = {"token_embd.weight": (8, 4), "blk.0.attn_q.weight": (8, 8), "blk.0.ffn_up_exps.weight": (8, 2, 2)}
    infos = [text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, 0) for name, shape in shapes.items()]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(pairs)) + b"".join([*pairs, *infos])
    return head + bytes(-len(head) % 32) + bytes(256)


def test_the_small_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "toy.gguf"
    path.write_bytes(small_gguf())
    assert load(str(path)).parameters == 8 * 4 + 8 * 8 + 8 * 2 * 2


@settings(max_examples=200, deadline=None)
@given(st.integers(4, len(small_gguf()) - 1), st.binary(min_size=1, max_size=8))
def test_a_damaged_gguf_is_read_or_refused(position: int, damage: bytes) -> None:
    content = bytearray(small_gguf())
    content[position : position + len(damage)] = damage
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "toy.gguf")
        path.write_bytes(bytes(content))
        read_or_refuse(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"GGUF", "it ends inside its header"),
        (b"GGUF" + struct.pack("<III", 1, 0, 0), "has GGUF version 1; 2 and 3 can be read"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "is a big-endian GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 0, 2**50), "an array of"),
    ],
)
def test_a_gguf_that_cannot_be_read_is_told_in_words(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "toy.gguf"
    path.write_bytes(content)
    with pytest.raises(UsageError) as raised:
        load(str(path))
    assert said in raised.value.message


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["llama4_vision_model", "siglip_vision_model", "other"]),
    st.dictionaries(st.sampled_from(["hidden_size", "num_hidden_layers", "patch_size", "image_size"]), VALUES),
)
def test_any_encoder_of_images_is_counted_or_refused(kind: str, given_values: dict[str, Any]) -> None:
    sizes = {
        "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "image_size": 28, "patch_size": 14,
        "projector_input_dim": 8, "projector_output_dim": 8, "vision_output_dim": 8,
    }  # fmt: skip
    config = {"text_config": CONFIGS[0], "vision_config": {"model_type": kind, **sizes, **given_values}}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config))
        read_or_refuse(Path(folder))
