"""What stands between the matmuls: norms, activations, routing, sampling. All of it could be fused away: no floor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from assay.records.estimate import Host, Layout, Phase
from assay.records.model_shape import Attention, Matrix, ModelShape
from assay.roofline import efficiency, sharding
from assay.roofline.matmuls import ACTIVATION_BYTES
from assay.roofline.work import Share, Work

KERNELS = efficiency.LAYER_KERNELS
_FP32_BYTES = 4
_SAMPLING_PASSES = 3
"""Softmax reads the logits, writes and reads probabilities."""
_HEAD_NORM = re.compile(r"(?:^|[._])(?:qk|q|k|q_a|kv_a)_norm\b")
"""Norms inside attention, as shapes and GGUF files call them: of queries and keys, or of their latents."""


def of_layer(
    shape: ModelShape,
    matrices: Sequence[Matrix],
    attention: Attention | None,
    layout: Layout,
    share: Share,
    host: Host,
) -> Iterator[Work]:
    """Norms, rotary embedding and cache write, activation, routing and quantization of one layer."""
    token = shape.hidden * ACTIVATION_BYTES
    # A norm with the residual added reads two vectors and writes two.
    apart = 0 if host.compiles else head_norms(matrices)
    yield _pass("norm", KERNELS["norm"] + apart, share.tokens * 4 * token * KERNELS["norm"])
    if attention is not None and attention.kind != "linear":
        width = attention.heads / layout.tp * attention.qk_head_dim
        width += sharding.kv_heads_per_rank(attention, layout.tp) * (attention.qk_head_dim + attention.v_head_dim)
        yield _pass("rope_and_cache", KERNELS["rope_and_cache"], share.tokens * 2 * width * ACTIVATION_BYTES)
    parts = {matrix.part for matrix in matrices}
    inner = sum(
        matrix.cols * sharding.local_share(matrix, attention, layout)
        for matrix in matrices
        if matrix.part in ("dense_ffn", "shared_experts")
        and sharding.kernel_name(matrix.name, matrix.part).endswith(".down")
    )
    # An activation reads gate and up and writes their product.
    yield _pass("activation", KERNELS["activation"], share.tokens * 3 * inner * ACTIVATION_BYTES)
    if "routed_experts" in parts:
        yield _pass("router", KERNELS["router"], share.tokens * shape.num_experts * _FP32_BYTES)
        spread = share.all_tokens * shape.top_k / max(1, layout.ep)
        # Spread tokens to experts, and add their results up; the rest is in the experts' own reading and writing.
        yield _pass("permute", KERNELS["permute"], spread * 2 * token)
    if any(matrix.storage.compute in ("fp8", "fp4", "int8") for matrix in matrices):
        yield _pass("quantize", KERNELS["quantize"], share.tokens * 3 * token)


def head_norms(matrices: Sequence[Matrix]) -> int:
    """Norms of queries and keys in a layer; what they move is small beside their starts, and not counted."""
    names = [matrix.name for matrix in matrices if _HEAD_NORM.search(matrix.name)]
    return sum(2 if "qk_norm" in name else 1 for name in names)


def of_step(shape: ModelShape, share: Share, phase: Phase, host: Host) -> Iterator[Work]:
    """Input preparation and sampling."""
    rows = share.tokens if phase == "decode" else share.sequences
    kernels = efficiency.STEP_KERNELS_OF.get(host.engine, efficiency.STEP_KERNELS)
    yield _pass("inputs", kernels.inputs, share.tokens * shape.hidden * ACTIVATION_BYTES)
    yield Work(
        name="sampling",
        part="sampling",
        kind="sampling",
        calls=kernels.sampling,
        bytes=rows * shape.vocab * _FP32_BYTES * _SAMPLING_PASSES,
        avoidable=True,
    )


def _pass(name: str, calls: int, moved: float) -> Work:
    return Work(
        name=f"elementwise.{name}", part="elementwise", kind="elementwise", calls=calls, bytes=moved, avoidable=True
    )
