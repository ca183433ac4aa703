"""Down and the sum over a token's experts in one launch, so that the products of single experts stay in the L2 cache.

With many tokens, (tokens x slots) rows of hidden width are more bytes than the weights' share of a layer deserves:
written and read back they cost up to a sixth of the time. Here the columns are done block by block; as soon as a block
of columns is complete, it is summed, while the next is computed; a ring of a few blocks is all that is ever stored.

Tiles are handed out by a counter in one order, and every tile waits only for tiles before it: whatever the number of
blocks that run at once, the earliest unfinished tile can go on. Sums are taken in the order of slots.
"""

# ruff: noqa: ANN001, ANN201, ANN202, N803, N806, PLR0917 - a Triton kernel: its types are the launch's, capitals are compile-time constants
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from assay.kernels.pairs import local_expert
from assay.kernels.products import down_tile

TICKET, DOWN_DONE, SUM_DONE = tl.constexpr(0), tl.constexpr(8), tl.constexpr(512)
"""Where the counters are: the next tile; finished down tiles and finished sums of each block of columns."""
MOST_BLOCKS = 500
RING = 4
"""Blocks of columns kept; sums lag LAG blocks behind, so that nobody waits for the last tile of the block before."""
LAG = 2


@triton.jit
def _wait(counter_ptr, target):
    """Until the counter has reached the target; what was written before it was raised is visible then."""
    while tl.atomic_add(counter_ptr, 0, sem="acquire") < target:
        pass


@triton.jit
def _raise(counter_ptr):
    """One more is done, and all that this block wrote goes before."""
    tl.debug_barrier()
    tl.atomic_add(counter_ptr, 1, sem="release")


@triton.jit
def _sum_tile(
    ring_ptr, ids_ptr, map_ptr, out_ptr, part, block, tokens, pairs, stride_ot,
    K: tl.constexpr, SLOTS: tl.constexpr, HAS_MAP: tl.constexpr, COLUMNS: tl.constexpr, TOKENS: tl.constexpr,
    RING: tl.constexpr,
):  # fmt: skip
    """out[tokens of the part, columns of the block] from the ring."""
    token = part * TOKENS + tl.arange(0, TOKENS)
    column = tl.arange(0, COLUMNS)
    k = block * COLUMNS + column
    base = ring_ptr + (block % RING).to(tl.int64) * pairs * COLUMNS
    total = tl.zeros((TOKENS, COLUMNS), tl.float32)
    for slot in tl.static_range(SLOTS):
        pair = token * SLOTS + slot
        here = tl.where(local_expert(ids_ptr, map_ptr, pair, token < tokens, HAS_MAP) >= 0, COLUMNS, 0)
        source = base + pair.to(tl.int64)[:, None] * COLUMNS + column[None, :]
        total += tl.load(source, mask=column[None, :] < here[:, None], other=0.0, cache_modifier=".cg").to(tl.float32)
    target = out_ptr + token.to(tl.int64)[:, None] * stride_ot + k[None, :]
    tl.store(target, total.to(out_ptr.dtype.element_ty), mask=(token < tokens)[:, None] & (k < K)[None, :])


@triton.jit(do_not_specialize=["tokens", "pairs"])
def down_and_sum(
    h_ptr, h_scale_ptr, w_ptr, w_desc, w_scale_ptr, order_ptr, tiles_ptr, flags_ptr, ids_ptr, map_ptr, weights_ptr,
    ring_ptr, out_ptr, tokens, pairs, stride_we, stride_wk, stride_wse, stride_wsk, stride_wsn, stride_ot,
    N: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, HAS_MAP: tl.constexpr, W_SCALE: tl.constexpr,
    H_SCALED: tl.constexpr, BY_TMA: tl.constexpr, SWAPPED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
    TOKENS: tl.constexpr, RING: tl.constexpr, LAG: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Rounds of tiles, one round a block of columns: its down tiles, then the sums of LAG blocks before."""
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    BLOCKS: tl.constexpr = (K + COLUMNS - 1) // COLUMNS
    row_tiles = tl.load(tiles_ptr)
    parts = tl.cdiv(tokens, TOKENS)
    each = row_tiles + parts
    tile = tl.atomic_add(flags_ptr + TICKET, 1)
    while tile < each * (BLOCKS + LAG):
        following = tl.atomic_add(flags_ptr + TICKET, 1)  # asked for early: its latency hides behind this tile
        block = tile // each
        at = tile % each
        if at < row_tiles:
            if block < BLOCKS:
                if block >= RING:
                    _wait(flags_ptr + SUM_DONE + block - RING, parts)
                entry = tiles_ptr + 4 + at * 4
                row = tl.load(entry + 1) + tl.arange(0, ROWS)
                valid = row < tl.load(entry + 2)
                pair = tl.load(order_ptr + row, mask=valid, other=0)
                down_tile(
                    h_ptr, h_scale_ptr, w_ptr, w_desc, w_scale_ptr, weights_ptr,
                    ring_ptr + (block % RING).to(tl.int64) * pairs * COLUMNS, pair, valid, tl.load(entry), block,
                    stride_we, stride_wk, stride_wse, stride_wsk, stride_wsn, COLUMNS, block * COLUMNS,
                    N, K, W_SCALE, H_SCALED, BY_TMA, SWAPPED, 1, ROWS, COLUMNS, DEPTH,
                )  # fmt: skip
                _raise(flags_ptr + DOWN_DONE + block)
        else:
            done = block - LAG
            if done >= 0:
                _wait(flags_ptr + DOWN_DONE + done, row_tiles)
                _sum_tile(
                    ring_ptr, ids_ptr, map_ptr, out_ptr, at - row_tiles, done, tokens, pairs, stride_ot,
                    K, SLOTS, HAS_MAP, COLUMNS, TOKENS, RING,
                )  # fmt: skip
                _raise(flags_ptr + SUM_DONE + done)
        tile = following
