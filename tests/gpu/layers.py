"""Seeded MoE layers and their result in float32, for the kernel's tests."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

FP8 = torch.float8_e4m3fn
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass
class Layer:
    x: torch.Tensor
    w13: torch.Tensor
    w2: torch.Tensor
    weights: torch.Tensor
    ids: torch.Tensor
    w13_scale: torch.Tensor | None = None
    w2_scale: torch.Tensor | None = None
    expert_map: torch.Tensor | None = None

    def arguments(self) -> tuple:
        return self.x, self.w13, self.w2, self.weights, self.ids

    def options(self) -> dict:
        return {"w13_scale": self.w13_scale, "w2_scale": self.w2_scale, "expert_map": self.expert_map}


def layer(
    tokens: int,
    *,
    experts: int = 8,
    intermediate: int = 64,
    hidden: int = 128,
    slots: int = 2,
    dtype: torch.dtype = torch.float16,
) -> Layer:
    """A layer with routing drawn uniformly, without repetition within a token."""
    maker = torch.Generator().manual_seed(7 * tokens + experts)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=maker).to(DEVICE)

    ids = torch.stack([torch.randperm(experts, generator=maker)[:slots] for _ in range(tokens)])
    return Layer(
        x=normal(tokens, hidden).to(dtype),
        w13=(normal(experts, 2 * intermediate, hidden) / hidden**0.5).to(dtype),
        w2=(normal(experts, hidden, intermediate) / intermediate**0.5).to(dtype),
        weights=torch.softmax(normal(tokens, slots), 1),
        ids=ids.to(torch.int32).to(DEVICE),
    )


def narrowed(one: Layer, quantize) -> Layer:
    """The same layer with fp8 weights."""
    (w13, w13_scale), (w2, w2_scale) = quantize(one.w13), quantize(one.w2)
    return replace(one, w13=w13, w2=w2, w13_scale=w13_scale, w2_scale=w2_scale)


def by_blocks(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One scale for each 128 x 128 weights."""
    experts, rows, columns = weight.shape
    tiles = weight.float().reshape(experts, rows // 128, 128, columns // 128, 128)
    scale = tiles.abs().amax((2, 4)) / 448
    return (tiles / scale[:, :, None, :, None]).reshape(weight.shape).to(FP8), scale


def by_rows(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One scale for each output row."""
    scale = weight.float().abs().amax(2, keepdim=True) / 448
    return (weight.float() / scale).to(FP8), scale


def by_experts(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One scale for each expert."""
    scale = weight.float().abs().amax((1, 2)) / 448
    return (weight.float() / scale[:, None, None]).to(FP8), scale


def widened(weight: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
    """The weights that narrow ones stand for, in float32."""
    if scale is None:
        return weight.float()
    _, rows, columns = weight.shape
    if tuple(scale.shape[1:]) == (rows // 128, columns // 128):
        return weight.float() * scale.repeat_interleave(128, 1).repeat_interleave(128, 2)
    return weight.float() * scale.reshape(weight.shape[0], -1, 1)


def reference(one: Layer) -> torch.Tensor:
    """The layer in float32, token by token and slot by slot."""
    w13, w2 = widened(one.w13, one.w13_scale), widened(one.w2, one.w2_scale)
    ids = one.ids if one.expert_map is None else torch.where(one.ids >= 0, one.expert_map[one.ids.long()], -1)
    out = torch.zeros(one.x.shape, device=one.x.device)
    for token, experts in enumerate(ids.tolist()):
        for slot, expert in enumerate(experts):
            if expert >= 0:
                gate, up = (w13[expert] @ one.x[token].float()).chunk(2)
                part = w2[expert] @ (torch.nn.functional.silu(gate) * up)
                out[token] += one.weights[token, slot] * part
    return out


def error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """||found - wanted|| / ||wanted||; NaN where anything was not written."""
    return float((found.float() - wanted).norm() / wanted.norm())
