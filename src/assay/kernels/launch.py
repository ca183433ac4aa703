"""What the launches of a call share, and the two launches of the "pairs" path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton

from assay.kernels import pairs, pairs_by_block
from assay.kernels.operands import BY_BLOCK, GROUP, Problem, Scales, UnsupportedError, activation_scale
from assay.kernels.tiles import MoeConfig


@dataclass(frozen=True, slots=True)
class Call:
    """What the launches share."""

    problem: Problem
    config: MoeConfig
    out: torch.Tensor
    expert_map: torch.Tensor | None
    scales: Scales
    scratch: tuple[torch.Tensor, torch.Tensor] | None

    def memory(self, which: int, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        """An uninitialized tensor; from the caller's scratch where there is enough."""
        needed = dtype.itemsize
        for size in shape:
            needed *= size
        if self.scratch is not None:
            whole = self.scratch[which]
            if whole.is_contiguous() and whole.nbytes >= needed:
                return whole.view(-1).view(torch.uint8)[:needed].view(dtype).view(shape)
        return torch.empty(shape, dtype=dtype, device=self.out.device)

    def launch(self, *, warps: int, stages: int = 1, first: bool = False) -> dict[str, Any]:
        """Compiler options of a launch; all but the first may begin while the one before it ends."""
        chosen: dict[str, Any] = {
            "num_warps": warps,
            "num_stages": max(stages, 1),
            "OVERLAP": self.config.overlap_launches,
        }
        return chosen | ({"launch_pdl": True} if self.config.overlap_launches and not first else {})


def by_pairs(
    call: Call,
    x: torch.Tensor,
    x_scale: torch.Tensor | None,
    w13: torch.Tensor,
    w2: torch.Tensor,
    shares: torch.Tensor,
    ids: torch.Tensor,
) -> None:
    """Gate-up, then down with the sum."""
    problem, config, scales = call.problem, call.config, call.scales
    shape = problem.shape
    for tile in (config.gate_up, config.down):
        if scales.kind == BY_BLOCK and (GROUP % tile.columns or tile.depth % GROUP):
            raise UnsupportedError(f"columns {tile.columns} and depth {tile.depth} do not go with scales of {GROUP}")
    by_block = scales.kind == BY_BLOCK
    gate_up = pairs_by_block.gate_up_pairs_by_block if by_block else pairs.gate_up_pairs
    down = pairs_by_block.down_pairs_by_block if by_block else pairs.down_pairs
    h = call.memory(1, problem.pairs, shape.intermediate, dtype=call.out.dtype)
    x_scale, by_token, by_group = activation_scale(x, x_scale)
    common = {
        "N": shape.intermediate,
        "K": shape.hidden,
        "SLOTS": problem.slots,
        "HAS_MAP": call.expert_map is not None,
        "W_SCALE": scales.kind,
    }
    tile = config.gate_up
    gate_up[(problem.pairs * triton.cdiv(shape.intermediate, tile.columns),)](
        x,
        x_scale,
        w13,
        scales.w13,
        ids,
        call.expert_map,
        h,
        problem.pairs,
        shape.intermediate * w13.stride(1),
        x.stride(0),
        by_token,
        by_group,
        w13.stride(0),
        w13.stride(1),
        *scales.strides(scales.w13),
        X_SCALED=x_scale is not None,
        COLUMNS=tile.columns,
        DEPTH=tile.depth,
        STAGES=tile.stages,
        **common,
        **call.launch(warps=tile.warps, stages=tile.stages, first=True),
    )
    tile = config.down
    down[(problem.tokens * triton.cdiv(shape.hidden, tile.columns),)](
        h,
        w2,
        scales.w2,
        ids,
        call.expert_map,
        shares,
        call.out,
        problem.tokens,
        w2.stride(0),
        w2.stride(1),
        *scales.strides(scales.w2),
        call.out.stride(0),
        COLUMNS=tile.columns,
        DEPTH=tile.depth,
        STAGES=tile.stages,
        **common,
        **call.launch(warps=tile.warps, stages=tile.stages),
    )
