"""Which layer does what: the laws by which config.json spreads windows, linear attention, experts and indexers."""

from __future__ import annotations

from typing import Literal

from assay.models.config import Config
from assay.models.families import Family

Mixer = Literal["full", "sliding", "linear"]
IndexerUse = Literal["none", "own", "shared"]
WINDOW_KEYS = ("sliding_window", "sliding_window_size", "attention_chunk_size", "window_size")
EXPERT_KEYS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts", "num_moe_experts")


def mixers(config: Config, family: Family, count: int, *, known: bool) -> list[Mixer]:
    """The sequence mixer of each layer."""
    window = window_tokens(config)
    if named := _named_mixers(config, count):
        return [mixer if mixer != "sliding" or window else "full" for mixer in named]
    if family.linear and (interval := config.whole("full_attention_interval")):
        return ["full" if (index + 1) % interval == 0 else "linear" for index in range(count)]
    if family.linear:
        config.need("layer_types", "full_attention_interval", "attn_type_list")
    if window is None:
        return ["full"] * count
    return _windowed(config, family, count, known=known)


def window_tokens(config: Config) -> int | None:
    """Tokens that a window sees; None when there is none, or none that ever binds."""
    window = config.whole(*WINDOW_KEYS)
    positions = config.whole("max_position_embeddings")
    if window is None or config.flag("use_sliding_window") is False or (positions and window >= positions):
        return None
    return window


def _named_mixers(config: Config, count: int) -> list[Mixer] | None:
    """From lists that name the mixer of each layer."""
    if (words := config.words("layer_types")) is not None:
        _same_length(config, "layer_types", len(words), count)
        return [_mixer(config, word) for word in words]
    if (codes := config.wholes("attn_type_list")) is not None:
        _same_length(config, "attn_type_list", len(codes), count)
        return ["full" if code else "linear" for code in codes]
    if ropes := config.wholes("no_rope_layers"):
        _same_length(config, "no_rope_layers", len(ropes), count)
        return ["sliding" if rope and "attention_chunk_size" in config else "full" for rope in ropes]
    return None


def _mixer(config: Config, word: str) -> Mixer:
    if "linear" in word:
        return "linear"
    if "sliding" in word or "chunked" in word:
        return "sliding"
    if "full" in word or word in {"attention", "deepseek_sparse_attention"}:
        return "full"
    raise config.wrong("layer_types", "full_, sliding_, chunked_ or linear_attention")


def _windowed(config: Config, family: Family, count: int, *, known: bool) -> list[Mixer]:
    if (first := config.whole("max_window_layers", least=0)) is not None and config.flag("use_sliding_window"):
        return ["full" if index < first else "sliding" for index in range(count)]
    every = config.whole("sliding_window_pattern", "_sliding_window_pattern")
    if every is None:
        every = family.window_every
    if every is None and not known:
        config.assume(f"every layer sees only the last {window_tokens(config)} tokens, as {WINDOW_KEYS[0]} says")
        every = 0
    if every is None:
        return ["full"] * count
    return ["full" if every and (index + 1) % every == 0 else "sliding" for index in range(count)]


def expert_layers(config: Config, count: int) -> list[bool]:
    """Whether each layer has experts."""
    if config.first(*EXPERT_KEYS) is None or config.whole(*EXPERT_KEYS, least=0) == 0:
        return [False] * count
    if (words := config.words("mlp_layer_types")) is not None:
        _same_length(config, "mlp_layer_types", len(words), count)
        return [word in {"sparse", "moe"} for word in words]
    if (chosen := config.wholes("moe_layers")) is not None:
        return [index in chosen for index in range(count)]
    if isinstance(config.data.get("moe_layer_freq"), list):
        codes = config.wholes("moe_layer_freq") or []
        _same_length(config, "moe_layer_freq", len(codes), count)
        return [code != 0 for code in codes]
    return _regular_expert_layers(config, count)


def _regular_expert_layers(config: Config, count: int) -> list[bool]:
    first = config.whole("first_k_dense_replace", "num_dense_layers", least=0) or 0
    step = config.whole("moe_layer_freq") or 1
    late_step = config.whole("decoder_sparse_step", "interleave_moe_layer_step") or 1
    dense = config.wholes("mlp_only_layers") or []
    return [
        index >= first and index % step == 0 and (index + 1) % late_step == 0 and index not in dense
        for index in range(count)
    ]


def indexers(config: Config, count: int) -> list[IndexerUse]:
    """Whether each layer has an indexer, or takes the tokens that an earlier layer's chose.

    Source: `indexer_types`, else `index_topk_pattern` ("FSSF..."), else every `index_topk_freq`-th layer from
    `index_skip_topk_offset` on (transformers, models/glm_moe_dsa).
    """
    if "index_topk" not in config:
        return ["none"] * count
    words = config.words("indexer_types")
    if words is None and (pattern := config.text("index_topk_pattern")) is not None:
        words = ["full" if letter == "F" else "shared" for letter in pattern]
    if words is None:
        every, offset = config.whole("index_topk_freq") or 1, config.whole("index_skip_topk_offset", least=0)
        skip = 2 if offset is None else offset
        words = ["full" if max(index - skip + 1, 0) % every == 0 else "shared" for index in range(count)]
    _same_length(config, "indexer_types", len(words), count)
    return ["own" if word == "full" else "shared" for word in words]


def _same_length(config: Config, key: str, length: int, count: int) -> None:
    if length != count:
        raise config.wrong(key, f"one entry for each of the {count} layers, not {length}")
