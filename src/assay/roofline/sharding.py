"""Which part of each matrix stands on one rank, and which matrices run as one kernel.

TP splits attention by heads, feed-forward layers by their width, and the vocabulary. What a rank needs whole stands on
each: routers, indexers, MLA's down projections, key and value heads once there are fewer of them than ranks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache

from assay.records.estimate import Layout
from assay.records.model_shape import Attention, Matrix, ModelShape, Part

_KEY_OR_VALUE = re.compile(r"(^|[._])(k|v|kv|key|value)(_proj)?$")
_FUSED_QKV = re.compile(r"qkv|query_key_value|c_attn")
_LATENT_DOWN = re.compile(r"(^|[._])(q_a|kv_a|qkv_a|q_kv_a)(_|$)")
_ROW_PARALLEL = re.compile(r"(^|[._])(down|o|out|w2|wo|c_proj|dense)(_proj|_bias)?$")
"""Matrices whose inputs are split instead of their outputs."""
_FUSED: dict[Part, tuple[tuple[re.Pattern[str], str], ...]] = {
    "attention": (
        (re.compile(r"(attn_)?(q|k|v|kv|qkv|query|key|value)(_proj)?$"), "qkv_proj"),
        (re.compile(r"(attn_)?(q_a|kv_a)(_|$)"), "qkv_a_proj"),
    ),
    "linear_attention": ((re.compile(r"in_proj"), "in_proj"),),
    "indexer": ((re.compile(r"wk$|weights_proj$"), "wk"),),
}
_FUSED_FFN = (
    (re.compile(r"(ffn_)?(gate|up|gate_up|w1|w3)(_exps|_shexp)?(_proj|_bias)?$"), "gate_up"),
    (re.compile(r"(ffn_)?(down|w2)(_exps|_shexp)?(_proj|_bias)?$"), "down"),
)
"""Names to the kernel that engines run them in together."""


MXFP4_GROUP, MXFP4_TILE = 32, 64
"""Engines give each rank whole groups of MXFP4 and round its width up to a tile, so that TP need not divide.

Source: vLLM, model_executor/models/gpt_oss.py (ceil of groups over ranks) and layers/quantization/mxfp4.py (rounded up
to 64, with FlashInfer's kernels to 256, on AMD to 128); SGLang, layers/quantization/mxfp4.py, likewise. The smallest of
these is taken.
"""


def local_share(matrix: Matrix, attention: Attention | None, layout: Layout) -> float:
    """Part of a matrix's weights (all copies) on one rank, padding included: the shares can add up to more than 1."""
    if matrix.part in ("router", "indexer", "vector"):
        return 1.0
    if matrix.part == "routed_experts":
        return expert_slice(matrix, layout) / layout.ep
    if matrix.part == "attention" and attention is not None:
        return _attention_share(matrix.name, attention, layout.tp)
    return 1 / layout.tp


def expert_slices(layout: Layout) -> int:
    """Ranks that share each expert."""
    return layout.tp * layout.dp // layout.ep


def expert_slice(matrix: Matrix, layout: Layout) -> float:
    """Part of one expert's matrix on a rank that has a slice of it."""
    slices, width = expert_slices(layout), expert_width(matrix)
    return 1 / slices if width is None else padded_width(width, slices) / width


def expert_width(matrix: Matrix) -> int | None:
    """The dimension that TP cuts, of matrices that engines pad; None for others, and for biases."""
    if not matrix.storage.name.lower().startswith("mxfp4") or matrix.cols == 1:
        return None
    if _ROW_PARALLEL.search(matrix.name):
        return matrix.cols
    return matrix.rows // 2 if "gate_up" in matrix.name else matrix.rows


def padded_width(width: int, slices: int) -> int:
    """Width of a rank's slice: whole groups, then whole tiles."""
    groups = math.ceil(width / MXFP4_GROUP / slices)
    return math.ceil(groups * MXFP4_GROUP / MXFP4_TILE) * MXFP4_TILE


def padding(shape: ModelShape, layout: Layout) -> tuple[int, int, float] | None:
    """What engines pad experts with: width as stored, width on a rank, bytes on each device; None when they divide."""
    widths: tuple[int, int] | None = None
    added = 0.0
    for count, matrix, _ in placed(shape):
        width = expert_width(matrix) if matrix.part == "routed_experts" else None
        if width is None:
            continue
        more = local_share(matrix, None, layout) - 1 / (layout.tp * layout.dp)
        if more > 0:
            widths = width, padded_width(width, expert_slices(layout))
            added += count * matrix.weight_bytes * more
    return None if widths is None else (*widths, added / layout.pp)


def activations(matrix: Matrix, share: float) -> tuple[float, float]:
    """Elements that one token brings to a matrix, and takes from it, when a rank holds that share of it."""
    if _ROW_PARALLEL.search(matrix.name):
        return matrix.cols * share, float(matrix.rows)
    return float(matrix.cols), matrix.rows * share


def kv_heads_per_rank(attention: Attention, tp: int) -> float:
    """Key/value heads on a rank; at least one."""
    return max(1.0, attention.kv_heads / tp)


@lru_cache(maxsize=4096)
def kernel_name(name: str, part: Part) -> str:
    """`attention.qkv_proj`, `routed_experts.gate_up` ...: the operation that a matrix of this name is part of."""
    last = name.removeprefix(f"{part}.").rsplit(".", 1)[-1]
    patterns = _FUSED.get(part, _FUSED_FFN if part.endswith(("ffn", "experts")) else ())
    return f"{part}.{next((told for pattern, told in patterns if pattern.match(last)), last)}"


def placed(shape: ModelShape) -> Iterator[tuple[int, Matrix, Attention | None]]:
    """Every matrix of the main model: how many layers have it, and with which attention."""
    yield from ((1, matrix, None) for matrix in shape.outer)
    for group in shape.layers:
        yield from ((group.count, matrix, group.attention) for matrix in group.matrices)


def weight_bytes_per_rank(shape: ModelShape, layout: Layout) -> float:
    """Bytes of weights on one rank if the layers fall evenly on the pipeline stages."""
    return sum(n * one.weight_bytes * local_share(one, mixer, layout) for n, one, mixer in placed(shape)) / layout.pp


def _attention_share(name: str, attention: Attention, tp: int) -> float:
    if attention.kind == "mla":
        return 1.0 if _LATENT_DOWN.search(name) else 1 / tp
    if _KEY_OR_VALUE.search(name):
        return 1 / min(tp, attention.kv_heads)
    if _FUSED_QKV.search(name):
        queries = attention.heads * attention.qk_head_dim
        keys_values = attention.kv_heads * (attention.qk_head_dim + attention.v_head_dim)
        split = queries / tp + keys_values / min(tp, attention.kv_heads)
        return split / (queries + keys_values)
    return 1 / tp
