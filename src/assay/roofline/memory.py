"""Where the memory of a device goes, and how many tokens the cache holds."""

from __future__ import annotations

from assay.errors import UsageError
from assay.records.device import Box
from assay.records.estimate import Layout, MemoryBudget
from assay.records.model_shape import Attention, LayerGroup, ModelShape
from assay.roofline import sharding

GRAPH_BYTES = 1.2e9
"""CUDA context, communication buffers and captured graphs of an engine on one GPU.

Source: vLLM 0.26.0 on one H200 (src/assay/data/published/assay-vllm-h200.toml): 0.22-0.24 GiB outside of PyTorch and
0.80-0.98 GiB of graphs. Of several GPUs, nobody measured it here.
"""
SAMPLED_SEQUENCES = ((70 * 2**30, 1024), (0, 256))
"""Sequences that vLLM profiles its sampler with, on devices from so many bytes up: its default limit on sequences
(vLLM 0.26.0, engine/arg_utils.py)."""
_SAMPLING_BYTES = 2 + 4 + 4 + 8
"""Of a logit while top-k and top-p are applied: BF16 and FP32, and sorted FP32 with its index (same source)."""
_ACTIVATION_BYTES = 2
_LIVE_HIDDEN = 6
"""Vectors of the hidden size alive at a time in a layer: residual, input, output, and their copies. Assumed."""


def budget(
    shape: ModelShape,
    box: Box,
    layout: Layout,
    *,
    memory_fraction: float = 0.9,
    cache_bytes_per_element: float = 2.0,
    max_step_tokens: int = 8192,
) -> MemoryBudget:
    """What is left for the cache on the fullest device, and the tokens that gives over the whole box.

    cache = fraction * memory - weights - activations of the largest step - the engine's own. TP splits key/value heads
    while there are enough of them; MLA's latent stands whole on each TP rank; DP splits the sequences; PP the layers.
    vLLM takes activations out of the fraction; SGLang pays them from what it leaves free. Three measured pools were
    known when this was written, so that agreement with them is no independent evidence: GLM-5 under SGLang (314,304
    tokens at 0.92: voipmonitor/rtx6kpro, models/glm5.md), Qwen3 30B-A3B and Llama 3.1 8B under vLLM (744,688 and
    919,824 tokens at 0.92: src/assay/data/published/assay-vllm-h200.toml).

    Raises:
        UsageError: nothing is known of the device's memory, or the fraction is none.
    """
    if not 0 < memory_fraction <= 1:
        raise UsageError(f"a memory fraction of {memory_fraction} is none", hint="0.9 leaves a tenth free")
    fact = box.device.fact("memory_bytes")
    if fact is None:
        raise UsageError(f"{box.device.name} has no memory_bytes", hint="add that fact to its TOML file")
    weights = sharding.weight_bytes_per_rank(shape, layout)
    # Engines load an encoder of images unless told otherwise, and split it over the TP ranks as they do with the model
    # (vLLM: --mm-encoder-tp-mode weights, the default).
    weights += sum(each.weight_bytes for each in shape.encoders) / layout.tp
    activations = _activation_bytes(shape, layout, max_step_tokens)
    if box.device.kind == "gpu":
        activations = max(activations, _sampling_bytes(shape, fact.value))
    graphs = GRAPH_BYTES if box.device.kind == "gpu" else 0.0
    left = memory_fraction * fact.value - weights - activations - graphs
    per_token = cache_bytes_per_token(shape, layout, cache_bytes_per_element)
    tokens = int(max(0.0, left) / per_token) * layout.dp if per_token else 0
    return MemoryBudget(
        device_bytes=fact.value,
        weight_bytes=weights,
        activation_bytes=activations,
        graph_bytes=graphs,
        reserved_bytes=(1 - memory_fraction) * fact.value,
        cache_bytes=max(0.0, left),
        cache_bytes_per_token=per_token,
        cache_tokens=tokens,
        fits=left > 0,
        notes=_notes(shape, layout, left),
    )


def cache_bytes_per_token(shape: ModelShape, layout: Layout, bytes_per_element: float = 2.0) -> float:
    """Cache of one token on one device, windows not yet full."""
    return sum(group.count * _layer_token_bytes(group, layout, bytes_per_element) for group in shape.layers) / layout.pp


def _layer_token_bytes(group: LayerGroup, layout: Layout, bytes_per_element: float) -> float:
    attention = group.attention
    if attention is None:
        return 0.0
    indexer = attention.indexer
    own = indexer.cache_bytes_per_token if indexer and not indexer.shared else 0.0
    return _elements(attention, layout) * bytes_per_element + own


def _elements(attention: Attention, layout: Layout) -> float:
    if attention.kind != "full":
        return attention.cached_elements_per_token
    return sharding.kv_heads_per_rank(attention, layout.tp) * (attention.qk_head_dim + attention.v_head_dim)


def _activation_bytes(shape: ModelShape, layout: Layout, step_tokens: int) -> float:
    """The largest step's activations: the residual stream, the widest layer's inner vectors, and some logits."""
    inner = max(
        (
            matrix.cols * matrix.active_copies * sharding.local_share(matrix, group.attention, layout) * 3
            if matrix.part in ("dense_ffn", "routed_experts")
            else 0.0
            for group in shape.layers
            for matrix in group.matrices
            if sharding.kernel_name(matrix.name, matrix.part).endswith(".down")
        ),
        default=0.0,
    )
    spread = shape.hidden * (shape.top_k if shape.is_moe else 0)
    return step_tokens * (_LIVE_HIDDEN * shape.hidden + inner + spread) * _ACTIVATION_BYTES


def _sampling_bytes(shape: ModelShape, device_bytes: float) -> float:
    """What the sampler takes for the most sequences; after the layers, so that the larger of both counts."""
    sequences = next(number for least, number in SAMPLED_SEQUENCES if device_bytes >= least)
    return float(sequences * shape.vocab * _SAMPLING_BYTES)


def _notes(shape: ModelShape, layout: Layout, left: float) -> list[str]:
    notes = []
    padded = sharding.padding(shape, layout)
    if padded is not None:
        width, each, added = padded
        notes.append(
            f"Experts of width {width:,} are cut into {sharding.expert_slices(layout)} slices padded to {each:,}: "
            f"{added / 1e9:.1f} GB of each device's weights are padding."
        )
    if left <= 0:
        notes.append(f"The weights do not fit: {-left / 1e9:.1f} GB are missing on each device.")
    if layout.tp > 1 and any(group.attention and group.attention.kind == "mla" for group in shape.layers):
        notes.append("Every TP rank holds the whole MLA cache: TP adds no room for tokens, DP attention does.")
    if any(group.attention and group.attention.window for group in shape.layers):
        notes.append("Layers with a window are counted in full: an engine that frees what left the window holds more.")
    if any(group.attention and group.attention.kind == "linear" for group in shape.layers):
        notes.append("States of linear attention are not counted: they grow with sequences, not with tokens.")
    return notes
