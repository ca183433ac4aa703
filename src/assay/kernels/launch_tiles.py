"""The launches of the "scan" and "sorted" paths: (quantize, sort), gate-up, down, sum."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from assay.kernels import grouped
from assay.kernels.launch import Call
from assay.kernels.launch_routing import Table, most_tiles, quantize, sort, sum_slots
from assay.kernels.operands import FP8, GROUP, NONE, Problem, UnsupportedError, activation_scale
from assay.kernels.tiles import MoeConfig, Tile


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Tensors of a call, as far as they have come."""

    x: torch.Tensor
    x_scale: torch.Tensor | None
    w13: torch.Tensor
    w2: torch.Tensor
    shares: torch.Tensor
    ids: torch.Tensor


@dataclass(frozen=True, slots=True)
class _Activated:
    """The activated products of gate and up, (pairs, intermediate); fp8 with scales, or as wide as the output."""

    h: torch.Tensor
    scale: torch.Tensor | None


def by_tiles(
    call: Call,
    x: torch.Tensor,
    x_scale: torch.Tensor | None,
    w13: torch.Tensor,
    w2: torch.Tensor,
    shares: torch.Tensor,
    ids: torch.Tensor,
) -> None:
    """All launches; the first is an ordinary one, those after it may overlap their start with the end before."""
    config = call.config
    _check_depth(config, call.scales.kind)
    given = _Inputs(x, x_scale, w13, w2, shares, ids)
    table = sort(call, ids) if config.path == "sorted" else None
    first = table is None
    if call.scales.kind != NONE and x_scale is None:
        narrow, scale = quantize(call, x, first=first)
        given, first = replace(given, x=narrow, x_scale=scale), False
    activated = _gate_up(call, given, table, first=first)
    sum_slots(call, _down(call, given, table, activated), ids)


def _gate_up(call: Call, given: _Inputs, table: Table | None, *, first: bool) -> _Activated:
    problem, config, scales = call.problem, call.config, call.scales
    shape, tile = problem.shape, config.gate_up
    narrow = scales.kind != NONE and tile.columns % GROUP == 0
    h = call.memory(0, problem.pairs, shape.intermediate, dtype=FP8 if narrow else call.out.dtype)
    h_scale = None
    if narrow:
        groups = shape.intermediate // GROUP
        h_scale = torch.empty((problem.pairs, groups), dtype=torch.float32, device=h.device)
    x_scale, by_token, by_group = activation_scale(given.x, given.x_scale)
    who, how, grid = _hand_out(call, table, given.ids, shape.intermediate, tile)
    kernel = grouped.gate_up_scan if table is None else grouped.gate_up_sorted
    kernel[grid](
        given.x,
        x_scale,
        given.w13,
        _descriptor(given.w13, tile) if config.descriptors else None,
        scales.w13,
        *who,
        h,
        h_scale,
        *_pairs(problem, table),
        shape.intermediate * given.w13.stride(1),
        given.x.stride(0),
        by_token,
        by_group,
        given.w13.stride(0),
        given.w13.stride(1),
        *scales.strides(scales.w13),
        SLOTS=problem.slots,
        **how,
        **_constants(call, tile, narrow=narrow),
        **call.launch(warps=tile.warps, stages=tile.stages, first=first),
    )
    return _Activated(h, h_scale)


def _down(call: Call, given: _Inputs, table: Table | None, activated: _Activated) -> torch.Tensor:
    problem, config, scales = call.problem, call.config, call.scales
    tile = config.down
    y = call.memory(1, problem.pairs, problem.shape.hidden, dtype=call.out.dtype)
    who, how, grid = _hand_out(call, table, given.ids, problem.shape.hidden, tile, config.down_span)
    kernel = grouped.down_scan if table is None else grouped.down_sorted
    kernel[grid](
        activated.h,
        activated.scale,
        given.w2,
        _descriptor(given.w2, tile) if config.descriptors else None,
        scales.w2,
        *who,
        given.shares,
        y,
        *_pairs(problem, table),
        given.w2.stride(0),
        given.w2.stride(1),
        *scales.strides(scales.w2),
        SPAN=config.down_span,
        **how,
        **_constants(call, tile, narrow=activated.scale is not None),
        **call.launch(warps=tile.warps, stages=tile.stages),
    )
    return y


def _constants(call: Call, tile: Tile, *, narrow: bool) -> dict[str, Any]:
    shape = call.problem.shape
    return {
        "N": shape.intermediate,
        "K": shape.hidden,
        "W_SCALE": call.scales.kind,
        "H_SCALED": narrow,
        "BY_TMA": call.config.descriptors,
        "SWAPPED": call.config.swapped,
        "ROWS": tile.rows,
        "COLUMNS": tile.columns,
        "DEPTH": tile.depth,
    }


def _check_depth(config: MoeConfig, kind: int) -> None:
    for tile in (config.gate_up, config.down):
        if kind != NONE and tile.depth != GROUP:
            raise UnsupportedError(f"fp8 needs a depth of {GROUP}, one scale a step; not {tile.depth}")


def _pairs(problem: Problem, table: Table | None) -> tuple[int, ...]:
    """Blocks that scan must know how many pairs there are."""
    return (problem.pairs,) if table is None else ()


def _hand_out(
    call: Call, table: Table | None, ids: torch.Tensor, outputs: int, tile: Tile, span: int = 1
) -> tuple[tuple[torch.Tensor | None, torch.Tensor | None], dict[str, Any], tuple[int]]:
    """Who does which tile: the tensors that say so, constants, and the grid."""
    problem, config = call.problem, call.config
    blocks = triton.cdiv(outputs, tile.columns * span)
    if table is not None:
        limit = processors(ids.device) * config.blocks_per_sm
        grid = min(most_tiles(problem, tile.rows) * blocks, limit)
        return (table.order, table.tiles), {"GROUP": config.group}, (grid,)
    by_pair = problem.pairs < problem.shape.experts
    owners = problem.pairs if by_pair else problem.shape.experts
    how = {"HAS_MAP": call.expert_map is not None, "BY_PAIR": by_pair}
    return (ids, call.expert_map), how, (owners * blocks,)


@functools.cache
def processors(device: torch.device) -> int:
    """Multiprocessors of a GPU; 4 where kernels are interpreted."""
    if device.type != "cuda":
        return 4
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _descriptor(weight: torch.Tensor, tile: Tile) -> TensorDescriptor:
    """All experts' rows as one matrix, read in blocks of (columns, depth)."""
    experts, rows, depth = weight.shape
    if not weight.is_contiguous():
        raise UnsupportedError("descriptors need contiguous weights")
    return TensorDescriptor.from_tensor(weight.view(experts * rows, depth), [tile.columns, tile.depth])
