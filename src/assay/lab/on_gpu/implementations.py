"""The ways of computing a layer of experts that are compared: libraries, a plain kernel, ours, and the engines'."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from assay.kernels.tiles import MoeConfig
from assay.lab.on_gpu.expert_data import FP8_BLOCK, Batch, Experts

Call = Callable[[], Any]
Maker = Callable[[Experts, Batch], Call]
MOST_LOOP_EXPERTS = 256
"""A loop over experts launches five kernels each; beyond this only its launches would be measured."""


class Unavailable(Exception):  # noqa: N818 - a fact about the installation
    """This implementation cannot be had here, and why."""


def cublas_loop(held: Experts, batch: Batch) -> Call:
    """Call cuBLAS once for every chosen expert; which tokens are whose is known beforehand, and not counted."""
    if held.w13_scale is not None:
        raise Unavailable("cuBLAS has no product with FP8 blocks of 128x128 here")
    chosen = batch.ids if held.expert_map is None else held.expert_map[batch.ids.long()]
    hit = [int(one) for one in torch.unique(chosen) if one >= 0]
    if len(hit) > MOST_LOOP_EXPERTS:
        raise Unavailable(f"{len(hit)} experts are more than a loop makes sense for")
    jobs = [(one, *torch.where(chosen == one)) for one in hit]
    out = torch.zeros_like(batch.x)
    scales = [batch.weights[tokens, slots].to(batch.x.dtype).unsqueeze(1) for _, tokens, slots in jobs]

    def call() -> Any:
        out.zero_()
        for (expert, tokens, _), scale in zip(jobs, scales, strict=True):
            gate, up = (batch.x[tokens] @ held.w13[expert].t()).chunk(2, dim=-1)
            down = (torch.nn.functional.silu(gate) * up) @ held.w2[expert].t()
            out.index_add_(0, tokens, down * scale)
        return out

    return call


def torch_grouped(held: Experts, batch: Batch) -> Call:
    """Sort on the device, then torch._grouped_mm over tokens sorted on the device."""
    if held.w13_scale is not None:
        raise Unavailable("torch._grouped_mm has no FP8 with blocks of 128x128")
    if not hasattr(torch, "_grouped_mm"):
        raise Unavailable(f"torch {torch.__version__} has no _grouped_mm")
    local, top_k = held.w13.shape[0], held.top_k
    product = torch._grouped_mm  # noqa: SLF001 - torch has no public one

    def call() -> Any:
        chosen = batch.ids.flatten().long()
        if held.expert_map is not None:
            mapped = held.expert_map[chosen].long()
            chosen = torch.where(mapped < 0, local, mapped)
        order = chosen.argsort(stable=True)
        counts = torch.zeros(local + 1, dtype=torch.int64, device="cuda").scatter_add_(
            0, chosen, torch.ones_like(chosen)
        )
        ends = counts[:local].cumsum(0).to(torch.int32)
        rows = batch.x[order // top_k]
        gate, up = product(rows, held.w13.transpose(1, 2), offs=ends).chunk(2, dim=-1)
        down = product(torch.nn.functional.silu(gate) * up, held.w2.transpose(1, 2), offs=ends)
        scale = batch.weights.flatten()[order].to(down.dtype).unsqueeze(1)
        down = torch.where((chosen[order] < local).unsqueeze(1), down * scale, 0)
        return torch.zeros_like(batch.x).index_add_(0, order // top_k, down)

    return call


def _called(experts: Callable[..., Any], held: Experts, batch: Batch, **more: Any) -> Call:
    """A function that has our kernel's signature, on this layer and batch."""
    options = {"w13_scale": held.w13_scale, "w2_scale": held.w2_scale, "expert_map": held.expert_map, **more}
    return lambda: experts(batch.x, held.w13, held.w2, batch.weights, batch.ids, **options)


def plain_triton(held: Experts, batch: Batch) -> Call:
    """Our plain grouped GEMM."""
    from assay.lab.on_gpu.plain_grouped import plain_moe  # noqa: PLC0415 - Triton may be absent

    return _called(plain_moe, held, batch)


def ours(held: Experts, batch: Batch, config: MoeConfig | None = None) -> Call:
    """Assay's own kernel, with the tiles that it chooses or with the given ones."""
    try:
        from assay.kernels.moe import fused_moe  # noqa: PLC0415 - Triton may be absent
    except ImportError as error:
        raise Unavailable(f"assay.kernels.moe: {error}") from error
    return _called(fused_moe, held, batch, config=config)


def vllm(held: Experts, batch: Batch, config: dict[str, int] | None = None) -> Call:
    """Experts by vLLM's Triton kernel, with its own choice of tiles or with the given one."""
    try:
        from vllm.model_executor.layers import fused_moe as package  # noqa: PLC0415 - an engine is optional
        from vllm.model_executor.layers.fused_moe.config import (  # noqa: PLC0415
            FUSED_MOE_UNQUANTIZED_CONFIG,
            fp8_w8a8_moe_quant_config,
        )
        from vllm.model_executor.layers.fused_moe.fused_moe import fused_experts  # noqa: PLC0415
    except ImportError as error:
        raise Unavailable(f"vLLM: {error}") from error
    quantized = FUSED_MOE_UNQUANTIZED_CONFIG
    if held.w13_scale is not None:
        quantized = fp8_w8a8_moe_quant_config(
            w1_scale=held.w13_scale, w2_scale=held.w2_scale, block_shape=[FP8_BLOCK, FP8_BLOCK]
        )

    def call() -> Any:
        with _override(package, config):
            return fused_experts(
                batch.x,
                held.w13,
                held.w2,
                batch.weights,
                batch.ids,
                global_num_experts=held.experts,
                expert_map=held.expert_map,
                quant_config=quantized,
            )

    return call


def sglang(held: Experts, batch: Batch, config: dict[str, int] | None = None) -> Call:
    """Experts by SGLang's Triton kernel; under EP it filters by ids of -1, as its dispatcher writes them."""
    try:
        from sglang.srt.layers.moe.moe_runner import triton_utils as package  # noqa: PLC0415 - an engine is optional
        from sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe import outplace_fused_experts  # noqa: PLC0415
        from sglang.srt.server_args import ServerArgs  # noqa: PLC0415
    except ImportError as error:
        raise Unavailable(f"SGLang: {error}") from error
    _sglang_context(ServerArgs)
    ids = batch.ids if held.expert_map is None else held.expert_map[batch.ids.long()]
    fp8 = held.w13_scale is not None

    def call() -> Any:
        with _override(package, config):
            return outplace_fused_experts(
                batch.x,
                held.w13,
                held.w2,
                batch.weights,
                ids,
                None,
                None,
                "silu",
                True,
                False,
                fp8,
                w1_scale=held.w13_scale,
                w2_scale=held.w2_scale,
                block_shape=[FP8_BLOCK, FP8_BLOCK] if fp8 else None,
                filter_expert=held.expert_map is not None,
            )

    return call


def _sglang_context(server_args: Any) -> None:
    """Its kernels ask the server's arguments for determinism: give them the defaults of a server that never started.

    The class itself would look for a model when it is called.
    """
    from sglang.srt.runtime_context import get_context  # noqa: PLC0415 - an engine is optional

    context = get_context()
    try:
        context.config_bag("exec")
    except ValueError:
        blank = object.__new__(server_args)
        for each in dataclasses.fields(server_args):
            made = each.default_factory() if each.default_factory is not dataclasses.MISSING else each.default
            object.__setattr__(blank, each.name, None if made is dataclasses.MISSING else made)
        context.set_server_args(blank)


def _override(package: Any, config: dict[str, int] | None) -> AbstractContextManager[None]:
    return nullcontext() if config is None else package.override_config(dict(config))


IMPLEMENTATIONS: dict[str, Maker] = {
    "vllm": vllm,
    "sglang": sglang,
    "ours": ours,
    "torch-grouped-mm": torch_grouped,
    "plain-triton": plain_triton,
    "cublas-loop": cublas_loop,
}
"""By name, those whose figures matter most first."""
