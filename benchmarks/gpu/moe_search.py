"""One cell of the table: a slice, a type and a batch; what others take, and the best of our tiles."""

# ruff: noqa: PLC0415 - processes that compile start without torch; it is loaded where it is used
from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from benchmarks.gpu.moe_calls import measured, ours, same_bits, torch_call, vllm_call
from benchmarks.gpu.moe_layers import Calls, Layer, make_calls, wanted_rows
from benchmarks.gpu.moe_slices import SLOTS, Slice

from assay.kernels.candidates import families, neighbours
from assay.kernels.choose import rule
from assay.kernels.tiles import MoeConfig, as_json


def search(one: Slice, dtype: str, tokens: int, tools: tuple, seeds: list[MoeConfig], limit_s: float) -> dict:
    """Representatives of each family, then the neighbours of the best until nothing is better or time is up."""
    from assay.kernels.operands import device_of

    layer, calls, wanted = tools
    shape = one.shape(dtype)
    until = time.perf_counter() + limit_s
    tried: dict[MoeConfig, dict] = {}

    def best() -> MoeConfig | None:
        good = {config: value["median_s"] for config, value in tried.items() if "median_s" in value}
        return min(good, key=good.__getitem__) if good else None

    def attempt(config: MoeConfig) -> None:
        if config not in tried and (time.perf_counter() < until or not tried):
            tried[config] = measured(ours(layer, calls, config), calls, wanted, dtype, 3)

    everything = list(families(shape, tokens=tokens, slots=SLOTS, global_experts=one.global_experts))
    here = device_of(calls.x[0].device)
    ruled = rule(shape, tokens=tokens, slots=SLOTS, global_experts=one.global_experts, device=here)
    for config in [*seeds, *(family[0] for family in everything), ruled]:
        attempt(config)
    before = None
    while (current := best()) is not None and current != before and time.perf_counter() < until:
        before = current
        family = next(
            (some for some in everything if _kind(some[0]) == _kind(current)),
            [],
        )
        for config in neighbours(current, family):
            attempt(config)
    chosen = best()
    found = {"tried": [{"config": as_json(config), **value} for config, value in tried.items()]}
    if chosen is None:
        found["problem"] = next(iter(tried.values()))["problem"]
    else:
        found |= {"config": as_json(chosen), **measured(ours(layer, calls, chosen), calls, wanted, dtype, 9)}
        found["same_bits_again"] = same_bits(ours(layer, calls, chosen), calls)
    return found


def _kind(config: MoeConfig) -> tuple:
    """What configs of one family share."""
    return config.path, config.gate_up.rows, config.overlap_launches, config.descriptors, config.swapped


def floor_s(one: Slice, layer: Layer, calls: Calls, ceilings: dict) -> dict:
    tokens = calls.x[0].shape[0]
    size = layer.w13.element_size()
    scales = 4 / 128**2 if layer.w13_scale is not None else 0
    moved = calls.distinct * 3 * one.intermediate * one.hidden * (size + scales) + 2 * tokens * one.hidden * 2
    flop = calls.pairs * 6 * one.intermediate * one.hidden
    by_memory, by_matmul = moved / ceilings["read_bytes_per_s"], flop / ceilings["bf16_flop_per_s"]
    by_matmul /= 2 if layer.w13_scale is not None else 1
    return {"floor_s": max(by_memory, by_matmul), "memory_floor_s": by_memory, "bytes": moved, "flop": flop}


def ceilings_here() -> dict:
    import torch

    data = torch.randint(0, 1 << 30, (1 << 30,), dtype=torch.int32, device="cuda")
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def median(work: Callable[[], object], passes: int) -> float:
        found = []
        for _ in range(passes + 2):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            work()
            end.record()
            end.synchronize()
            found.append(begin.elapsed_time(end) / 1e3)
        return statistics.median(found[2:])

    read = max(data.nbytes / median(lambda: torch.amax(data), 9), data.nbytes / median(lambda: torch.sum(data), 9))
    return {"read_bytes_per_s": read, "bf16_flop_per_s": 2 * 8192**3 / median(lambda: a @ b, 9)}


def cell(
    one: Slice,
    dtype: str,
    tokens: int,
    layer: Layer,
    ceilings: dict,
    options: argparse.Namespace,
    seeds: list,
    limit_s: float,
) -> dict:
    calls = make_calls(one, layer, tokens, options.routing)
    wanted = wanted_rows(layer, calls, 0)
    found = {"slice": one.name, "dtype": dtype, "tokens": tokens, "routing": options.routing, "calls": len(calls.x)}
    found |= {"distinct_experts": calls.distinct, "local_pairs": calls.pairs, **floor_s(one, layer, calls, ceilings)}
    others = {"vllm": lambda: vllm_call(layer, calls, one, None), "torch": lambda: torch_call(layer, calls, one)}
    if options.tuned_folder:
        others["vllm_tuned"] = lambda: vllm_call(layer, calls, one, options.tuned_folder)
    for name, make in others.items():
        try:
            found[name] = measured(make(), calls, wanted, dtype, 9)
        except Exception as error:  # noqa: BLE001 - an implementation that is absent is a result
            found[name] = {"problem": f"{type(error).__name__}: {str(error)[:200]}"}
    found["ours"] = search(one, dtype, tokens, (layer, calls, wanted), seeds, limit_s)
    return found
