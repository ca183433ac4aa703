"""The small kernels around the products: sort pairs by expert, quantize activations, sum over a token's experts."""

# ruff: noqa: ANN001, ANN201, ANN202, N803 - a Triton kernel: its types are the launch's, capitals are compile-time constants
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from assay.kernels.pairs import local_expert

CHUNK, PART = 256, 32
"""Pairs that one block of the sort places, and that it compares at a time."""


@triton.jit
def _first_beyond(ends, at, BINS: tl.constexpr):
    """Index of the first of the ascending `ends` that is larger than each of `at`, by halving."""
    found = tl.zeros_like(at)
    step: tl.constexpr = BINS
    for level in tl.static_range(1, 16):
        if (BINS >> level) > 0:
            probe = found + (BINS >> level) - 1
            found += tl.where(tl.gather(ends, probe, 0) <= at, BINS >> level, 0)
    return tl.minimum(found, step - 1)


@triton.jit(do_not_specialize=["pairs"])
def sort_pairs(
    ids_ptr,
    map_ptr,
    order_ptr,
    tiles_ptr,
    pairs,
    HAS_MAP: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNK: tl.constexpr,
    BINS: tl.constexpr,
    PART: tl.constexpr,
    OVERLAP: tl.constexpr,
):
    """Pairs in order of expert (stable), and the row tiles: (expert, first row, end row) each, their number first.

    Every block counts all pairs by itself, so that one launch is enough; then each places its own chunk.
    """
    if OVERLAP:
        gdc_launch_dependents()
    pid = tl.program_id(0)
    counts = tl.zeros((BINS,), tl.int32)
    before = tl.zeros((BINS,), tl.int32)
    place = tl.arange(0, CHUNK)
    for chunk in range(tl.cdiv(pairs, CHUNK)):
        pair = chunk * CHUNK + place
        expert = local_expert(ids_ptr, map_ptr, pair, pair < pairs, HAS_MAP)
        found = tl.histogram(tl.maximum(expert, 0), BINS, mask=expert >= 0)
        counts += found
        before += tl.where(chunk < pid, found, 0)
    starts = tl.cumsum(counts, 0) - counts
    pair = pid * CHUNK + place
    expert = local_expert(ids_ptr, map_ptr, pair, pair < pairs, HAS_MAP)
    rank = tl.zeros((CHUNK,), tl.int32)
    for start in range(0, CHUNK, PART):
        other = pid * CHUNK + start + tl.arange(0, PART)
        theirs = local_expert(ids_ptr, map_ptr, other, other < pairs, HAS_MAP)
        earlier = (theirs[None, :] == expert[:, None]) & (other[None, :] < pair[:, None])
        rank += tl.sum(earlier.to(tl.int32), 1)
    base = tl.gather(starts + before, tl.maximum(expert, 0), 0)
    tl.store(order_ptr + base + rank, pair, mask=expert >= 0)

    tiles = (counts + ROWS - 1) // ROWS
    ends = tl.cumsum(tiles, 0)
    total = tl.sum(tiles, 0)
    if pid == 0:
        tl.store(tiles_ptr, total)
    at = pid * CHUNK + place
    while tl.min(at, 0) < total:
        owner = _first_beyond(ends, at, BINS)
        first = tl.gather(starts, owner, 0) + (at - tl.gather(ends - tiles, owner, 0)) * ROWS
        entry = tiles_ptr + 4 + at * 4
        tl.store(entry, owner, mask=at < total)
        tl.store(entry + 1, first, mask=at < total)
        tl.store(entry + 2, tl.gather(starts + counts, owner, 0), mask=at < total)
        at += tl.num_programs(0) * CHUNK
    if OVERLAP:
        gdc_wait()  # what follows takes our end for the end of all that came before


@triton.jit
def sum_slots(
    y_ptr,
    ids_ptr,
    map_ptr,
    out_ptr,
    stride_ot,
    K: tl.constexpr,
    SLOTS: tl.constexpr,
    HAS_MAP: tl.constexpr,
    COLUMNS: tl.constexpr,
    OVERLAP: tl.constexpr,
):
    """out[token] = sum of y[token, slot] over the slots whose expert is here, in order: deterministic."""
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    token = tl.program_id(0)
    k = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for slot in tl.static_range(SLOTS):
        pair = token * SLOTS + slot
        here = local_expert(ids_ptr, map_ptr, pair, pair >= 0, HAS_MAP) >= 0
        total += tl.load(y_ptr + pair.to(tl.int64) * K + k, mask=k < tl.where(here, K, 0), other=0.0).to(tl.float32)
    tl.store(out_ptr + token.to(tl.int64) * stride_ot + k, total.to(out_ptr.dtype.element_ty), mask=k < K)


@triton.jit
def quantize_rows(x_ptr, out_ptr, scale_ptr, stride_xt, K: tl.constexpr, GROUPS: tl.constexpr, OVERLAP: tl.constexpr):
    """Each 128 values of a row as fp8 with one scale."""
    if OVERLAP:
        gdc_launch_dependents()
    token = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    at = group[:, None] * 128 + tl.arange(0, 128)[None, :]
    x = tl.load(x_ptr + token * stride_xt + at, mask=at < K, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), 1), 1e-10) / 448.0
    tl.store(out_ptr + token * K + at, (x / scale[:, None]).to(tl.float8e4nv), mask=at < K)
    tl.store(scale_ptr + token * (K // 128) + group, scale, mask=group < K // 128)
    if OVERLAP:
        gdc_wait()
