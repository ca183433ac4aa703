"""What a call is made of: its sizes, its scales as the kernels index them, and what is refused."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch

from assay.kernels.shape import Device, Shape

FP8 = torch.float8_e4m3fn
GROUP = 128
"""Values that share a scale: 1 x 128 of activations, 128 x 128 of weights."""
NONE, BY_CHANNEL, BY_BLOCK = 0, 1, 2


class UnsupportedError(ValueError):
    """These shapes or types are not what the kernel can do; the message says which."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The sizes of one call."""

    shape: Shape
    tokens: int
    slots: int
    global_experts: int

    @property
    def pairs(self) -> int:
        """(token, slot) pairs, those of other ranks included."""
        return self.tokens * self.slots


@functools.cache
def device_of(where: torch.device) -> Device | None:
    """What measured tables call the chip; None where there is none (CPU, tensors without memory)."""
    if where.type != "cuda":
        return None
    major, minor = torch.cuda.get_device_capability(where)
    return Device(name=torch.cuda.get_device_name(where), capability=f"{major}.{minor}")


def describe(
    x: torch.Tensor,
    w13: torch.Tensor,
    w2: torch.Tensor,
    ids: torch.Tensor,
    scale: torch.Tensor | None,
    expert_map: torch.Tensor | None,
) -> Problem:
    """Sizes from the tensors."""
    shape = Shape(
        experts=w13.shape[0],
        intermediate=w2.shape[2],
        hidden=w13.shape[2],
        dtype="fp8" if scale is not None else "bf16",
    )
    everyone = w13.shape[0] if expert_map is None else expert_map.numel()
    return Problem(shape, x.shape[0], ids.shape[1], everyone)


def check(
    x: torch.Tensor,
    w13: torch.Tensor,
    w2: torch.Tensor,
    topk_weights: torch.Tensor,
    topk_ids: torch.Tensor,
    w13_scale: torch.Tensor | None = None,
    w2_scale: torch.Tensor | None = None,
    x_scale: torch.Tensor | None = None,
) -> None:
    """Refuse what the kernel would get wrong.

    Raises:
        UnsupportedError: With the values.
    """
    experts, twice, hidden = w13.shape
    rules = {
        f"w13 {tuple(w13.shape)} and w2 {tuple(w2.shape)} do not belong together": tuple(w2.shape)
        == (experts, hidden, twice // 2)
        and twice % 2 == 0,
        f"x {tuple(x.shape)} does not have {hidden} columns": x.dim() == 2 and x.shape[1] == hidden,  # noqa: PLR2004 - rows, columns
        f"topk_ids {tuple(topk_ids.shape)} and topk_weights {tuple(topk_weights.shape)} differ": topk_ids.shape
        == topk_weights.shape,
        f"topk_ids {tuple(topk_ids.shape)} do not have a row for each of x's {x.shape[0]}": topk_ids.dim() == 2  # noqa: PLR2004 - tokens, slots
        and topk_ids.shape[0] == x.shape[0],
        "the last dimension of x, w13 and w2 must be contiguous": x.stride(-1) == w13.stride(-1) == w2.stride(-1) == 1,
        "fp8 activations need x_scale": (x.dtype == FP8) == (x_scale is not None),
        "w13 and w2 need scales both or neither": (w13_scale is None) == (w2_scale is None),
    }
    if w13_scale is None:
        rules[f"weights {w13.dtype}, {w2.dtype} must have x's type {x.dtype}, bf16 or fp16"] = (
            w13.dtype == w2.dtype == x.dtype and x.dtype in {torch.bfloat16, torch.float16}
        )
    else:
        rules[f"scaled weights must be fp8 e4m3: {w13.dtype}, {w2.dtype}"] = w13.dtype == w2.dtype == FP8
        rules[f"fp8 needs hidden {hidden} and intermediate {twice // 2} divisible by {GROUP}"] = (
            hidden % GROUP == 0 and (twice // 2) % GROUP == 0
        )
    for problem, good in rules.items():
        if not good:
            raise UnsupportedError(problem)


@dataclass(frozen=True, slots=True)
class Scales:
    """Weight scales as the kernels index them: (expert, row or row block, column block)."""

    kind: int
    w13: torch.Tensor | None
    w2: torch.Tensor | None

    @classmethod
    def of(
        cls, w13: torch.Tensor, w2: torch.Tensor, w13_scale: torch.Tensor | None, w2_scale: torch.Tensor | None
    ) -> Scales:
        """As the kernels index them; None for weights without scales."""
        if w13_scale is None or w2_scale is None:
            return cls(NONE, None, None)
        kinds = {_kind(w13, w13_scale), _kind(w2, w2_scale)}
        if len(kinds) > 1:
            raise UnsupportedError(f"scales {tuple(w13_scale.shape)} and {tuple(w2_scale.shape)} are of two kinds")
        kind = kinds.pop()
        if kind == BY_BLOCK:
            return cls(kind, w13_scale, w2_scale)
        return cls(kind, _by_row(w13, w13_scale), _by_row(w2, w2_scale))

    def strides(self, which: torch.Tensor | None) -> tuple[int, int, int]:
        """By expert, row (block) and column block."""
        return (which.stride(0), which.stride(1), which.stride(2)) if which is not None else (0, 0, 0)


def _kind(weight: torch.Tensor, scale: torch.Tensor) -> int:
    experts, rows, columns = weight.shape
    if tuple(scale.shape) == (experts, rows // GROUP, columns // GROUP) and rows % GROUP == 0:
        return BY_BLOCK
    if scale.shape[0] == experts and scale.numel() in {experts, 2 * experts, experts * rows}:
        return BY_CHANNEL
    raise UnsupportedError(f"scale {tuple(scale.shape)} fits no scheme of weights {tuple(weight.shape)}")


def _by_row(weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """One for each output row; one for a whole expert is repeated without copying; gate and up may differ."""
    experts, rows, _ = weight.shape
    if scale.numel() == 2 * experts != experts * rows:
        return scale.reshape(experts, 2, 1).expand(experts, 2, rows // 2).reshape(experts, rows, 1)
    return scale.reshape(experts, -1, 1).expand(experts, rows, 1)


def activation_scale(x: torch.Tensor, x_scale: torch.Tensor | None) -> tuple[torch.Tensor | None, int, int]:
    """The scale with its strides by token and by group."""
    if x_scale is None:
        return None, 0, 0
    if x_scale.numel() == 1:
        return x_scale, 0, 0
    if x_scale.dim() == 2 and x_scale.shape[0] == x.shape[0] and x_scale.shape[1] in {1, x.shape[1] // GROUP}:  # noqa: PLR2004 - rows, columns
        return x_scale, x_scale.stride(0), x_scale.stride(1) if x_scale.shape[1] > 1 else 0
    raise UnsupportedError(f"x_scale {tuple(x_scale.shape)} fits no scheme of x {tuple(x.shape)}")
