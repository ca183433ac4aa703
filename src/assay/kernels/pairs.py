"""MoE for a handful of tokens: every (token, slot) pair reads its expert's weights by itself; no sort, no tensor cores.

With few tokens a layer is a set of matrix-vector products, bound by memory latency and by launches. Two kernels do it
all: gate, up and activation; then down, with the weighted sum over a token's experts kept in registers. Blocks are
small and all resident at once, so that the loads in flight cover the latency. Weights with a scale for every 128 x 128:
see `pairs_by_block`.
"""

# ruff: noqa: ARG001, ANN001, ANN201, N803, PLR0917 - a Triton kernel: its types are the launch's, capitals are compile-time constants
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def local_expert(ids_ptr, map_ptr, pair, present, HAS_MAP: tl.constexpr):
    """Index of the pair's expert among the weights here; -1 where it lives on another rank."""
    found = tl.load(ids_ptr + pair, mask=present, other=-1).to(tl.int32)
    if HAS_MAP:
        found = tl.load(map_ptr + found, mask=found >= 0, other=-1).to(tl.int32)
    return found


@triton.jit
def prefetch(pointers, inside):
    """Ask for cache lines into L2 without waiting for them."""
    address = tl.where(inside, pointers.to(tl.int64), 0)
    tl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.s64 p, $1, 0; @p prefetch.global.L2 [$1]; mov.u32 $0, 0; }",
        "=r,l",
        [address],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit(do_not_specialize=["pairs"])
def gate_up_pairs(
    x_ptr,
    x_scale_ptr,
    w_ptr,
    w_scale_ptr,
    ids_ptr,
    map_ptr,
    h_ptr,
    pairs,
    up_offset,
    stride_xt,
    stride_xst,
    stride_xsk,
    stride_we,
    stride_wn,
    stride_wse,
    stride_wsn,
    stride_wsk,
    N: tl.constexpr,
    K: tl.constexpr,
    SLOTS: tl.constexpr,
    HAS_MAP: tl.constexpr,
    X_SCALED: tl.constexpr,
    W_SCALE: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    STAGES: tl.constexpr,
    OVERLAP: tl.constexpr,
):
    """h[pair, n] = silu(x . gate[n]) * (x . up[n]); block (n-block, pair), pairs fastest so that sharers meet in L2."""
    if OVERLAP:
        gdc_launch_dependents()
    pid = tl.program_id(0)
    pair = pid % pairs
    expert = local_expert(ids_ptr, map_ptr, pair, pair >= 0, HAS_MAP).to(tl.int64)
    if expert >= 0:
        n = (pid // pairs) * COLUMNS + tl.arange(0, COLUMNS)
        inside = n < N
        k = tl.arange(0, DEPTH)
        token = (pair // SLOTS).to(tl.int64)
        gate_ptr = w_ptr + expert * stride_we + tl.minimum(n, N - 1)[:, None].to(tl.int64) * stride_wn + k[None, :]
        up_ptr = gate_ptr + up_offset
        gate = tl.zeros((COLUMNS, DEPTH), tl.float32)
        up = tl.zeros((COLUMNS, DEPTH), tl.float32)
        for begin in tl.range(0, K, DEPTH, num_stages=STAGES):
            here = begin + k < K
            x = tl.load(x_ptr + token * stride_xt + begin + k, mask=here, other=0.0).to(tl.float32)
            if X_SCALED:
                x *= tl.load(x_scale_ptr + token * stride_xst + (begin + k) // 128 * stride_xsk, mask=here, other=0.0)
            if K % DEPTH == 0:
                g = tl.load(gate_ptr + begin).to(tl.float32)
                u = tl.load(up_ptr + begin).to(tl.float32)
            else:
                g = tl.load(gate_ptr + begin, mask=here[None, :], other=0.0).to(tl.float32)
                u = tl.load(up_ptr + begin, mask=here[None, :], other=0.0).to(tl.float32)
            gate += g * x[None, :]
            up += u * x[None, :]
        left = tl.sum(gate, 1)
        right = tl.sum(up, 1)
        if W_SCALE == 1:
            scale_ptr = w_scale_ptr + expert * stride_wse
            left *= tl.load(scale_ptr + n * stride_wsn, mask=inside, other=0.0)
            right *= tl.load(scale_ptr + (N + n) * stride_wsn, mask=inside, other=0.0)
        h = left * tl.sigmoid(left) * right
        tl.store(h_ptr + pair.to(tl.int64) * N + n, h.to(h_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["tokens"])
def down_pairs(
    h_ptr,
    w_ptr,
    w_scale_ptr,
    ids_ptr,
    map_ptr,
    weights_ptr,
    out_ptr,
    tokens,
    stride_we,
    stride_wk,
    stride_wse,
    stride_wsk,
    stride_wsn,
    stride_ot,
    N: tl.constexpr,
    K: tl.constexpr,
    SLOTS: tl.constexpr,
    HAS_MAP: tl.constexpr,
    W_SCALE: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    STAGES: tl.constexpr,
    OVERLAP: tl.constexpr,
):
    """out[token, k] = sum over slots of weight x (h[token, slot] . down[expert, k]), slots in order."""
    pid = tl.program_id(0)
    token = pid % tokens
    k = (pid // tokens) * COLUMNS + tl.arange(0, COLUMNS)
    inside = k < K
    rows = tl.minimum(k, K - 1).to(tl.int64)
    n = tl.arange(0, DEPTH)
    if OVERLAP:
        line = tl.arange(0, DEPTH // 64) * 64
        for slot in tl.static_range(SLOTS):
            expert = local_expert(ids_ptr, map_ptr, token * SLOTS + slot, token >= 0, HAS_MAP).to(tl.int64)
            base = w_ptr + expert * stride_we + rows[:, None] * stride_wk + line[None, :]
            for begin in range(0, N, DEPTH):
                prefetch(base + begin, (begin + line < tl.where(expert >= 0, N, 0))[None, :] & inside[:, None])
        gdc_wait()
    total = tl.zeros((COLUMNS, DEPTH), tl.float32)
    for slot in tl.static_range(SLOTS):
        pair = token * SLOTS + slot
        expert = local_expert(ids_ptr, map_ptr, pair, pair >= 0, HAS_MAP).to(tl.int64)
        length = tl.where(expert >= 0, N, 0)
        share = tl.load(weights_ptr + pair).to(tl.float32)
        w_base = w_ptr + expert * stride_we + rows[:, None] * stride_wk + n[None, :]
        if W_SCALE > 0:
            scale_base = w_scale_ptr + expert * stride_wse
        for begin in tl.range(0, N, DEPTH, num_stages=STAGES):
            here = begin + n < length
            h = tl.load(h_ptr + pair.to(tl.int64) * N + begin + n, mask=here, other=0.0).to(tl.float32) * share
            if (N % DEPTH == 0) and not HAS_MAP:
                w = tl.load(w_base + begin).to(tl.float32)
            else:
                w = tl.load(w_base + begin, mask=here[None, :], other=0.0).to(tl.float32)
            if W_SCALE == 1:
                w *= tl.load(scale_base + rows * stride_wsk, mask=k < tl.where(expert >= 0, K, 0), other=0.0)[:, None]
            total += w * h[None, :]
    out = tl.sum(total, 1)
    tl.store(out_ptr + token.to(tl.int64) * stride_ot + k, out.to(out_ptr.dtype.element_ty), mask=inside)
