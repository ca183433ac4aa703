"""One cell of the table: a slice, a type and a batch; what others take, and the best of our tiles."""

# ruff: noqa: PLC0415 - processes that compile start without torch; it is loaded where it is used
from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.gpu.moe_calls import Call, Task, engine, measured, ours, plain_torch, same_bits
from benchmarks.gpu.moe_layers import Batches, make_batches
from benchmarks.gpu.moe_slices import SLOTS, Slice

from assay.kernels.candidates import families, neighbours
from assay.kernels.choose import rule
from assay.kernels.tiles import MoeConfig, as_json

if TYPE_CHECKING:
    from assay.lab.on_gpu.expert_data import Experts

Found = dict[str, Any]


def search(one: Slice, dtype: str, tokens: int, task: Task, seeds: Sequence[MoeConfig], limit_s: float) -> Found:
    """Representatives of each family, then the neighbours of the best until nothing is better or time is up."""
    from assay.kernels.operands import device_of

    shape = one.shape(dtype)
    until = time.perf_counter() + limit_s
    tried: dict[MoeConfig, Found] = {}

    def best() -> MoeConfig | None:
        good = {config: value["median_s"] for config, value in tried.items() if "median_s" in value}
        return min(good, key=good.__getitem__) if good else None

    def attempt(config: MoeConfig) -> None:
        if config not in tried and (time.perf_counter() < until or not tried):
            tried[config] = measured(ours(task, config), task, dtype, 3)

    everything = list(families(shape, tokens=tokens, slots=SLOTS, global_experts=one.global_experts))
    here = device_of(task.batches[0].x.device)
    ruled = rule(shape, tokens=tokens, slots=SLOTS, global_experts=one.global_experts, device=here)
    for config in [*seeds, *(family[0] for family in everything), ruled]:
        attempt(config)
    before = None
    while (current := best()) is not None and current != before and time.perf_counter() < until:
        before = current
        family = next((some for some in everything if _kind(some[0]) == _kind(current)), [])
        for config in neighbours(current, family):
            attempt(config)
    chosen = best()
    found: Found = {"tried": [{"config": as_json(config), **value} for config, value in tried.items()]}
    if chosen is None:
        found["problem"] = next(iter(tried.values()))["problem"]
    else:
        calls = ours(task, chosen)
        found |= {"config": as_json(chosen), **measured(calls, task, dtype, 9)}
        found["same_bits_again"] = same_bits(calls, task)
    return found


def _kind(config: MoeConfig) -> tuple[object, ...]:
    """What configs of one family share."""
    return config.path, config.gate_up.rows, config.overlap_launches, config.descriptors, config.swapped


def floor_s(one: Slice, held: Experts, batches: Batches, ceilings: dict[str, float]) -> dict[str, float]:
    tokens = batches.each[0].x.shape[0]
    size = held.w13.element_size()
    scales = 4 / 128**2 if held.w13_scale is not None else 0
    moved = batches.distinct * 3 * one.intermediate * one.hidden * (size + scales) + 2 * tokens * one.hidden * 2
    flop = batches.pairs * 6 * one.intermediate * one.hidden
    by_memory, by_matmul = moved / ceilings["read_bytes_per_s"], flop / ceilings["bf16_flop_per_s"]
    by_matmul /= 2 if held.w13_scale is not None else 1
    return {"floor_s": max(by_memory, by_matmul), "memory_floor_s": by_memory, "bytes": moved, "flop": flop}


def ceilings_here() -> dict[str, float]:
    import torch

    from assay.kernels.device_timing import seconds

    data = torch.randint(0, 1 << 30, (1 << 30,), dtype=torch.int32, device="cuda")
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def median(work: Callable[[], object]) -> float:
        return statistics.median(seconds(work, 9, warm=2))

    read = data.nbytes / min(median(lambda: torch.amax(data)), median(lambda: torch.sum(data)))
    return {"read_bytes_per_s": read, "bf16_flop_per_s": 2 * 8192**3 / median(lambda: a @ b)}


def cell(
    one: Slice,
    dtype: str,
    tokens: int,
    held: Experts,
    ceilings: dict[str, float],
    options: argparse.Namespace,
    seeds: Sequence[MoeConfig],
    limit_s: float,
) -> Found:
    batches = make_batches(one, held, tokens, options.routing)
    task = Task.of(held, batches.each)
    found: Found = {"slice": one.name, "dtype": dtype, "tokens": tokens, "routing": options.routing}
    found |= {"calls": len(batches.each), "distinct_experts": batches.distinct, "local_pairs": batches.pairs}
    found |= floor_s(one, held, batches, ceilings)
    others: dict[str, Callable[[], list[Call]]] = {
        "vllm": lambda: engine(task, None),
        "torch": lambda: plain_torch(task),
    }
    if options.tuned_folder:
        others["vllm_tuned"] = lambda: engine(task, options.tuned_folder)
    for name, make in others.items():
        try:
            found[name] = measured(make(), task, dtype, 9)
        except Exception as error:  # noqa: BLE001 - an implementation that is absent is a result
            found[name] = {"problem": f"{type(error).__name__}: {str(error)[:200]}"}
    found["ours"] = search(one, dtype, tokens, task, seeds, limit_s)
    return found
