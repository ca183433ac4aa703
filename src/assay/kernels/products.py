"""The products of one tile on tensor cores: gate, up and activation of some pairs of an expert; down of some pairs.

SWAPPED makes the weights the left operand. Hopper's matrix units take 64 rows at a time, and an expert of a decode
batch has fewer tokens than that: with tokens as rows Triton falls back to the instructions of older chips, for which
fp8 is first widened in registers. With weights as rows, 16 tokens are columns enough.

Where weights have a scale for every 128 x 128, each step's product is scaled on its own: the scales of the next step
are asked for before the product of this one, because the compiler pipelines operands of products and nothing else.
"""

# ruff: noqa: ANN001, ANN201, ANN202, C901, N803, N806, PLR0912, PLR0915, PLR0917, PLR2004, SIM102, SIM108 - a Triton kernel: its types are the launch's, capitals are compile-time constants
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import triton
import triton.language as tl

FP8_LARGEST = tl.constexpr(448.0)
SMALLEST_SCALE = tl.constexpr(1e-10)


@triton.jit
def _weights(
    w_ptr, w_desc, row, columns, begin, k, stride, EVEN: tl.constexpr, K: tl.constexpr, BY_TMA: tl.constexpr
):  # fmt: skip
    """Weight tile, (depth, columns): rows of the matrix are outputs, depth is contiguous."""
    if BY_TMA:
        tile = w_desc.load([row, begin]).T
    else:
        pointers = w_ptr + columns[None, :].to(tl.int64) * stride + (begin + k)[:, None]
        if EVEN:
            tile = tl.load(pointers)
        else:
            tile = tl.load(pointers, mask=(begin + k < K)[:, None], other=0.0)
    return tile


@triton.jit
def _tokens(base, valid, begin, k, EVEN: tl.constexpr, K: tl.constexpr):
    """Activations, (rows, depth)."""
    if EVEN:
        tile = tl.load(base + begin, mask=valid[:, None], other=0.0)
    else:
        tile = tl.load(base + begin, mask=valid[:, None] & (begin + k < K)[None, :], other=0.0)
    return tile


@triton.jit
def _zeros(ROWS: tl.constexpr, COLUMNS: tl.constexpr, SWAPPED: tl.constexpr):
    if SWAPPED:
        total = tl.zeros((COLUMNS, ROWS), tl.float32)
    else:
        total = tl.zeros((ROWS, COLUMNS), tl.float32)
    return total


@triton.jit
def _product(x, w, total, SWAPPED: tl.constexpr):
    """Add x . w to the total; both transposed where they are swapped."""
    if SWAPPED:
        total = tl.dot(tl.trans(w), tl.trans(x), total)
    else:
        total = tl.dot(x, w, total)
    return total


@triton.jit
def _scaled(part, of_rows, of_columns, ONE: tl.constexpr, SWAPPED: tl.constexpr):
    """The part times the scales of its rows and of its columns; ONE: a single scale holds for all columns."""
    if ONE:
        rows = of_rows * of_columns
        if SWAPPED:
            part *= rows[None, :]
        else:
            part *= rows[:, None]
    elif SWAPPED:
        part *= of_rows[None, :] * of_columns[:, None]
    else:
        part *= of_rows[:, None] * of_columns[None, :]
    return part


@triton.jit
def _block_scale(scale_ptr, first, columns, stride, ONE: tl.constexpr):
    """The scale of the block's columns: one value where all lie within the same 128, else one for each."""
    if ONE:
        scale = tl.load(scale_ptr + first // 128 * stride)
    else:
        scale = tl.load(scale_ptr + columns // 128 * stride)
    return scale


@triton.jit
def _quantized(a):
    """Rows of 128 values as fp8 with one scale each: what the fp8 matrix units take."""
    scale = tl.maximum(tl.max(tl.abs(a), 1), SMALLEST_SCALE) / FP8_LARGEST
    return (a / scale[:, None]).to(tl.float8e4nv), scale


@triton.jit
def gate_up_tile(
    x_ptr, x_scale_ptr, w_ptr, w_desc, w_scale_ptr, h_ptr, h_scale_ptr, pair, valid, expert, block, up_offset,
    stride_xt, stride_xst, stride_xsk, stride_we, stride_wn, stride_wse, stride_wsn, stride_wsk,
    N: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, W_SCALE: tl.constexpr, H_SCALED: tl.constexpr,
    BY_TMA: tl.constexpr, SWAPPED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """h[pair, n-block] = silu(x . gate) * (x . up) of one expert, for up to ROWS pairs."""
    first = block * COLUMNS
    n = first + tl.arange(0, COLUMNS)
    safe = tl.minimum(n, N - 1)
    k = tl.arange(0, DEPTH)
    token = (pair // SLOTS).to(tl.int64)
    expert = expert.to(tl.int64)
    row = (expert * (2 * N)).to(tl.int32)
    x_base = x_ptr + token[:, None] * stride_xt + k[None, :]
    gate_ptr = w_ptr + expert * stride_we
    up_ptr = gate_ptr + up_offset
    EVEN: tl.constexpr = K % DEPTH == 0
    ONE: tl.constexpr = COLUMNS <= 128
    if W_SCALE > 0:
        scale_base = w_scale_ptr + expert * stride_wse
        x_scale_base = x_scale_ptr + token * stride_xst
        x_scale = tl.load(x_scale_base, mask=valid, other=0.0)
    if W_SCALE == 2:
        gate_scale = _block_scale(scale_base, first, safe, stride_wsn, ONE)
        up_scale = _block_scale(scale_base, N + first, N + safe, stride_wsn, ONE)
    gate = _zeros(ROWS, COLUMNS, SWAPPED)
    up = _zeros(ROWS, COLUMNS, SWAPPED)
    for begin in tl.range(0, K, DEPTH):
        x = _tokens(x_base, valid, begin, k, EVEN, K)
        g = _weights(gate_ptr, w_desc, row + first, safe, begin, k, stride_wn, EVEN, K, BY_TMA)
        u = _weights(up_ptr, w_desc, row + N + first, safe, begin, k, stride_wn, EVEN, K, BY_TMA)
        if W_SCALE == 0:
            gate = _product(x, g, gate, SWAPPED)
            up = _product(x, u, up, SWAPPED)
        else:
            ahead = tl.minimum(begin + DEPTH, K - 1) // 128
            x_scale_ahead = tl.load(x_scale_base + ahead * stride_xsk, mask=valid, other=0.0)
            if W_SCALE == 2:
                ahead_ptr = scale_base + ahead * stride_wsk
                gate_scale_ahead = _block_scale(ahead_ptr, first, safe, stride_wsn, ONE)
                up_scale_ahead = _block_scale(ahead_ptr, N + first, N + safe, stride_wsn, ONE)
            gate_part = _product(x, g, _zeros(ROWS, COLUMNS, SWAPPED), SWAPPED)
            up_part = _product(x, u, _zeros(ROWS, COLUMNS, SWAPPED), SWAPPED)
            if W_SCALE == 2:
                gate += _scaled(gate_part, x_scale, gate_scale, ONE, SWAPPED)
                up += _scaled(up_part, x_scale, up_scale, ONE, SWAPPED)
                gate_scale = gate_scale_ahead
                up_scale = up_scale_ahead
            else:
                gate += _scaled(gate_part, x_scale, 1.0, True, SWAPPED)
                up += _scaled(up_part, x_scale, 1.0, True, SWAPPED)
            x_scale = x_scale_ahead
    if SWAPPED:
        gate = tl.trans(gate)
        up = tl.trans(up)
    if W_SCALE == 1:
        gate *= tl.load(scale_base + safe * stride_wsn)[None, :]
        up *= tl.load(scale_base + (N + safe) * stride_wsn)[None, :]
    h = gate * tl.sigmoid(gate) * up
    target = pair.to(tl.int64) * N
    inside = valid[:, None] & (n < N)[None, :]
    if H_SCALED:
        GROUPS: tl.constexpr = COLUMNS // 128
        narrow, scale = _quantized(tl.reshape(tl.where(inside, h, 0.0), (ROWS * GROUPS, 128)))
        h_out = tl.reshape(narrow, (ROWS, COLUMNS))
        group = first // 128 + tl.arange(0, GROUPS)
        scale_target = h_scale_ptr + pair.to(tl.int64)[:, None] * (N // 128) + group[None, :]
        tl.store(scale_target, tl.reshape(scale, (ROWS, GROUPS)), mask=valid[:, None] & (group < N // 128)[None, :])
        tl.store(h_ptr + target[:, None] + n[None, :], h_out, mask=inside)
    else:
        tl.store(h_ptr + target[:, None] + n[None, :], h.to(h_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _write_down(
    total, weights_ptr, scale_base, y_ptr, pair, valid, first, stride_wsk,
    K: tl.constexpr, W_SCALE: tl.constexpr, SWAPPED: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Weigh the finished columns and store them."""
    k = first + tl.arange(0, COLUMNS)
    wide = pair.to(tl.int64)
    if SWAPPED:
        total = tl.trans(total)
    if W_SCALE == 1:
        total *= tl.load(scale_base + tl.minimum(k, K - 1) * stride_wsk)[None, :]
    total *= tl.load(weights_ptr + wide, mask=valid, other=0.0).to(tl.float32)[:, None]
    inside = valid[:, None] & (k < K)[None, :]
    tl.store(y_ptr + wide[:, None] * K + k[None, :], total.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def down_tile(
    h_ptr, h_scale_ptr, w_ptr, w_desc, w_scale_ptr, weights_ptr, y_ptr, pair, valid, expert, band,
    stride_we, stride_wk, stride_wse, stride_wsk, stride_wsn,
    N: tl.constexpr, K: tl.constexpr, W_SCALE: tl.constexpr, H_SCALED: tl.constexpr, BY_TMA: tl.constexpr,
    SWAPPED: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """y[pair, band of SPAN k-blocks] = weight of the pair x (h[pair] . down) of one expert, for up to ROWS pairs.

    One loop over the depth of all of the band's blocks: the next block's weights are on their way while this one is
    finished. A slice of tensor parallelism is only a few steps deep.
    """
    n = tl.arange(0, DEPTH)
    wide = pair.to(tl.int64)
    expert = expert.to(tl.int64)
    row = (expert * K).to(tl.int32)
    h_base = h_ptr + wide[:, None] * N + n[None, :]
    w_base = w_ptr + expert * stride_we
    scale_base = w_scale_ptr
    if W_SCALE > 0:
        scale_base += expert * stride_wse
    total = _zeros(ROWS, COLUMNS, SWAPPED)
    EVEN: tl.constexpr = N % DEPTH == 0
    ONE: tl.constexpr = COLUMNS <= 128
    STEPS: tl.constexpr = (N + DEPTH - 1) // DEPTH
    h_scale_base = h_scale_ptr
    if H_SCALED:
        h_scale_base += wide * (N // 128)
        h_scale = tl.load(h_scale_base, mask=valid, other=0.0)
    if W_SCALE == 2:
        start = band * SPAN * COLUMNS
        w_scale = _block_scale(scale_base, start, tl.minimum(start + tl.arange(0, COLUMNS), K - 1), stride_wsk, ONE)
    for step in tl.range(0, SPAN * STEPS):
        first = (band * SPAN + step // STEPS) * COLUMNS
        begin = step % STEPS * DEPTH
        safe = tl.minimum(first + tl.arange(0, COLUMNS), K - 1)
        h = _tokens(h_base, valid, begin, n, EVEN, N)
        w = _weights(w_base, w_desc, row + first, safe, begin, n, stride_wk, EVEN, N, BY_TMA)
        if W_SCALE == 0:
            total = _product(h, w, total, SWAPPED)
        else:
            ahead = (step + 1) % STEPS * DEPTH // 128
            if H_SCALED:
                h_scale_ahead = tl.load(h_scale_base + ahead, mask=valid, other=0.0)
            else:
                h, h_scale = _quantized(h.to(tl.float32))
            if W_SCALE == 2:
                then = tl.minimum((band * SPAN + (step + 1) // STEPS) * COLUMNS, K - 1)
                columns = tl.minimum(then + tl.arange(0, COLUMNS), K - 1)
                w_scale_ahead = _block_scale(scale_base + ahead * stride_wsn, then, columns, stride_wsk, ONE)
            part = _product(h, w, _zeros(ROWS, COLUMNS, SWAPPED), SWAPPED)
            if W_SCALE == 2:
                total += _scaled(part, h_scale, w_scale, ONE, SWAPPED)
                w_scale = w_scale_ahead
            else:
                total += _scaled(part, h_scale, 1.0, True, SWAPPED)
            if H_SCALED:
                h_scale = h_scale_ahead
        if SPAN > 1:
            if begin + DEPTH >= N:
                _write_down(
                    total, weights_ptr, scale_base, y_ptr, pair, valid, first, stride_wsk, K, W_SCALE, SWAPPED, COLUMNS,
                )  # fmt: skip
                total = _zeros(ROWS, COLUMNS, SWAPPED)
    if SPAN == 1:
        _write_down(
            total, weights_ptr, scale_base, y_ptr, pair, valid, band * COLUMNS, stride_wsk,
            K, W_SCALE, SWAPPED, COLUMNS,
        )  # fmt: skip
