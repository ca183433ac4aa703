"""The sequence mixer of a layer of a GGUF: from its metadata, from its tensors where that says nothing."""

from __future__ import annotations

from collections.abc import Mapping

from assay.models.gguf_header import GgufTensor
from assay.models.gguf_metadata import Metadata
from assay.models.latent_attention import SCALE_BYTES, SCALED_VALUES
from assay.records.model_shape import Attention, Indexer

WINDOW_EVERY = {
    "gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2, "llama4": 4, "cohere2": 4, "olmo2": 4, "exaone4": 4,
    "phi3": 0, "mistral3": 0,
}  # fmt: skip
"""Every n-th layer sees everything, the others a window; 0: all see the window. Source: llama.cpp, src/models."""
USUAL_HEAD_DIMS = (128, 64, 256, 96, 80, 32)
STATEFUL = ("ssm_", "time_mix_", "shortconv.")


def attention(facts: Metadata, layer: int, tensors: Mapping[str, GgufTensor], hidden: int) -> Attention | None:
    """The mixer of one layer; None for a layer of feed-forward alone.

    Args:
        facts: the file's metadata.
        layer: index of the layer.
        tensors: the layer's tensors by their name inside it.
        hidden: the model's width.
    """
    if any(name.startswith(STATEFUL) for name in tensors):
        return _stateful(facts, tensors, hidden)
    if not any(name.startswith("attn_") and "norm" not in name for name in tensors):
        return None
    if any(name.startswith("attn_kv_a_mqa") for name in tensors):
        return _latent(facts, layer, tensors)
    heads, head_dim = _heads(facts, layer, tensors, hidden)
    kv_heads = facts.whole("attention.head_count_kv", layer) or heads
    windowed = _window(facts, layer)
    suffix = "_swa" if windowed and facts.whole("attention.key_length_swa") else ""
    return Attention(
        kind="full",
        heads=heads,
        kv_heads=kv_heads,
        qk_head_dim=facts.whole(f"attention.key_length{suffix}") or head_dim,
        v_head_dim=facts.whole(f"attention.value_length{suffix}") or head_dim,
        window=windowed,
    )


def _heads(facts: Metadata, layer: int, tensors: Mapping[str, GgufTensor], hidden: int) -> tuple[int, int]:
    heads = facts.whole("attention.head_count", layer)
    if heads:
        return heads, max(hidden // heads, 1)
    queries = tensors.get("attn_q.weight") or next(tensor for name, tensor in tensors.items() if "attn_" in name)
    width = queries.dimensions[-1]
    head_dim = next((size for size in USUAL_HEAD_DIMS if width % size == 0), width)
    facts.assume(f"heads are {head_dim} wide: {facts.architecture}.attention.head_count is missing")
    return max(width // head_dim, 1), head_dim


def _latent(facts: Metadata, layer: int, tensors: Mapping[str, GgufTensor]) -> Attention:
    heads = facts.whole("attention.head_count", layer) or facts.need("attention.head_count")
    return Attention(
        kind="mla",
        heads=heads,
        kv_heads=heads,
        qk_head_dim=facts.whole("attention.key_length_mla") or facts.need("attention.key_length"),
        v_head_dim=facts.whole("attention.value_length_mla") or facts.need("attention.value_length"),
        latent_rank=facts.need("attention.kv_lora_rank"),
        rope_dim=facts.need("rope.dimension_count"),
        indexer=_indexer(facts) if any(name.startswith("indexer.") for name in tensors) else None,
    )


def _indexer(facts: Metadata) -> Indexer:
    head_dim = facts.need("attention.indexer.key_length")
    return Indexer(
        heads=facts.need("attention.indexer.head_count"),
        head_dim=head_dim,
        top_k=facts.need("attention.indexer.top_k"),
        cache_bytes_per_token=head_dim + SCALE_BYTES * -(-head_dim // SCALED_VALUES),
    )


def _stateful(facts: Metadata, tensors: Mapping[str, GgufTensor], hidden: int) -> Attention:
    """State space, gated delta rule, RWKV or short convolution: a state of constant size."""
    inner, state = facts.whole("ssm.inner_size"), facts.whole("ssm.state_size")
    heads, groups = facts.whole("ssm.time_step_rank") or 1, facts.whole("ssm.group_count") or 1
    if inner and state:
        taps = facts.whole("ssm.conv_kernel") or 1
        elements = inner * state + (taps - 1) * (inner + 2 * groups * state)
    elif head_size := facts.whole("wkv.head_size"):
        inner, state, elements = hidden, head_size, hidden * head_size + 2 * hidden
    else:
        inner, state, elements = hidden, 1, ((facts.whole("shortconv.l_cache") or 1) - 1) * hidden
        if not elements:
            facts.assume(f"the state of {facts.architecture}'s layers with {next(iter(tensors))} is not counted")
    return Attention(
        kind="linear",
        heads=heads,
        kv_heads=groups,
        qk_head_dim=state,
        v_head_dim=max(inner // heads, 1),
        state_elements=elements,
    )


def _window(facts: Metadata, layer: int) -> int | None:
    window = facts.whole("attention.sliding_window") or facts.whole("attention.chunk_size")
    positions = facts.whole("context_length")
    if not window or (positions and window >= positions):
        return None
    if (marks := facts.flags("attention.sliding_window_pattern")) is not None:
        return window if layer < len(marks) and marks[layer] else None
    every = facts.whole("attention.sliding_window_pattern")
    if every is None:
        every = WINDOW_EVERY.get(facts.architecture)
    if every is None:
        facts.assume(
            f"the window of {window} tokens is not used: which layers of {facts.architecture} have it is unknown"
        )
        return None
    return None if every and (layer + 1) % every == 0 else window
