"""Random experts, tokens and routings of a shape on the device, and the right answer for some tokens in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

FP8_BLOCK = 128
CHECKED_TOKENS = 8
Tensor = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Weights of one rank."""

    w13: Tensor
    """(local experts, 2 * width, hidden): gate above up."""
    w2: Tensor
    """(local experts, hidden, width)."""
    w13_scale: Tensor | None
    """(local experts, 2 * width / 128, hidden / 128), FP8 only."""
    w2_scale: Tensor | None
    expert_map: Tensor | None
    """(experts,) of int32: place on this rank, or -1; None when the rank has them all."""
    experts: int
    top_k: int
    shape: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Tokens with their routing."""

    x: Tensor
    """(tokens, hidden) in BF16."""
    weights: Tensor
    """(tokens, top_k) in FP32."""
    ids: Tensor
    """(tokens, top_k) of int32, over all experts of the layer."""

    def local_counts(self, held: Experts) -> tuple[int, int]:
        """Distinct experts of this rank that are chosen, and pairs."""
        chosen = self.ids if held.expert_map is None else held.expert_map[self.ids.long()]
        chosen = chosen[chosen >= 0]
        return int(torch.unique(chosen).numel()), int(chosen.numel())


def make_experts(shape: dict[str, Any], seed: int = 0, device: str = "cuda") -> Experts:
    """Random weights, scaled so that outputs are of the order of one; every FP8 block has a scale of its own."""
    held = empty_experts(shape, device)
    generator = torch.Generator(device=device).manual_seed(seed)
    for weights, scales in ((held.w13, held.w13_scale), (held.w2, held.w2_scale)):
        _, rows, columns = weights.shape
        for each in weights:  # one expert at a time: a large layer in float32 would not fit
            drawn = torch.randn((rows, columns), generator=generator, device=device)
            each.copy_(drawn if scales is not None else drawn * columns**-0.5)
        if scales is not None:
            drawn = torch.rand(scales.shape, generator=generator, device=device)
            scales.copy_((0.5 + drawn) * columns**-0.5)
    return held


def empty_experts(shape: dict[str, Any], device: str = "cuda") -> Experts:
    """The same with whatever lies in the memory: for launches whose results nobody looks at."""
    local, hidden, width = shape["local_experts"], shape["hidden"], shape["width"]
    fp8 = shape["dtype"] == "fp8"
    w13, w13_scale = _empty(local, 2 * width, hidden, device, fp8=fp8)
    w2, w2_scale = _empty(local, hidden, width, device, fp8=fp8)
    places = None
    if local < shape["experts"]:
        places = torch.full((shape["experts"],), -1, dtype=torch.int32, device=device)
        places[:local] = torch.arange(local, dtype=torch.int32, device=device)
    return Experts(
        w13=w13,
        w2=w2,
        w13_scale=w13_scale,
        w2_scale=w2_scale,
        expert_map=places,
        experts=shape["experts"],
        top_k=shape["top_k"],
        shape=shape,
    )


def _empty(count: int, rows: int, columns: int, device: str, *, fp8: bool) -> tuple[Tensor, Tensor | None]:
    dtype = torch.float8_e4m3fn if fp8 else torch.bfloat16
    found = torch.empty((count, rows, columns), dtype=dtype, device=device)
    blocks = count, -(-rows // FP8_BLOCK), -(-columns // FP8_BLOCK)
    return found, torch.empty(blocks, dtype=torch.float32, device=device) if fp8 else None


def make_batch(held: Experts, tokens: int, exponent: float, seed: int) -> Batch:
    """Tokens whose experts are drawn without replacement in proportion to rank**-exponent, ranks shuffled once.

    Exponential clocks: the first `top_k` to ring are a draw without replacement with these weights.
    """
    device = held.w13.device
    generator = torch.Generator(device=device).manual_seed(seed)
    order = torch.randperm(held.experts, generator=torch.Generator(device=device).manual_seed(1), device=device)
    popularity = (1.0 + order.float()) ** -exponent
    clocks = torch.rand((tokens, held.experts), generator=generator, device=device).clamp_(1e-9).log_() / popularity
    ids = clocks.topk(held.top_k, dim=1).indices.to(torch.int32)
    weights = torch.rand((tokens, held.top_k), generator=generator, device=device) + 0.1
    hidden = held.w13.shape[2]
    return Batch(
        x=torch.randn((tokens, hidden), generator=generator, device=device, dtype=torch.bfloat16),
        weights=weights / weights.sum(dim=1, keepdim=True),
        ids=ids,
    )


def answers(held: Experts, batch: Batch) -> tuple[Tensor, Tensor]:
    """Rows of some tokens and what is right for them, in float64, every step unrounded."""
    tokens = batch.x.shape[0]
    device = held.w13.device
    rows = torch.unique(torch.linspace(0, tokens - 1, min(tokens, CHECKED_TOKENS), device=device).round().long())
    found = torch.zeros((rows.numel(), held.w2.shape[1]), dtype=torch.float64, device=device)
    for place, row in enumerate(rows.tolist()):
        for slot in range(held.top_k):
            expert = int(batch.ids[row, slot])
            local = expert if held.expert_map is None else int(held.expert_map[expert])
            if local < 0:
                continue
            gate, up = (dequantized(held.w13, held.w13_scale, local) @ batch.x[row].double()).chunk(2)
            inner = torch.nn.functional.silu(gate) * up
            found[place] += float(batch.weights[row, slot]) * (dequantized(held.w2, held.w2_scale, local) @ inner)
    return rows, found


def dequantized(weights: Tensor, scales: Tensor | None, expert: int) -> Tensor:
    """One expert's matrix in float64."""
    plain = weights[expert].double()
    if scales is None:
        return plain
    wide = scales[expert].double().repeat_interleave(FP8_BLOCK, 0).repeat_interleave(FP8_BLOCK, 1)
    return plain * wide[: plain.shape[0], : plain.shape[1]]
