"""Layers on the device, and calls with tokens and routing of their own, in the types of the lab's programs."""

# ruff: noqa: PLC0415 - processes that compile start without torch; it is loaded where it is used
from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.gpu.moe_slices import SLOTS, Slice

if TYPE_CHECKING:
    from assay.lab.on_gpu.expert_data import Batch, Experts

TOUCHED_BYTES = 1 << 30
"""Bytes that pass before a weight is read again: twenty times an H200's L2 cache."""
MOST_CALLS = 16


@dataclass(frozen=True)
class Batches:
    """Several calls' tokens and routing, with the means over them."""

    each: list[Batch]
    distinct: float
    pairs: float


def make_layer(one: Slice, dtype: str) -> Experts:
    """Random weights; in fp8 each 128 x 128 is scaled by its largest, as a quantized model is. Places are shuffled.

    The lab draws fp8 weights and their scales at random (`assay.lab.on_gpu.expert_data`). Recorded times rest on these.
    """
    import torch

    from assay.lab.on_gpu.expert_data import Experts

    def weights(*size: int) -> tuple[Any, Any]:
        made = torch.empty(size, dtype=torch.bfloat16, device="cuda")
        for expert in made:
            expert.normal_(0, size[-1] ** -0.5)
        if dtype == "bf16":
            return made, None
        narrow = torch.empty(size, dtype=torch.float8_e4m3fn, device="cuda")
        scale = torch.empty((size[0], size[1] // 128, size[2] // 128), device="cuda")
        for index, expert in enumerate(made):
            tiles = expert.float().view(size[1] // 128, 128, size[2] // 128, 128)
            scale[index] = tiles.abs().amax((1, 3)) / 448
            narrow[index] = (tiles / scale[index][:, None, :, None]).view(size[1:]).to(narrow.dtype)
        return narrow, scale

    w13, w13_scale = weights(one.experts, 2 * one.intermediate, one.hidden)
    w2, w2_scale = weights(one.experts, one.hidden, one.intermediate)
    places = None
    if one.mapped:
        places = torch.full((one.global_experts,), -1, dtype=torch.int32, device="cuda")
        here = torch.randperm(one.global_experts, device="cuda")[: one.experts].sort().values
        places[here] = torch.arange(one.experts, dtype=torch.int32, device="cuda")
    return Experts(
        w13=w13,
        w2=w2,
        w13_scale=w13_scale,
        w2_scale=w2_scale,
        expert_map=places,
        experts=one.global_experts,
        top_k=SLOTS,
        shape={},
    )


def make_batches(one: Slice, held: Experts, tokens: int, routing: str) -> Batches:
    """As many calls as touch `TOUCHED_BYTES` of weights, sixteen at most and two at least."""
    import torch

    from assay.lab.on_gpu.expert_data import Batch

    def draw() -> Batch:
        score = torch.rand(tokens, one.global_experts, device="cuda").log_().neg_()
        if routing == "zipf":
            score *= torch.arange(1, one.global_experts + 1, device="cuda")
        ids = score.topk(SLOTS, largest=False).indices.to(torch.int32)
        x = torch.randn(tokens, one.hidden, device="cuda", dtype=torch.bfloat16)
        return Batch(x=x, weights=torch.rand(tokens, SLOTS, device="cuda").softmax(1), ids=ids)

    expert_bytes = 3 * one.intermediate * one.hidden * held.w13.element_size()
    expected = one.experts * (1 - (1 - SLOTS / one.global_experts) ** tokens) * expert_bytes
    count = int(min(MOST_CALLS, max(2, TOUCHED_BYTES // max(expected, 1))))
    drawn = [draw() for _ in range(count)]
    counts = [batch.local_counts(held) for batch in drawn]
    return Batches(
        each=drawn,
        distinct=statistics.mean(distinct for distinct, _ in counts),
        pairs=statistics.mean(pairs for _, pairs in counts),
    )
