"""Multi-head latent attention: one latent a token for all heads; and the indexer that chooses tokens for it.

Source: DeepSeek-V2, arXiv 2405.04434, section 2.1; the indexer: DeepSeek-V3.2-Exp's report and inference/model.py.
"""

from __future__ import annotations

from assay.models.config import Config
from assay.models.full_attention import HEAD_KEYS
from assay.models.laws import IndexerUse
from assay.models.pieces import Piece, linear, vector
from assay.records.model_shape import Attention, Indexer

SCALED_VALUES = 128
"""FP8 index keys that share one FP32 scale."""
SCALE_BYTES = 4


def attention(config: Config, use: IndexerUse) -> Attention:
    """The latent, the heads, and the indexer when there is one."""
    nope, rope = config.whole("qk_nope_head_dim", least=0) or 0, config.need("qk_rope_head_dim")
    heads = config.need(*HEAD_KEYS)
    return Attention(
        kind="mla",
        heads=heads,
        kv_heads=heads,
        qk_head_dim=nope + rope,
        v_head_dim=config.need("v_head_dim"),
        latent_rank=config.need("kv_lora_rank"),
        rope_dim=rope,
        indexer=None if use == "none" else _indexer(config, use),
    )


def _indexer(config: Config, use: IndexerUse) -> Indexer:
    """Its keys are cached in FP8 with an FP32 scale for each 128 of them: 132 bytes at a size of 128."""
    head_dim = config.need("index_head_dim")
    cached = head_dim + SCALE_BYTES * -(-head_dim // SCALED_VALUES)
    return Indexer(
        heads=config.need("index_n_heads"),
        head_dim=head_dim,
        top_k=config.need("index_topk"),
        cache_bytes_per_token=cached if use == "own" else 0,
        shared=use == "shared",
    )


def pieces(config: Config, mixer: Attention, hidden: int) -> list[Piece]:
    """The matrices and vectors of one layer's attention, its indexer included."""
    latent, rope = mixer.latent_rank or 0, mixer.rope_dim or 0
    queries = mixer.heads * mixer.qk_head_dim
    expanded = mixer.heads * (mixer.qk_head_dim - rope + mixer.v_head_dim)
    q_rank = config.whole("q_lora_rank")
    if q_rank is None:
        found = [linear("self_attn.q_proj", "attention", queries, hidden)]
    else:
        found = [
            linear("self_attn.q_a_proj", "attention", q_rank, hidden),
            linear("self_attn.q_b_proj", "attention", queries, q_rank),
            vector("q_a_norm", q_rank),
        ]
    found += [
        linear("self_attn.kv_a_proj_with_mqa", "attention", latent + rope, hidden),
        linear("self_attn.kv_b_proj", "attention", expanded, latent),
        vector("kv_a_norm", latent),
        linear("self_attn.o_proj", "attention", hidden, mixer.heads * mixer.v_head_dim),
    ]
    if config.flag("attention_bias"):
        found.append(vector("a_and_o_bias", (q_rank or 0) + latent + rope + hidden))
    if mixer.indexer and not mixer.indexer.shared:
        found += _indexer_pieces(mixer.indexer, hidden, q_rank or hidden)
    return found


def _indexer_pieces(indexer: Indexer, hidden: int, q_rank: int) -> list[Piece]:
    return [
        linear("self_attn.indexer.wq_b", "indexer", indexer.heads * indexer.head_dim, q_rank),
        linear("self_attn.indexer.wk", "indexer", indexer.head_dim, hidden),
        linear("self_attn.indexer.weights_proj", "indexer", indexer.heads, hidden),
        vector("index_k_norm", indexer.head_dim, copies=2),
    ]
