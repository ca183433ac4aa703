"""Attention whose heads keep keys and values: MHA, GQA and MQA, with or without a window."""

from __future__ import annotations

from assay.models.config import Config
from assay.models.families import Family
from assay.models.pieces import Piece, linear, vector
from assay.records.model_shape import Attention

HEAD_KEYS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEAD_KEYS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")


def attention(config: Config, hidden: int, window: int | None, *, known: bool) -> Attention:
    """Heads and their sizes."""
    heads = config.need(*HEAD_KEYS)
    head_dim = config.whole("head_dim", "kv_channels", "attention_head_dim")
    if head_dim is None:
        if hidden % heads:
            raise config.wrong(config.first(*HEAD_KEYS) or "", f"a divisor of the hidden size {hidden}, or head_dim")
        head_dim = hidden // heads
        if not known:
            config.assume(f"a head is {head_dim} wide: the hidden size over the number of heads")
    return Attention(
        kind="full",
        heads=heads,
        kv_heads=_kv_heads(config, heads, known=known),
        qk_head_dim=head_dim,
        v_head_dim=config.whole("v_head_dim") or head_dim,
        window=window,
    )


def _kv_heads(config: Config, heads: int, *, known: bool) -> int:
    kv_heads = config.whole(*KV_HEAD_KEYS)
    if kv_heads is None and config.flag("multi_query"):
        return 1
    if kv_heads is None:
        if not known:
            config.assume("every head has keys and values of its own: num_key_value_heads is missing")
        return heads
    if heads % kv_heads:
        raise config.wrong(config.first(*KV_HEAD_KEYS) or "", f"a divisor of the {heads} heads")
    return kv_heads


def pieces(config: Config, family: Family, mixer: Attention, hidden: int) -> list[Piece]:
    """The matrices and vectors of one layer's attention."""
    gate = family.gated_attention if config.flag("attn_output_gate") is None else config.flag("attn_output_gate")
    queries = mixer.heads * mixer.qk_head_dim * (2 if gate else 1)
    keys, values = mixer.kv_heads * mixer.qk_head_dim, mixer.kv_heads * mixer.v_head_dim
    if family.fused:
        found = [linear("self_attn.qkv_proj", "attention", queries + keys + values, hidden)]
    else:
        found = [
            linear("self_attn.q_proj", "attention", queries, hidden),
            linear("self_attn.k_proj", "attention", keys, hidden),
            linear("self_attn.v_proj", "attention", values, hidden),
        ]
    found.append(linear("self_attn.o_proj", "attention", hidden, mixer.heads * mixer.v_head_dim))
    return [*found, *_vectors(config, family, mixer, hidden, queries + keys + values)]


def _vectors(config: Config, family: Family, mixer: Attention, hidden: int, qkv: int) -> list[Piece]:
    found: list[Piece] = []
    said = config.flag("attention_bias", "qkv_bias", "use_qkv_bias") or False
    if said if family.qkv_bias is None else family.qkv_bias:
        found.append(vector("qkv_bias", qkv))
    if said if family.o_bias is None else family.o_bias:
        found.append(vector("o_bias", hidden))
    norm = family.qk_norm if config.flag("use_qk_norm") is not False else "none"
    if norm == "head":
        found.append(vector("qk_norm", mixer.qk_head_dim, copies=2))
    if norm == "width":
        found.append(vector("q_norm", mixer.heads * mixer.qk_head_dim))
        found.append(vector("k_norm", mixer.kv_heads * mixer.qk_head_dim))
    if family.sinks:
        found.append(vector("sinks", mixer.heads))
    return found
