"""MoE for a handful of tokens over fp8 weights with a scale for every 128 x 128: the kernels of `pairs`, by groups.

Depth is an axis of groups times 128 values, so that a thread asks for one scale where it has sixteen weights to read.
"""

# ruff: noqa: ANN001, ANN201, N803, PLR0917 - a Triton kernel: its types are the launch's, capitals are compile-time constants
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from assay.kernels.pairs import local_expert, prefetch


@triton.jit(do_not_specialize=["pairs"])
def gate_up_pairs_by_block(
    x_ptr, x_scale_ptr, w_ptr, w_scale_ptr, ids_ptr, map_ptr, h_ptr, pairs, up_offset,
    stride_xt, stride_xst, stride_xsk, stride_we, stride_wn, stride_wse, stride_wsn, stride_wsk,
    N: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, HAS_MAP: tl.constexpr, X_SCALED: tl.constexpr,
    W_SCALE: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, STAGES: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """h[pair, n] = silu(x . gate[n]) * (x . up[n]); block (n-block, pair), pairs fastest so that sharers meet in L2."""
    tl.static_assert(W_SCALE == 2)  # noqa: PLR2004 - operands.BY_BLOCK
    if OVERLAP:
        gdc_launch_dependents()
    GROUPS: tl.constexpr = DEPTH // 128  # noqa: N806 - a compile-time constant
    pid = tl.program_id(0)
    pair = pid % pairs
    expert = local_expert(ids_ptr, map_ptr, pair, pair >= 0, HAS_MAP).to(tl.int64)
    if expert >= 0:
        first = (pid // pairs) * COLUMNS
        n = first + tl.arange(0, COLUMNS)
        group = tl.arange(0, GROUPS)
        k = group[:, None] * 128 + tl.arange(0, 128)[None, :]
        token = (pair // SLOTS).to(tl.int64)
        rows = tl.minimum(n, N - 1).to(tl.int64)
        gate_ptr = w_ptr + expert * stride_we + rows[:, None, None] * stride_wn + k[None, :, :]
        up_ptr = gate_ptr + up_offset
        scale_ptr = w_scale_ptr + expert * stride_wse + group * stride_wsk
        gate_scale_ptr = scale_ptr + first // 128 * stride_wsn
        up_scale_ptr = scale_ptr + (N + first) // 128 * stride_wsn
        gate = tl.zeros((COLUMNS, GROUPS, 128), tl.float32)
        up = tl.zeros((COLUMNS, GROUPS, 128), tl.float32)
        for begin in tl.range(0, K, DEPTH, num_stages=STAGES):
            here = begin // 128 + group < K // 128
            x = tl.load(x_ptr + token * stride_xt + begin + k, mask=here[:, None], other=0.0).to(tl.float32)
            if X_SCALED:
                at = x_scale_ptr + token * stride_xst + (begin // 128 + group) * stride_xsk
                x *= tl.load(at, mask=here, other=0.0)[:, None]
            gate_scale = tl.load(gate_scale_ptr + begin // 128 * stride_wsk, mask=here, other=0.0)
            up_scale = tl.load(up_scale_ptr + begin // 128 * stride_wsk, mask=here, other=0.0)
            if K % DEPTH == 0:
                g = tl.load(gate_ptr + begin).to(tl.float32)
                u = tl.load(up_ptr + begin).to(tl.float32)
            else:
                g = tl.load(gate_ptr + begin, mask=here[None, :, None], other=0.0).to(tl.float32)
                u = tl.load(up_ptr + begin, mask=here[None, :, None], other=0.0).to(tl.float32)
            gate += g * (x * gate_scale[:, None])[None, :, :]
            up += u * (x * up_scale[:, None])[None, :, :]
        left = tl.sum(tl.sum(gate, 2), 1)
        right = tl.sum(tl.sum(up, 2), 1)
        h = left * tl.sigmoid(left) * right
        tl.store(h_ptr + pair.to(tl.int64) * N + n, h.to(h_ptr.dtype.element_ty), mask=n < N)


@triton.jit(do_not_specialize=["tokens"])
def down_pairs_by_block(
    h_ptr, w_ptr, w_scale_ptr, ids_ptr, map_ptr, weights_ptr, out_ptr, tokens,
    stride_we, stride_wk, stride_wse, stride_wsk, stride_wsn, stride_ot,
    N: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, HAS_MAP: tl.constexpr, W_SCALE: tl.constexpr,
    COLUMNS: tl.constexpr, DEPTH: tl.constexpr, STAGES: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """out[token, k] = sum over slots of weight x (h[token, slot] . down[expert, k]), slots in order."""
    tl.static_assert(W_SCALE == 2)  # noqa: PLR2004 - operands.BY_BLOCK
    GROUPS: tl.constexpr = DEPTH // 128  # noqa: N806 - a compile-time constant
    pid = tl.program_id(0)
    token = pid % tokens
    first = (pid // tokens) * COLUMNS
    k = first + tl.arange(0, COLUMNS)
    inside = k < K
    rows = tl.minimum(k, K - 1).to(tl.int64)
    group = tl.arange(0, GROUPS)
    n = group[:, None] * 128 + tl.arange(0, 128)[None, :]
    if OVERLAP:
        line = group * 128
        for slot in tl.static_range(SLOTS):
            expert = local_expert(ids_ptr, map_ptr, token * SLOTS + slot, token >= 0, HAS_MAP).to(tl.int64)
            base = w_ptr + expert * stride_we + rows[:, None] * stride_wk + line[None, :]
            for begin in range(0, N, DEPTH):
                prefetch(base + begin, (begin + line < tl.where(expert >= 0, N, 0))[None, :] & inside[:, None])
        gdc_wait()
    total = tl.zeros((COLUMNS, GROUPS, 128), tl.float32)
    for slot in tl.static_range(SLOTS):
        pair = token * SLOTS + slot
        expert = local_expert(ids_ptr, map_ptr, pair, pair >= 0, HAS_MAP).to(tl.int64)
        groups = tl.where(expert >= 0, N // 128, 0)
        share = tl.load(weights_ptr + pair).to(tl.float32)
        w_base = w_ptr + expert * stride_we + rows[:, None, None] * stride_wk + n[None, :, :]
        scale_ptr = w_scale_ptr + expert * stride_wse + first // 128 * stride_wsk + group * stride_wsn
        for begin in tl.range(0, N, DEPTH, num_stages=STAGES):
            here = begin // 128 + group < groups
            h = tl.load(h_ptr + pair.to(tl.int64) * N + begin + n, mask=here[:, None], other=0.0).to(tl.float32)
            scale = tl.load(scale_ptr + begin // 128 * stride_wsn, mask=here, other=0.0) * share
            if (N % DEPTH == 0) and not HAS_MAP:
                w = tl.load(w_base + begin).to(tl.float32)
            else:
                w = tl.load(w_base + begin, mask=here[None, :, None], other=0.0).to(tl.float32)
            total += w * (h * scale[:, None])[None, :, :]
    out = tl.sum(tl.sum(total, 2), 1)
    tl.store(out_ptr + token.to(tl.int64) * stride_ot + k, out.to(out_ptr.dtype.element_ty), mask=inside)
