"""Which layouts a model can have on a box: what has to divide what, and what fits into memory."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from assay.records.device import Box
from assay.records.estimate import Layout
from assay.records.model_shape import Attention, Matrix, ModelShape
from assay.roofline import memory, sharding

_GROUPS = {"nvfp4": 16, "mxfp4": 32, "mxfp8": 32, "iq4_nl": 32}
"""Weights that share a scale, of formats whose name does not say it."""


def check(shape: ModelShape, box: Box, layout: Layout) -> str | None:
    """Why a layout is impossible, in a sentence with the numbers; None when it is possible.

    Memory is not judged here: `memory.budget(...).fits` says that. Neither the vocabulary nor the width of experts in
    MXFP4 need divide: engines pad them.
    """
    if layout.devices > box.count:
        return f"it takes {layout.devices} devices, and there are {box.count}"
    if layout.pp > shape.num_layers:
        return f"{shape.num_layers} layers do not make {layout.pp} pipeline stages"
    return _experts(shape, layout) or _heads(shape, layout) or _widths(shape, layout)


def every(count: int, *, is_moe: bool, max_stages: int = 8) -> Iterator[Layout]:
    """Layouts of exactly so many devices; experts in slices, or spread over all ranks of a stage.

    DP stands for replicated attention, so only models with experts have it: whole replicas of a dense model are
    servers of their own.
    """
    for tp in _divisors(count):
        for pp in _divisors(count // tp):
            dp = count // (tp * pp)
            if pp > max_stages or (dp > 1 and not is_moe):
                continue
            for ep in sorted({1, tp * dp}) if is_moe else (1,):
                yield Layout(tp=tp, pp=pp, dp=dp, ep=ep)


def possible(
    shape: ModelShape, box: Box, *, memory_fraction: float = 0.9, cache_bytes_per_element: float = 2.0
) -> list[Layout]:
    """Layouts over the whole box that nothing forbids and that fit into memory."""
    return [
        layout
        for layout in every(box.count, is_moe=shape.is_moe)
        if check(shape, box, layout) is None
        and memory.budget(
            shape, box, layout, memory_fraction=memory_fraction, cache_bytes_per_element=cache_bytes_per_element
        ).fits
    ]


def _experts(shape: ModelShape, layout: Layout) -> str | None:
    if layout.ep == 1:
        return None
    if not shape.is_moe:
        return f"ep{layout.ep} spreads experts, and {shape.name} has none"
    ranks = layout.tp * layout.dp
    if ranks % layout.ep:
        return f"ep{layout.ep} does not divide the {ranks} ranks (tp{layout.tp} x dp{layout.dp})"
    if shape.num_experts % layout.ep:
        return f"{shape.num_experts} experts do not divide by ep{layout.ep}"
    return None


def _heads(shape: ModelShape, layout: Layout) -> str | None:
    mixers: set[Attention] = {group.attention for group in shape.layers if group.attention is not None}
    for mixer in sorted(mixers, key=lambda one: one.kind):
        if mixer.heads % layout.tp:
            return f"{mixer.heads} attention heads do not divide by tp{layout.tp}"
        if mixer.kind == "mla":
            continue
        if mixer.kv_heads % layout.tp and layout.tp % mixer.kv_heads:
            return f"{mixer.kv_heads} key/value heads and tp{layout.tp}: neither divides the other"
    return None


def _widths(shape: ModelShape, layout: Layout) -> str | None:
    slices = {
        "dense_ffn": layout.tp,
        "shared_experts": layout.tp,
        "routed_experts": layout.tp * layout.dp // layout.ep,
    }
    for _, matrix, _ in sharding.placed(shape):
        ranks = slices.get(matrix.part, 1)
        if ranks == 1 or not sharding.kernel_name(matrix.name, matrix.part).endswith(".down") or matrix.cols == 1:
            continue
        if matrix.part == "routed_experts" and sharding.expert_width(matrix) is not None:
            continue  # engines pad these: `memory.budget` says by how much
        group = group_size(matrix)
        what = matrix.part.replace("_", " ")
        if matrix.cols % ranks:
            return f"{what} of width {matrix.cols} do not divide by {ranks}"
        if matrix.cols // ranks % group:
            return (
                f"{what} of width {matrix.cols} leave {matrix.cols // ranks} on each of {ranks} ranks: "
                f"no multiple of the {group} weights that share a scale in {matrix.storage.name}"
            )
    return None


def group_size(matrix: Matrix) -> int:
    """Weights along the input that share a scale; 1 without scales."""
    name = matrix.storage.name.lower()
    told = re.search(r"(?:block|g|group)(\d+)", name)
    if told:
        return math.gcd(int(told[1]), matrix.cols)
    if re.fullmatch(r"i?q\d.*_k.*|t?q[12]_\d|iq[1234]_[xsm].*", name):
        return math.gcd(256, matrix.cols)
    if re.fullmatch(r"q\d_[01]", name):
        return math.gcd(32, matrix.cols)
    return next((math.gcd(size, matrix.cols) for known, size in _GROUPS.items() if known in name), 1)


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]
