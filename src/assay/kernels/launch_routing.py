"""The launches around the products: sort pairs by expert, quantize activations, sum over a token's experts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from assay.kernels import routing
from assay.kernels.launch import Call
from assay.kernels.operands import FP8, GROUP, Problem

SUM_COLUMNS = 1024
QUANTIZED_GROUPS = 16


@dataclass(frozen=True, slots=True)
class Table:
    """What the sort wrote: pairs in order, row tiles."""

    order: torch.Tensor
    tiles: torch.Tensor


def sort(call: Call, ids: torch.Tensor) -> Table:
    """Pairs in order of expert, and their row tiles."""
    problem = call.problem

    def integers(size: int) -> torch.Tensor:
        return torch.empty((size,), dtype=torch.int32, device=ids.device)

    most = most_tiles(problem, call.config.gate_up.rows)
    table = Table(integers(problem.pairs), integers(4 + 4 * most))
    routing.sort_pairs[(triton.cdiv(problem.pairs, routing.CHUNK),)](
        ids,
        call.expert_map,
        table.order,
        table.tiles,
        problem.pairs,
        HAS_MAP=call.expert_map is not None,
        ROWS=call.config.gate_up.rows,
        CHUNK=routing.CHUNK,
        BINS=max(16, triton.next_power_of_2(problem.shape.experts)),
        PART=routing.PART,
        **call.launch(warps=8, first=True),
    )
    return table


def most_tiles(problem: Problem, rows: int) -> int:
    """Row tiles that routing can need at most: a full share, and one that is not full for every expert."""
    return int(min(problem.pairs, triton.cdiv(problem.pairs, rows) + problem.shape.experts))


def quantize(call: Call, x: torch.Tensor, *, first: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Activations as fp8, with a scale for each 128."""
    tokens, hidden = x.shape
    narrow = torch.empty((tokens, hidden), dtype=FP8, device=x.device)
    scale = torch.empty((tokens, hidden // GROUP), dtype=torch.float32, device=x.device)
    routing.quantize_rows[(tokens, triton.cdiv(hidden // GROUP, QUANTIZED_GROUPS))](
        x, narrow, scale, x.stride(0), K=hidden, GROUPS=QUANTIZED_GROUPS, **call.launch(warps=4, first=first)
    )
    return narrow, scale


def sum_slots(call: Call, y: torch.Tensor, ids: torch.Tensor) -> None:
    """The weighted products of a token's experts, summed in the order of slots."""
    problem = call.problem
    columns = min(SUM_COLUMNS, triton.next_power_of_2(problem.shape.hidden))
    routing.sum_slots[(problem.tokens, triton.cdiv(problem.shape.hidden, columns))](
        y,
        ids,
        call.expert_map,
        call.out,
        call.out.stride(0),
        K=problem.shape.hidden,
        SLOTS=problem.slots,
        HAS_MAP=call.expert_map is not None,
        COLUMNS=columns,
        **call.launch(warps=4),
    )
