"""Who computes a layer: our kernel, the engine's, plain torch; checked and timed alike."""

# ruff: noqa: PLC0415 - processes that compile start without torch; it is loaded where it is used
from __future__ import annotations

import importlib
import os
import statistics
from collections.abc import Callable

from benchmarks.gpu.moe_layers import Calls, Layer
from benchmarks.gpu.moe_slices import SLOTS, Slice

from assay.kernels.tiles import MoeConfig

WORST_ERROR = {"bf16": 1e-2, "fp8": 8e-2}
"""Relative to float32 over the same weights; fp8 activations are rounded to a mantissa of three bits, twice."""


def ours(layer: Layer, calls: Calls, config: MoeConfig | None) -> Callable[[int], object]:
    from assay.kernels.moe import fused_moe

    def call(index: int) -> object:
        return fused_moe(
            calls.x[index], layer.w13, layer.w2, calls.weights[index], calls.ids[index],
            w13_scale=layer.w13_scale, w2_scale=layer.w2_scale, expert_map=layer.expert_map,
            config=config, out=calls.out[index],
        )  # fmt: skip

    return call


def vllm_call(layer: Layer, calls: Calls, one: Slice, folder: str | None) -> Callable[[int], object]:
    module = importlib.import_module("vllm.model_executor.layers.fused_moe.fused_moe")
    from vllm.model_executor.layers.fused_moe.config import fp8_w8a8_moe_quant_config

    if folder:
        os.environ["VLLM_TUNED_CONFIG_FOLDER"] = folder
    else:
        os.environ.pop("VLLM_TUNED_CONFIG_FOLDER", None)
    module.get_moe_configs.cache_clear()
    quant = None
    if layer.w13_scale is not None:
        quant = fp8_w8a8_moe_quant_config(w1_scale=layer.w13_scale, w2_scale=layer.w2_scale, block_shape=[128, 128])

    def call(index: int) -> object:
        return module.fused_experts(
            calls.x[index], layer.w13, layer.w2, calls.weights[index], calls.ids[index],
            global_num_experts=one.global_experts, expert_map=layer.expert_map, quant_config=quant,
        )  # fmt: skip

    return call


def torch_call(layer: Layer, calls: Calls, one: Slice) -> Callable[[int], object]:
    """Sort, `torch._grouped_mm` twice, sum: what plain torch offers; bf16."""
    import torch

    if layer.w13_scale is not None:
        raise NotImplementedError("torch._grouped_mm here takes bf16")

    def call(index: int) -> object:
        ids = calls.ids[index].view(-1).long()
        ids = ids if layer.expert_map is None else layer.expert_map[ids].long()
        ids = torch.where(ids >= 0, ids, one.experts)
        order = ids.argsort(stable=True)
        ends = torch.searchsorted(ids[order], torch.arange(one.experts, device="cuda"), right=True).int()
        x = calls.x[index][order // SLOTS]
        gate, up = torch._grouped_mm(x, layer.w13.transpose(1, 2), offs=ends).chunk(2, 1)  # noqa: SLF001 - has no public name in 2.11
        y = torch._grouped_mm(torch.nn.functional.silu(gate) * up, layer.w2.transpose(1, 2), offs=ends)  # noqa: SLF001
        y = torch.where((ids[order] < one.experts)[:, None], y, 0) * calls.weights[index].view(-1)[order, None]
        back = torch.empty_like(y)
        back[order] = y.to(back.dtype)
        return torch.sum(back.view(-1, SLOTS, one.hidden), 1, out=calls.out[index])

    return call


def error_of(call: Callable[[int], object], calls: Calls, wanted: tuple) -> float:
    """Relative error of the rows that were worked out; NaN if anything at all was not written."""
    calls.out[0].fill_(float("nan"))
    found = call(0)
    tokens, rows = wanted
    if not bool(found.isfinite().all()):
        return float("nan")
    return float((found[tokens].float() - rows).norm() / rows.norm().clamp_min(1e-6))


def seconds(call: Callable[[int], object], calls: Calls, passes: int) -> list[float]:
    """Device time of one call: a graph of all of them, over their number."""
    import torch

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for index in range(len(calls.x)):
            call(index)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [call(index) for index in range(len(calls.x))]
    found = []
    for number in range(passes + 1):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if number:
            found.append(begin.elapsed_time(end) / 1e3 / len(calls.x))
    del kept
    return found


def measured(call: Callable[[int], object], calls: Calls, wanted: tuple, dtype: str, passes: int) -> dict:
    """Checked, then timed; whatever went wrong instead."""
    try:
        error = error_of(call, calls, wanted)
        if not error <= WORST_ERROR[dtype]:
            return {"problem": f"relative error {error:.2e}"}
        samples = seconds(call, calls, passes)
    except Exception as problem:  # noqa: BLE001 - one config's failure is a result; a sticky one ends the run below
        return {"problem": f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[-1][:200]}"}
    return {"median_s": statistics.median(samples), "samples_s": samples, "error": error}


def same_bits(call: Callable[[int], object], calls: Calls) -> bool:
    first = call(0).clone()
    calls.out[0].fill_(float("nan"))
    return bool((call(0) == first).all())
