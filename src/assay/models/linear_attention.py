"""Attention with a state of constant size: gated delta rule (Qwen3-Next) and lightning attention (MiniMax)."""

from __future__ import annotations

from assay.models.config import Config
from assay.models.families import Family
from assay.models.full_attention import HEAD_KEYS
from assay.models.pieces import Piece, linear, vector
from assay.records.model_shape import Attention


def attention(config: Config, family: Family, hidden: int) -> Attention:
    """Heads, and the elements of the state: a matrix for each head and the convolution's last inputs."""
    if family.linear == "lightning":
        heads = config.need(*HEAD_KEYS)
        head_dim = config.whole("head_dim") or hidden // heads
        return Attention(
            kind="linear",
            heads=heads,
            kv_heads=heads,
            qk_head_dim=head_dim,
            v_head_dim=head_dim,
            state_elements=heads * head_dim * head_dim,
        )
    mixer = Attention(
        kind="linear",
        heads=config.need("linear_num_value_heads"),
        kv_heads=config.need("linear_num_key_heads"),
        qk_head_dim=config.need("linear_key_head_dim"),
        v_head_dim=config.need("linear_value_head_dim"),
    )
    taps = config.need("linear_conv_kernel_dim")
    matrices = mixer.heads * mixer.qk_head_dim * mixer.v_head_dim
    return mixer.model_copy(update={"state_elements": matrices + (taps - 1) * _convolved(mixer)})


def _convolved(mixer: Attention) -> int:
    """Channels of the convolution: queries and keys of the key heads, values of the value heads."""
    return 2 * mixer.kv_heads * mixer.qk_head_dim + mixer.heads * mixer.v_head_dim


def pieces(config: Config, family: Family, mixer: Attention, hidden: int) -> list[Piece]:
    """The matrices and vectors of one layer."""
    values = mixer.heads * mixer.v_head_dim
    if family.linear == "lightning":
        return [
            linear("self_attn.qkv_proj", "linear_attention", 3 * values, hidden),
            linear("self_attn.output_gate", "linear_attention", values, hidden),
            linear("self_attn.out_proj", "linear_attention", hidden, values),
            vector("linear_norm", values),
        ]
    convolved = _convolved(mixer)
    if family.linear == "delta_split":
        found = [
            linear("linear_attn.in_proj_qkv", "linear_attention", convolved, hidden),
            linear("linear_attn.in_proj_z", "linear_attention", values, hidden),
            linear("linear_attn.in_proj_b", "linear_attention", mixer.heads, hidden),
            linear("linear_attn.in_proj_a", "linear_attention", mixer.heads, hidden),
        ]
    else:
        found = [
            linear("linear_attn.in_proj_qkvz", "linear_attention", convolved + values, hidden),
            linear("linear_attn.in_proj_ba", "linear_attention", 2 * mixer.heads, hidden),
        ]
    return [
        *found,
        linear("linear_attn.out_proj", "linear_attention", hidden, values),
        vector("conv1d", convolved * config.need("linear_conv_kernel_dim")),
        vector("decay", mixer.heads, copies=2),
        vector("linear_norm", mixer.v_head_dim),
    ]
