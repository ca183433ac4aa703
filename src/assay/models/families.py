"""What a model's type says beyond the keys of its config.json: one row a family.

Source of each row: the model's reference code in Hugging Face transformers (`src/transformers/models/<type>`), or, for
MiniMax and Kimi, the code published beside their weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

QkNorm = Literal["none", "head", "width"]
Swept = Literal["none", "all", "every"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How the models of one type are built; a None follows the key of config.json."""

    qkv_bias: bool | None = None
    """Biases of the query, key and value projections; None: `attention_bias` (or `qkv_bias`)."""
    o_bias: bool | None = None
    """Bias of the output projection; None: as `attention_bias`."""
    mlp_bias: bool | None = None
    """Biases of the feed-forward matrices; None: `mlp_bias`."""
    qk_norm: QkNorm = "none"
    """Norms of queries and keys: one vector of a head's size, or of the whole width."""
    sinks: bool = False
    """A learned logit for each head that attends to nothing."""
    gated_attention: bool = False
    """The query projection also makes an output gate: twice the rows."""
    fused: bool = False
    """One matrix makes queries, keys and values, and one makes gate and up."""
    norms: int = 2
    """Norm vectors of the hidden size in a layer."""
    norm_bias: bool = False
    gated_ffn: bool = True
    """Gate, up and down matrices; otherwise up and down."""
    inner_factor: int | None = None
    """Feed-forward size in hidden sizes when config.json has none."""
    tied: bool = False
    """Whether head and embedding are one when `tie_word_embeddings` is missing."""
    head_bias: bool = False
    learned_positions: bool = False
    window_every: int | None = None
    """Without `layer_types`: every n-th layer sees everything, the others a window; 0: all see the window."""
    linear: Literal["delta", "delta_split", "lightning"] | None = None
    shared_default: int = 0
    """Shared experts when config.json does not say."""
    shared_gate: bool = False
    """The shared expert is weighed by a gate of its own."""
    router_bias: bool = False
    """A vector of one number an expert beside the router: a bias, or a correction of its scores."""
    expert_bias: bool = False
    ffn_module: str = "mlp"
    router_module: str = "gate"
    shared_module: str = "shared_experts"


LLAMA = Family()
QWEN2 = Family(qkv_bias=True, o_bias=False)
QWEN3 = Family(qk_norm="head")
QWEN3_NEXT = Family(
    qk_norm="head", gated_attention=True, linear="delta", shared_gate=True, shared_module="shared_expert"
)
QWEN35 = replace(QWEN3_NEXT, linear="delta_split")
GEMMA = Family(tied=True)
GEMMA2 = replace(GEMMA, norms=4, window_every=2)
GEMMA3 = replace(GEMMA2, qk_norm="head", window_every=6)
DEEPSEEK = Family(router_bias=True, o_bias=None)
GLM4_MOE = Family(qk_norm="head", o_bias=False, router_bias=True)
MINIMAX = Family(ffn_module="block_sparse_moe")

FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "smollm3": replace(LLAMA, tied=True),
    "mistral": Family(window_every=0),
    "ministral": Family(window_every=0),
    "mistral3": LLAMA,
    "mixtral": Family(window_every=0, ffn_module="block_sparse_moe"),
    "llama4_text": Family(
        window_every=4,
        shared_default=1,
        ffn_module="feed_forward",
        router_module="router",
        shared_module="shared_expert",
    ),
    "qwen2": QWEN2,
    "qwen2_vl": QWEN2,
    "qwen2_vl_text": QWEN2,
    "qwen2_5_vl": QWEN2,
    "qwen2_5_vl_text": QWEN2,
    "qwen2_moe": replace(QWEN2, shared_gate=True, shared_module="shared_expert"),
    "qwen3": QWEN3,
    "qwen3_moe": QWEN3,
    "qwen3_vl_text": QWEN3,
    "qwen3_vl_moe_text": QWEN3,
    "qwen3_next": QWEN3_NEXT,
    "qwen3_5_text": QWEN35,
    "qwen3_5_moe_text": QWEN35,
    "gemma": GEMMA,
    "gemma2": GEMMA2,
    "gemma3": GEMMA3,
    "gemma3_text": GEMMA3,
    "phi": Family(
        qkv_bias=True,
        o_bias=True,
        mlp_bias=True,
        norms=1,
        norm_bias=True,
        gated_ffn=False,
        inner_factor=4,
        head_bias=True,
    ),
    "phi3": Family(qkv_bias=False, o_bias=False, fused=True, window_every=0),
    "phimoe": Family(norm_bias=True, window_every=0, ffn_module="block_sparse_moe"),
    "gpt2": Family(
        qkv_bias=True,
        o_bias=True,
        mlp_bias=True,
        fused=True,
        norm_bias=True,
        gated_ffn=False,
        inner_factor=4,
        tied=True,
        learned_positions=True,
    ),
    "olmo": Family(norms=0),
    "olmo2": Family(qk_norm="width"),
    "olmo3": Family(qk_norm="width", window_every=4),
    "olmoe": Family(qk_norm="width"),
    "gpt_oss": Family(
        sinks=True,
        window_every=2,
        router_module="router",
        router_bias=True,
        expert_bias=True,
        qkv_bias=True,
        o_bias=True,
    ),
    "deepseek": replace(DEEPSEEK, router_bias=False),
    "deepseek_v2": replace(DEEPSEEK, router_bias=False),
    "deepseek_v3": DEEPSEEK,
    "deepseek_v32": DEEPSEEK,
    "kimi_k2": DEEPSEEK,
    "glm_moe_dsa": DEEPSEEK,
    "glm4_moe_lite": DEEPSEEK,
    "glm4_moe": GLM4_MOE,
    "glm4": Family(o_bias=False, norms=4),
    "glm": Family(o_bias=False),
    "minimax": replace(MINIMAX, linear="lightning"),
    "minimax_m1": replace(MINIMAX, linear="lightning"),
    "minimax_text_01": replace(MINIMAX, linear="lightning"),
    "minimax_m2": replace(MINIMAX, qk_norm="width", router_bias=True),
}

BEYOND_US: dict[str, str] = {
    "hybrid_override_pattern": "state-space layers (Mamba)",
    "ssm_cfg": "state-space layers (Mamba)",
    "ssm_state_size": "state-space layers (Mamba)",
    "mamba_d_state": "state-space layers (Mamba)",
    "linear_attn_config": "Kimi's delta attention",
    "compress_ratios": "compressed attention (DeepSeek V4)",
    "block_configs": "layers that differ one by one",
    "is_encoder_decoder": "an encoder",
}
"""Keys that tell of parts which the reader of config.json has no arithmetic for: read as usual it would be far off."""


def named(model_type: str | None, architecture: str | None) -> Family | None:
    """The family of a model type, or of an architecture's class name when the type is missing."""
    if model_type is not None:
        return FAMILIES.get(model_type.lower().replace("-", "_"))
    squeezed = {key.replace("_", ""): family for key, family in FAMILIES.items()}
    stem = (architecture or "").lower()
    for ending in ("forcausallm", "forconditionalgeneration", "lmheadmodel"):
        stem = stem.removesuffix(ending)
    return squeezed.get(stem)
