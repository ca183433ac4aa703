"""Our MoE kernel against vLLM's, torch's and the floor: `python -m benchmarks.gpu.moe_kernel --seconds 280 --out DIR`.

Needs a CUDA device, torch and triton; vLLM where its columns are wanted. Writes DIR/moe_kernel.json after every cell
and DIR/moe_tiles.json, the best tiles by batch, which `ASSAY_MOE_CONFIG` names to the kernel and the vLLM plugin.

What is measured: device time of one layer's experts, routing's sort and final sum included, from a captured graph of
several calls, each with tokens and routing of its own, so that weights come from memory and not from the L2 cache;
the median of several replays. Before it is timed, each config is checked against float64 on some rows, and everywhere
for what was not written (memory that outputs are allocated from is filled with NaN). Calls, checks and timing are the
lab's (`assay.lab.on_gpu`, `assay.kernels.device_timing`). The floor: distinct experts' weights and scales, tokens in,
sums out, each moved once, over the read bandwidth measured in the same run; or the arithmetic over the measured bf16
matmul rate (twice that for fp8), if that is more.
"""

# ruff: noqa: PLC0415 - processes that compile start without torch; it is loaded where it is used
from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.gpu.moe_compiling import Compiler, compile_jobs
from benchmarks.gpu.moe_layers import make_layer
from benchmarks.gpu.moe_search import ceilings_here, cell
from benchmarks.gpu.moe_slices import BATCHES, SLICES, Slice
from benchmarks.gpu.moe_tables import KERNEL, merged, row, shortened, told_command, write

from assay.kernels.shape import Shape
from assay.kernels.tiles import MoeConfig, from_json


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=280, help="for everything (default: 280)")
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--slices", default="tp8,ep8,qwen")
    parser.add_argument("--dtypes", default="bf16,fp8")
    parser.add_argument("--batches", default=",".join(map(str, BATCHES)))
    parser.add_argument("--routing", choices=["uniform", "zipf"], default="uniform")
    parser.add_argument("--tuned-folder", help="vLLM's tuned configs (VLLM_TUNED_CONFIG_FOLDER)")
    parser.add_argument("--tiles", type=Path, help="tiles of an earlier run: tried first")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--compile-seconds", type=float, default=90)
    parser.add_argument(
        "--compile-only", type=int, metavar="CAPABILITY", help="compile for 90, say, and stop; needs no GPU"
    )
    parser.add_argument(
        "--merge", type=Path, nargs="+", metavar="FILE",
        help="to --out one table of tiles from the moe_kernel.json of all runs, and those in short; and stop",
    )  # fmt: skip
    options = parser.parse_args()
    begun = time.perf_counter()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.merge:
        runs = [json.loads(file.read_text()) for file in options.merge]
        write(options.out / "moe_tiles.json", merged(runs))
        for file, one in zip(options.merge, runs, strict=True):
            (options.out / f"short-{file.name}").write_text(json.dumps(shortened(one), separators=(",", ":")) + "\n")
        return
    slices = [SLICES[name] for name in options.slices.split(",")]
    dtypes, batches = options.dtypes.split(","), [int(one) for one in options.batches.split(",")]
    first, rest = compile_jobs(slices, dtypes, batches)
    if options.compile_only:
        compiler = Compiler(options.compile_only, options.workers)
        compiler.add([*first, *rest])
        compiler.wait(options.compile_seconds)
        compiler.close()
        print(json.dumps(compiler.report(), indent=1))
        return
    import torch

    major, minor = torch.cuda.get_device_capability()
    compiler = Compiler(10 * major + minor, options.workers)
    try:
        compiler.add(first)
        compiler.wait(options.compile_seconds)
        said = compiler.report()
        print(
            f"compiled {said['done']} of {len(first)} configs tried first in {said['wall_s']:.0f} s; "
            f"{len(rest)} more go on beside",
            flush=True,
        )
        compiler.add(rest)
        run(options, slices, dtypes, batches, compiler, begun)
    finally:
        compiler.close()


def run(
    options: argparse.Namespace,
    slices: list[Slice],
    dtypes: list[str],
    batches: list[int],
    compiler: Compiler,
    begun: float,
) -> None:
    import torch

    from assay.kernels.operands import device_of

    def left_s() -> float:
        return float(options.seconds) - (time.perf_counter() - begun)

    ceilings = ceilings_here()
    here = device_of(torch.device("cuda", torch.cuda.current_device()))
    assert here is not None  # it is a CUDA device
    device = asdict(here)
    versions = f"torch {torch.__version__}, triton {importlib.import_module('triton').__version__}"
    about = f"{torch.cuda.get_device_name()}, {versions}, {time.strftime('%Y-%m-%d')}, {told_command(sys.argv)}"
    print(about, {name: f"{value:.3e}" for name, value in ceilings.items()}, flush=True)
    cells: list[dict[str, Any]] = []
    known = _known(options.tiles)
    todo = [(one, dtype, tokens) for dtype in dtypes for one in slices for tokens in batches]
    held, made_for, seeds = None, None, list[MoeConfig]()
    for number, (one, dtype, tokens) in enumerate(todo):
        if left_s() < 3:
            print(f"out of time: {len(todo) - number} cells not measured", flush=True)
            break
        try:
            if held is None or made_for != (one, dtype):
                held = None
                torch.cuda.empty_cache()
                held, made_for, seeds = make_layer(one, dtype), (one, dtype), []
            budget = max(0.5, (left_s() - 2) / (len(todo) - number) - 0.3)
            given = known.get((one.shape(dtype), tokens), [])
            cells.append(cell(one, dtype, tokens, held, ceilings, options, [*given, *seeds], budget))
        except Exception as error:  # noqa: BLE001 - one cell's failure must not take the others along
            print(f"{one.name} {dtype} {tokens}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            if "CUDA error" in str(error) or "AcceleratorError" in type(error).__name__:
                print("the device context is lost: stopping here", flush=True)
                break
            continue
        print(row(cells[-1]), flush=True)
        config = cells[-1]["ours"].get("config")
        seeds = [from_json(config)] if config else seeds
        done = {"about": about, "device": device, "kernel": KERNEL, "ceilings": ceilings, "cells": cells}
        write(options.out / "moe_kernel.json", {**done, "compiled": compiler.report()})
        write(options.out / "moe_tiles.json", merged([done]))
    said, read = compiler.report(), ceilings["read_bytes_per_s"] / 1e12
    print(
        f"\ncompiled {said['done']} of {said['configs']} configs, {said['process_s']:.0f} process seconds, "
        f"{len(said['problems'])} failed\n{about}\nread {read:.2f} TB/s; us, share of the floor in brackets; "
        "tiles: rows x columns x depth x warps x stages; o overlapped launches, d descriptors,\n"
        "w weights on the left, b blocks on a multiprocessor, g row tiles a group, n down blocks in a loop\n"
    )
    print("| slice | dtype | tokens | experts | floor | ours | vLLM | vLLM tuned | torch | vLLM / ours | tiles |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|")
    print("\n".join(row(found) for found in cells))


def _known(path: Path | None) -> dict[tuple[Shape, int], list[MoeConfig]]:
    if path is None:
        return {}
    from assay.kernels.choose import parse

    table = parse(json.loads(path.read_text()))
    return {(shape, tokens): [one.config] for (_, shape), batches in table.items() for tokens, one in batches.items()}


if __name__ == "__main__":
    main()
