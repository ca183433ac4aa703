"""A plain grouped GEMM in Triton, one block a tile and nothing clever: what others are held to."""

# ruff: noqa: ANN001, ANN202, N803, PLR0917 - a Triton kernel: its types are the launch's, capitals are compile-time constants
# mypy: allow-untyped-defs, allow-incomplete-defs
from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

FP8_BLOCK = 128
FP8_MOST = 448.0
SMALL, LARGE = 16, 64
"""Rows of a tile for few and for many tokens an expert."""
Tensor = Any


def sorted_pairs(ids: Tensor, expert_map: Tensor | None, local: int, rows: int) -> tuple[Tensor, Tensor]:
    """Token-expert pairs by expert, each expert's padded to whole tiles, without asking the host.

    Returns:
        The pair of each row, pairs * 1 where the row is padding; and the expert of each tile, -1 beyond the last.
    """
    chosen = ids.flatten().long()
    if expert_map is not None:
        chosen = expert_map[chosen].long()
        chosen = torch.where(chosen < 0, local, chosen)
    pairs = chosen.numel()
    counts = torch.zeros(local + 1, dtype=torch.int64, device=ids.device).scatter_add_(
        0, chosen, torch.ones_like(chosen)
    )
    padded = (counts[:local] + rows - 1) // rows * rows
    ends = padded.cumsum(0)
    order = chosen.argsort(stable=True)
    first = counts.cumsum(0) - counts
    within = torch.arange(pairs, device=ids.device) - first[chosen[order]]
    starts = torch.cat((ends - padded, torch.full((1,), 0, device=ids.device, dtype=torch.int64)))
    tiles = pairs // rows + min(pairs, local)
    at = torch.where(chosen[order] < local, starts[chosen[order]] + within, tiles * rows)
    table = torch.full((tiles * rows + 1,), pairs, dtype=torch.int64, device=ids.device)
    table.scatter_(0, at, order)
    firsts = torch.arange(tiles, device=ids.device) * rows
    expert = torch.searchsorted(ends, firsts, right=True)
    return table[:-1], torch.where(firsts < ends[-1], expert, -1).to(torch.int32)


def quantized(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in FP8 with a scale for each 128 elements."""
    groups = x.float().unflatten(-1, (-1, FP8_BLOCK))
    scales = groups.abs().amax(-1).clamp_min(1e-10) / FP8_MOST
    return (groups / scales.unsqueeze(-1)).flatten(-2).to(torch.float8_e4m3fn), scales


def plain_moe(
    x: Tensor,
    w13: Tensor,
    w2: Tensor,
    weights: Tensor,
    ids: Tensor,
    *,
    w13_scale: Tensor | None = None,
    w2_scale: Tensor | None = None,
    expert_map: Tensor | None = None,
) -> Tensor:
    """Gate and up, activation, down, weighted sum: four passes."""
    tokens, top_k = ids.shape
    local, wide, _ = w13.shape
    experts = local if expert_map is None else expert_map.numel()
    rows = SMALL if tokens * top_k <= 2 * SMALL * experts else LARGE
    table, expert = sorted_pairs(ids, expert_map, local, rows)
    inner = torch.zeros((tokens * top_k, wide), dtype=x.dtype, device=x.device)
    _product(x, w13, w13_scale, inner, table, expert, top_k, rows)
    gate, up = inner.chunk(2, dim=-1)
    active = torch.nn.functional.silu(gate) * up
    outer = torch.zeros((tokens * top_k, w2.shape[1]), dtype=x.dtype, device=x.device)
    _product(active, w2, w2_scale, outer, table, expert, 1, rows)
    return (outer.view(tokens, top_k, -1) * weights.to(x.dtype).unsqueeze(-1)).sum(1)


def _product(
    x: Tensor, w: Tensor, scale: Tensor | None, out: Tensor, table: Tensor, expert: Tensor, share: int, rows: int
) -> None:
    """out[pair] = x[pair // share] times the transposed weights of its tile's expert."""
    pairs, outputs = out.shape
    inputs = w.shape[2]
    x_scale = None
    if scale is not None:
        x, x_scale = quantized(x)
    columns, depth = (64 if rows == SMALL else 128), (128 if scale is not None or rows == SMALL else 64)
    grid = (expert.numel() * triton.cdiv(outputs, columns),)
    _kernel[grid](
        x, w, out, x_scale if x_scale is not None else x, scale if scale is not None else x, table, expert,
        pairs, outputs, inputs, share,
        ROWS=rows, COLUMNS=columns, DEPTH=depth, SCALED=scale is not None, GROUP=FP8_BLOCK,
        num_warps=4, num_stages=3,
    )  # fmt: skip


@triton.jit
def _kernel(
    x, w, out, x_scale, w_scale, table, expert, pairs, outputs, inputs, share,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, SCALED: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(outputs, COLUMNS)
    tile = tl.program_id(0) // across
    column = (tl.program_id(0) % across) * COLUMNS + tl.arange(0, COLUMNS)
    which = tl.load(expert + tile).to(tl.int64)
    if which < 0:
        return
    pair = tl.load(table + tile * ROWS + tl.arange(0, ROWS))
    real = pair < pairs
    deep = tl.arange(0, DEPTH)
    inside = column < outputs
    x_at = x + (pair // share)[:, None] * inputs + deep[None, :]
    w_at = w + which * outputs * inputs + column[None, :].to(tl.int64) * inputs + deep[:, None]
    groups = tl.cdiv(inputs, GROUP)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for step in range(tl.cdiv(inputs, DEPTH)):
        left = inputs - step * DEPTH
        a = tl.load(x_at + step * DEPTH, mask=real[:, None] & (deep[None, :] < left), other=0.0)
        b = tl.load(w_at + step * DEPTH, mask=inside[None, :] & (deep[:, None] < left), other=0.0)
        if SCALED:
            group = step * DEPTH // GROUP
            a_scale = tl.load(x_scale + (pair // share) * groups + group, mask=real, other=0.0)
            b_row = which * tl.cdiv(outputs, GROUP) + column // GROUP
            b_scale = tl.load(w_scale + b_row * groups + group, mask=inside, other=0.0)
            total += tl.dot(a, b) * a_scale[:, None] * b_scale[None, :]
        else:
            total = tl.dot(a, b, acc=total)
    to = out + pair[:, None] * outputs + column[None, :]
    tl.store(to, total.to(out.dtype.element_ty), mask=real[:, None] & inside[None, :])
