"""One MoE layer's experts: `fused_moe(x, w13, w2, topk_weights, topk_ids)`; torch and triton are needed to import this.

Launches: 2 for a handful of tokens ("pairs"), 3 for decode batches ("scan": gate-up, down, sum), 4 for larger ones
("sorted": sort, gate-up, down, sum), one more where activations must first become fp8. The un-activated gate and up
products never leave the chip. Every token's sum is taken in the order of its slots, without atomics: equal inputs give
equal bits. Nothing waits for the host, and every size is known from shapes: it can be captured into a CUDA graph.
"""

from __future__ import annotations

import torch

from assay.kernels.choose import allowed, choose
from assay.kernels.launch import Call, by_pairs
from assay.kernels.launch_tiles import by_tiles
from assay.kernels.operands import FP8, Scales, UnsupportedError, check, describe, device_of
from assay.kernels.tiles import MoeConfig

__all__ = ["UnsupportedError", "check", "fused_moe"]


def fused_moe(
    x: torch.Tensor,
    w13: torch.Tensor,
    w2: torch.Tensor,
    topk_weights: torch.Tensor,
    topk_ids: torch.Tensor,
    *,
    w13_scale: torch.Tensor | None = None,
    w2_scale: torch.Tensor | None = None,
    expert_map: torch.Tensor | None = None,
    config: MoeConfig | None = None,
    out: torch.Tensor | None = None,
    x_scale: torch.Tensor | None = None,
    scratch: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> torch.Tensor:
    """Sum over a token's experts of weight * down(silu(gate(x)) * up(x)).

    Args:
        x: (tokens, hidden), bf16 or fp16; or fp8 with `x_scale`.
        w13: (experts, 2 * intermediate, hidden): gate rows, then up rows. Same type as x, or fp8.
        w2: (experts, hidden, intermediate).
        topk_weights: (tokens, slots).
        topk_ids: (tokens, slots), among all experts; negative: none.
        w13_scale: Of fp8 weights: (experts, 2 * intermediate / 128, hidden / 128), or one a row, or one an expert.
        w2_scale: Likewise.
        expert_map: From all experts to those in w13; -1: on another rank, contributes nothing here.
        config: Tiles; None: `assay.kernels.choose.choose`.
        out: (tokens, hidden), written in full.
        x_scale: (tokens, hidden / 128), (tokens, 1) or one value.
        scratch: Memory for intermediate results, two tensors, of which the first may share memory with `out`; None:
            allocated.

    Returns:
        `out`.

    Raises:
        UnsupportedError: A shape, type or layout that the kernel cannot do.
    """
    problem = describe(x, w13, w2, topk_ids, w13_scale, expert_map)
    check(x, w13, w2, topk_weights, topk_ids, w13_scale, w2_scale, x_scale)
    chosen = config or choose(
        problem.shape,
        tokens=problem.tokens,
        slots=problem.slots,
        global_experts=problem.global_experts,
        device=device_of(x.device),
    )
    if not allowed(chosen, tokens=problem.tokens, slots=problem.slots):
        raise UnsupportedError(f"path {chosen.path!r} cannot carry {problem.tokens} x {problem.slots} pairs")
    if out is None:
        dtype = x.dtype if x.dtype != FP8 else torch.bfloat16
        out = torch.empty((problem.tokens, problem.shape.hidden), dtype=dtype, device=x.device)
    if problem.tokens == 0:
        return out
    if x.device.type == "cpu" and x.dtype == torch.bfloat16 and w13_scale is None and chosen.path != "pairs":
        raise UnsupportedError("Triton's interpreter multiplies bf16 as if its bits were integers: use fp16 on a CPU")
    scales = Scales.of(w13, w2, w13_scale, w2_scale)
    call = Call(problem, chosen, out, expert_map, scales, scratch)
    ids, shares = topk_ids.contiguous(), topk_weights.contiguous()
    if chosen.path == "pairs":
        by_pairs(call, x, x_scale, w13, w2, shares, ids)
    else:
        by_tiles(call, x, x_scale, w13, w2, shares, ids)
    return out
