"""MoE by grouped matrix products: gate, up and activation in one kernel; down in another.

Two ways to hand out the tiles share the same arithmetic. "scan": one block for each (expert, columns), which looks
through all (token, slot) pairs for its own rows; no sort, for decode batches. "sorted": persistent blocks walk a list
of row tiles that `assay.kernels.routing` made; for larger batches.
"""

# ruff: noqa: ANN001, ANN201, ANN202, N803, N806, PLR0917 - a Triton kernel: its types are the launch's, capitals are compile-time constants
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from assay.kernels.pairs import local_expert
from assay.kernels.products import down_tile, gate_up_tile

SCANNED = tl.constexpr(128)
"""Pairs that a block looks at together when it seeks its own."""


@triton.jit
def _owner(ids_ptr, map_ptr, index, HAS_MAP: tl.constexpr, BY_PAIR: tl.constexpr):
    """The expert of an index: the index itself, or the expert of the pair of that number; -2: none of ours."""
    expert = index
    if BY_PAIR:
        expert = local_expert(ids_ptr, map_ptr, index, index >= 0, HAS_MAP)
        expert = tl.where(expert >= 0, expert, -2)
    return expert


@triton.jit
def _rows(
    ids_ptr, map_ptr, expert, index, begin, pairs, HAS_MAP: tl.constexpr, BY_PAIR: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """Pairs number begin to begin + ROWS of an expert's, and how many it has; none, where an earlier pair leads."""
    wanted = begin + tl.arange(0, ROWS)
    chosen = tl.zeros((ROWS,), tl.int32)
    count = 0
    leader = pairs
    for start in range(0, pairs, SCANNED):
        pair = start + tl.arange(0, SCANNED)
        own = tl.where(local_expert(ids_ptr, map_ptr, pair, pair < pairs, HAS_MAP) == expert, 1, 0)
        rank = tl.where(own > 0, count + tl.cumsum(own, 0) - 1, -1)
        chosen += tl.sum(tl.where(rank[None, :] == wanted[:, None], pair[None, :], 0), 1)
        count += tl.sum(own, 0)
        leader = tl.minimum(leader, tl.min(tl.where(own > 0, pair, pairs), 0))
    if BY_PAIR:
        count = tl.where(leader == index, count, 0)
    return chosen, count


@triton.jit(do_not_specialize=["pairs"])
def gate_up_scan(
    x_ptr, x_scale_ptr, w_ptr, w_desc, w_scale_ptr, ids_ptr, map_ptr, h_ptr, h_scale_ptr, pairs, up_offset,
    stride_xt, stride_xst, stride_xsk, stride_we, stride_wn, stride_wse, stride_wsn, stride_wsk,
    N: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, HAS_MAP: tl.constexpr, W_SCALE: tl.constexpr,
    H_SCALED: tl.constexpr, BY_TMA: tl.constexpr, SWAPPED: tl.constexpr, BY_PAIR: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Gate, up and activation; one block for each (expert, columns)."""
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    BLOCKS: tl.constexpr = (N + COLUMNS - 1) // COLUMNS
    pid = tl.program_id(0)
    index = pid // BLOCKS
    expert = _owner(ids_ptr, map_ptr, index, HAS_MAP, BY_PAIR)
    pair, count = _rows(ids_ptr, map_ptr, expert, index, 0, pairs, HAS_MAP, BY_PAIR, ROWS)
    begin = 0
    while begin < count:
        valid = begin + tl.arange(0, ROWS) < count
        gate_up_tile(
            x_ptr, x_scale_ptr, w_ptr, w_desc, w_scale_ptr, h_ptr, h_scale_ptr, pair, valid, expert, pid % BLOCKS,
            up_offset, stride_xt, stride_xst, stride_xsk, stride_we, stride_wn, stride_wse, stride_wsn, stride_wsk,
            N, K, SLOTS, W_SCALE, H_SCALED, BY_TMA, SWAPPED, ROWS, COLUMNS, DEPTH,
        )  # fmt: skip
        begin += ROWS
        if begin < count:
            pair, _ = _rows(ids_ptr, map_ptr, expert, index, begin, pairs, HAS_MAP, BY_PAIR, ROWS)


@triton.jit(do_not_specialize=["pairs"])
def down_scan(
    h_ptr, h_scale_ptr, w_ptr, w_desc, w_scale_ptr, ids_ptr, map_ptr, weights_ptr, y_ptr, pairs,
    stride_we, stride_wk, stride_wse, stride_wsk, stride_wsn,
    N: tl.constexpr, K: tl.constexpr, HAS_MAP: tl.constexpr, W_SCALE: tl.constexpr, H_SCALED: tl.constexpr,
    BY_TMA: tl.constexpr, SWAPPED: tl.constexpr, SPAN: tl.constexpr, BY_PAIR: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Down, weighted; one block for each (expert, SPAN blocks of columns)."""
    if OVERLAP:
        gdc_launch_dependents()
    BLOCKS: tl.constexpr = (K + SPAN * COLUMNS - 1) // (SPAN * COLUMNS)
    pid = tl.program_id(0)
    index = pid // BLOCKS
    expert = _owner(ids_ptr, map_ptr, index, HAS_MAP, BY_PAIR)
    pair, count = _rows(ids_ptr, map_ptr, expert, index, 0, pairs, HAS_MAP, BY_PAIR, ROWS)
    if OVERLAP:
        gdc_wait()
    begin = 0
    while begin < count:
        valid = begin + tl.arange(0, ROWS) < count
        down_tile(
            h_ptr, h_scale_ptr, w_ptr, w_desc, w_scale_ptr, weights_ptr, y_ptr, pair, valid, expert, pid % BLOCKS,
            stride_we, stride_wk, stride_wse, stride_wsk, stride_wsn,
            N, K, W_SCALE, H_SCALED, BY_TMA, SWAPPED, SPAN, ROWS, COLUMNS, DEPTH,
        )  # fmt: skip
        begin += ROWS
        if begin < count:
            pair, _ = _rows(ids_ptr, map_ptr, expert, index, begin, pairs, HAS_MAP, BY_PAIR, ROWS)


@triton.jit
def _place(tile, row_tiles, BLOCKS: tl.constexpr, GROUP: tl.constexpr):
    """Row tile and column block of a tile: GROUP row tiles go through the columns together, and share them in L2."""
    band = tile // (GROUP * BLOCKS)
    height = tl.minimum(row_tiles - band * GROUP, GROUP)
    inner = tile % (GROUP * BLOCKS)
    return band * GROUP + inner % height, inner // height


@triton.jit
def gate_up_sorted(
    x_ptr, x_scale_ptr, w_ptr, w_desc, w_scale_ptr, order_ptr, tiles_ptr, h_ptr, h_scale_ptr, up_offset,
    stride_xt, stride_xst, stride_xsk, stride_we, stride_wn, stride_wse, stride_wsn, stride_wsk,
    N: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, W_SCALE: tl.constexpr, H_SCALED: tl.constexpr,
    BY_TMA: tl.constexpr, SWAPPED: tl.constexpr, GROUP: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Gate, up and activation; persistent blocks over the row tiles of the routing."""
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    BLOCKS: tl.constexpr = (N + COLUMNS - 1) // COLUMNS
    row_tiles = tl.load(tiles_ptr)
    for tile in tl.range(tl.program_id(0), row_tiles * BLOCKS, tl.num_programs(0), num_stages=1):
        at, block = _place(tile, row_tiles, BLOCKS, GROUP)
        entry = tiles_ptr + 4 + at * 4
        expert = tl.load(entry)
        row = tl.load(entry + 1) + tl.arange(0, ROWS)
        valid = row < tl.load(entry + 2)
        pair = tl.load(order_ptr + row, mask=valid, other=0)
        gate_up_tile(
            x_ptr, x_scale_ptr, w_ptr, w_desc, w_scale_ptr, h_ptr, h_scale_ptr, pair, valid, expert, block,
            up_offset, stride_xt, stride_xst, stride_xsk, stride_we, stride_wn, stride_wse, stride_wsn, stride_wsk,
            N, K, SLOTS, W_SCALE, H_SCALED, BY_TMA, SWAPPED, ROWS, COLUMNS, DEPTH,
        )  # fmt: skip


@triton.jit
def down_sorted(
    h_ptr, h_scale_ptr, w_ptr, w_desc, w_scale_ptr, order_ptr, tiles_ptr, weights_ptr, y_ptr,
    stride_we, stride_wk, stride_wse, stride_wsk, stride_wsn,
    N: tl.constexpr, K: tl.constexpr, W_SCALE: tl.constexpr, H_SCALED: tl.constexpr, BY_TMA: tl.constexpr,
    SWAPPED: tl.constexpr, SPAN: tl.constexpr, GROUP: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Down, weighted; persistent blocks over the row tiles of the routing."""
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    BLOCKS: tl.constexpr = (K + SPAN * COLUMNS - 1) // (SPAN * COLUMNS)
    row_tiles = tl.load(tiles_ptr)
    for tile in tl.range(tl.program_id(0), row_tiles * BLOCKS, tl.num_programs(0), num_stages=1):
        at, block = _place(tile, row_tiles, BLOCKS, GROUP)
        entry = tiles_ptr + 4 + at * 4
        expert = tl.load(entry)
        row = tl.load(entry + 1) + tl.arange(0, ROWS)
        valid = row < tl.load(entry + 2)
        pair = tl.load(order_ptr + row, mask=valid, other=0)
        down_tile(
            h_ptr, h_scale_ptr, w_ptr, w_desc, w_scale_ptr, weights_ptr, y_ptr, pair, valid, expert, block,
            stride_we, stride_wk, stride_wse, stride_wsk, stride_wsn,
            N, K, W_SCALE, H_SCALED, BY_TMA, SWAPPED, SPAN, ROWS, COLUMNS, DEPTH,
        )  # fmt: skip
