"""Attention's core on one rank: what it reads of the cache and computes, for every kind of attention."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from assay.records.estimate import Layout, Phase
from assay.records.model_shape import Attention, Compute, Indexer, Matrix
from assay.roofline import efficiency, sharding
from assay.roofline.work import Share, Work

LINEAR_FLOPS_PER_STATE_ELEMENT = 6
"""Per token: decay, outer product and addition of the update, multiplication and sum of the read-out. Assumed."""


class Seen(NamedTuple):
    """What the new tokens of one sequence attend to."""

    pairs: float
    """Token-key pairs, causal."""
    cached: float
    """Distinct tokens of the cache, before the step, that have to be read."""


def seen(share: Share, limit: int | None) -> Seen:
    """Pairs sum over new tokens i = 1..n of min(context + i, limit), and the cached tokens among them.

    Args:
        share: what the rank sees; n and the context.
        limit: the window of sliding attention, None for all.
    """
    n, context = share.new_tokens, share.context_tokens
    if limit is None:
        return Seen(pairs=n * context + n * (n + 1) / 2, cached=context)
    growing = min(n, max(0.0, limit - context))
    pairs = growing * context + growing * (growing + 1) / 2 + (n - growing) * limit
    return Seen(pairs=pairs, cached=min(context, max(0, limit - 1)))


def core(
    attention: Attention,
    matrices: Sequence[Matrix],
    layout: Layout,
    share: Share,
    phase: Phase,
    cache_bytes_per_element: float,
) -> Iterator[Work]:
    """The sequence mixer of one layer without its projections."""
    compute: Compute = "fp8" if cache_bytes_per_element <= 1 else "bf16"
    if attention.kind == "linear":
        yield _linear(attention, layout, share)
    elif attention.kind == "mla":
        yield _latent(attention, layout, share, phase, cache_bytes_per_element, compute)
        if phase == "prefill" and share.context_tokens > 0 and attention.indexer is None:
            yield from _expansion(matrices, attention, layout, share)
        if attention.indexer is not None and not attention.indexer.shared:
            yield _index(attention.indexer, share)
    else:
        yield _heads(attention, layout, share, cache_bytes_per_element, compute)
    if phase == "decode" and attention.kind != "linear":
        yield _combination()


def _heads(attention: Attention, layout: Layout, share: Share, element_bytes: float, compute: Compute) -> Work:
    """Multi-head, grouped and multi-query attention: 2 * pairs * heads * (qk + v) operations; keys and values once."""
    part = seen(share, attention.window)
    width = attention.qk_head_dim + attention.v_head_dim
    flops = 2 * share.sequences * part.pairs * attention.heads / layout.tp * width
    per_token = sharding.kv_heads_per_rank(attention, layout.tp) * width * element_bytes
    moved = share.sequences * (part.cached + share.new_tokens) * per_token
    return Work(
        name="attention.window" if attention.window else "attention.core",
        part="attention_core",
        kind="attention",
        flops=flops,
        floor_flops=flops,
        bytes=moved,
        floor_bytes=moved,
        compute=compute,
    )


def _combination() -> Work:
    """Decode splits each sequence's cache over blocks, so that few sequences fill the device, and adds the parts up.

    FlashAttention, FlashMLA and Triton's back ends have a kernel of its own for that. What it moves is not counted: it
    stays in the last-level cache, and where sequences fill the device nothing is split. Source: Dao et al.,
    Flash-Decoding for long-context inference (2023); own traces (examples/gpu/h200-step) have one in each layer.
    """
    return Work(name="attention.combine", part="attention_core", kind="elementwise", avoidable=True)


def _latent(
    attention: Attention, layout: Layout, share: Share, phase: Phase, element_bytes: float, compute: Compute
) -> Work:
    """MLA: absorbed in decode (every head multiplies with the latent itself), expanded to heads in prefill.

    Absorbed: 2 * (2 * latent + rope) operations per pair and head. Expanded: 2 * (qk + v); with an indexer, prefill too
    is expected absorbed, because the chosen tokens differ from token to token. The latent stands whole on every TP rank
    and is read once for each group of `MLA_HEAD_GROUP` heads (floor: once).
    """
    latent, rope = attention.latent_rank or 0, attention.rope_dim or 0
    indexer = attention.indexer
    part = seen(share, indexer.top_k if indexer else attention.window)
    cached = min(share.context_tokens, float(indexer.top_k)) if indexer else part.cached
    heads = attention.heads / layout.tp
    absorbed, expanded = 2 * (2 * latent + rope), 2 * (attention.qk_head_dim + attention.v_head_dim)
    usual = absorbed if phase == "decode" or indexer else expanded
    least = absorbed if phase == "decode" else min(absorbed, expanded)
    pairs = share.sequences * part.pairs * heads
    per_token = (latent + rope) * element_bytes
    once = share.sequences * (cached + share.new_tokens) * per_token
    groups = math.ceil(heads / efficiency.MLA_HEAD_GROUP)
    return Work(
        name="attention.mla",
        part="attention_core",
        kind="attention",
        flops=pairs * usual,
        floor_flops=pairs * least,
        bytes=once * groups,
        floor_bytes=once,
        compute=compute,
    )


def _expansion(matrices: Sequence[Matrix], attention: Attention, layout: Layout, share: Share) -> Iterator[Work]:
    """A prefill that continues a cached prefix expands the cached latents to heads again; absorbing would avoid it."""
    for matrix in matrices:
        if matrix.part == "attention" and "kv_b" in matrix.name:
            local = sharding.local_share(matrix, attention, layout)
            rows = share.sequences * share.context_tokens
            yield Work(
                name="attention.expand_cached",
                part="attention",
                flops=2 * rows * matrix.parameters * local,
                bytes=matrix.weight_bytes * local,
                compute=matrix.storage.compute,
                avoidable=True,
            )


def _index(indexer: Indexer, share: Share) -> Work:
    """The indexer scores every cached token for every new one, whole on each rank.

    Below `top_k` cached tokens all are chosen, and an engine may leave it out: no floor.
    """
    part = seen(share, None)
    flops = 2 * share.sequences * part.pairs * indexer.heads * indexer.head_dim
    moved = share.sequences * (share.context_tokens + share.new_tokens) * indexer.cache_bytes_per_token
    return Work(
        name="indexer.scores",
        part="indexer",
        kind="attention",
        calls=2,
        flops=flops,
        floor_flops=flops,
        bytes=moved,
        floor_bytes=moved,
        compute="fp8",
        avoidable=share.context_tokens + share.new_tokens <= indexer.top_k,
    )


def _linear(attention: Attention, layout: Layout, share: Share) -> Work:
    """Linear attention: the state of each sequence is read and written once; its heads are split by TP."""
    elements = share.sequences * attention.state_elements / layout.tp
    flops = LINEAR_FLOPS_PER_STATE_ELEMENT * elements * share.new_tokens
    state = efficiency.LINEAR_STATE_BYTES
    return Work(
        name="linear_attention.state",
        part="attention_core",
        kind="attention",
        calls=2,
        flops=flops,
        floor_flops=flops,
        bytes=2 * elements * state.mid,
        floor_bytes=2 * elements * state.low,
        compute="bf16",
    )
