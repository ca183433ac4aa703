"""Seeded layers on the device, calls with tokens and routing of their own, and rows worked out in float32."""

# ruff: noqa: PLC0415 - processes that compile start without torch; it is loaded where it is used
from __future__ import annotations

import statistics
from dataclasses import dataclass

from benchmarks.gpu.moe_slices import SLOTS, Slice

TOUCHED_BYTES = 1 << 30
"""Bytes that pass before a weight is read again: twenty times an H200's L2 cache."""
CHECKED_TOKENS = 6


@dataclass
class Layer:
    w13: object
    w2: object
    w13_scale: object
    w2_scale: object
    expert_map: object


@dataclass
class Calls:
    """Several calls' tokens and routing, and where the sums go."""

    x: list
    weights: list
    ids: list
    out: list
    distinct: float
    pairs: float


def make_layer(one: Slice, dtype: str) -> Layer:
    import torch

    def weights(*size: int) -> tuple:
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
    expert_map = None
    if one.mapped:
        expert_map = torch.full((one.global_experts,), -1, dtype=torch.int32, device="cuda")
        place = torch.randperm(one.global_experts, device="cuda")[: one.experts].sort().values
        expert_map[place] = torch.arange(one.experts, dtype=torch.int32, device="cuda")
    return Layer(w13, w2, w13_scale, w2_scale, expert_map)


def make_calls(one: Slice, layer: Layer, tokens: int, routing: str) -> Calls:
    import torch

    def draw(_: int) -> tuple:
        score = torch.rand(tokens, one.global_experts, device="cuda").log_().neg_()
        if routing == "zipf":
            score *= torch.arange(1, one.global_experts + 1, device="cuda")
        ids = score.topk(SLOTS, largest=False).indices.to(torch.int32)
        here = ids if layer.expert_map is None else layer.expert_map[ids.long()]
        here = here[here >= 0]
        return ids, int(here.unique().numel()), int(here.numel())

    each = 3 * one.intermediate * one.hidden * layer.w13.element_size()
    expected = one.experts * (1 - (1 - SLOTS / one.global_experts) ** tokens) * each
    count = int(min(16, max(2, TOUCHED_BYTES // max(expected, 1))))
    drawn = [draw(index) for index in range(count)]
    x = [torch.randn(tokens, one.hidden, device="cuda", dtype=torch.bfloat16) for _ in drawn]
    return Calls(
        x=x,
        weights=[torch.rand(tokens, SLOTS, device="cuda").softmax(1) for _ in drawn],
        ids=[ids for ids, *_ in drawn],
        out=[torch.empty_like(tensor) for tensor in x],
        distinct=statistics.mean(found for _, found, _ in drawn),
        pairs=statistics.mean(found for *_, found in drawn),
    )


def wanted_rows(layer: Layer, calls: Calls, index: int) -> tuple:
    """Rows of one call in float32, drawn at random."""
    import torch

    def wide(weight: torch.Tensor, scale: torch.Tensor | None, expert: int) -> torch.Tensor:
        found = weight[expert].float()
        if scale is None:
            return found
        return found * scale[expert].repeat_interleave(128, 0).repeat_interleave(128, 1)

    tokens = torch.randperm(calls.x[index].shape[0])[:CHECKED_TOKENS].tolist()
    rows = torch.zeros(len(tokens), calls.x[index].shape[1], device="cuda")
    ids = calls.ids[index][tokens]
    ids = (ids if layer.expert_map is None else layer.expert_map[ids.long()]).tolist()
    for place, token in enumerate(tokens):
        for slot, expert in enumerate(ids[place]):
            if expert >= 0:
                gate, up = (wide(layer.w13, layer.w13_scale, expert) @ calls.x[index][token].float()).chunk(2)
                part = wide(layer.w2, layer.w2_scale, expert) @ (torch.nn.functional.silu(gate) * up)
                rows[place] += calls.weights[index][token, slot] * part
    return tokens, rows
