"""Compile what a search may want beforehand, in processes that need no device."""

# ruff: noqa: PLC0415 - processes that compile start without torch; it is loaded where it is used
from __future__ import annotations

import time
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import asdict, replace
from multiprocessing import get_context
from typing import Any

from benchmarks.gpu.moe_slices import SLOTS, Slice

from assay.kernels.candidates import families
from assay.kernels.choose import Shape
from assay.kernels.tiles import MoeConfig, as_json

Job = tuple[Shape, MoeConfig, int, int | None]
"""Shape, config, tokens, and experts of all ranks where there is a map."""
Done = tuple[float, str | None]
"""Seconds that compiling took, and what went wrong."""


def _prepare_worker(capability: int) -> None:
    from assay.kernels.compiling import without_device

    without_device(capability)


def _compile(job: Job) -> Done:
    from assay.kernels.compiling import compile_layer

    shape, config, tokens, mapped = job
    begun = time.perf_counter()
    try:
        compile_layer(shape, config, tokens=tokens, slots=SLOTS, global_experts=mapped)
    except Exception as error:  # noqa: BLE001 - a config that does not compile is a result
        return time.perf_counter() - begun, f"{type(error).__name__}: {(str(error).splitlines() or ['?'])[-1][:200]}"
    return time.perf_counter() - begun, None


def compile_jobs(slices: list[Slice], dtypes: list[str], batches: list[int]) -> tuple[list[Job], list[Job]]:
    """Every kernel that a search may want, each once: what it tries first, and the rest in the order of the cells."""
    first: dict[Job, None] = {}
    rest: dict[Job, None] = {}
    for dtype in dtypes:
        for one in slices:
            shape = one.shape(dtype)
            for tokens in batches:
                for family in families(shape, tokens=tokens, slots=SLOTS, global_experts=one.global_experts):
                    for index, config in enumerate(_paired(family)):
                        job = (shape, config, _tokens(config, tokens, one), one.mapped)
                        (first if index == 0 else rest).setdefault(job)
    return list(first), [job for job in rest if job not in first]


def _tokens(config: MoeConfig, tokens: int, one: Slice) -> int:
    """A batch whose kernels are the same: they differ in whether a scan goes by pairs or by experts."""
    if config.path == "scan" and tokens * SLOTS >= one.experts:
        return 64
    return 2048 if config.path == "sorted" else 1


def _paired(family: list[MoeConfig]) -> list[MoeConfig]:
    """As few configs as contain each tile of the family once."""
    first = family[0]
    ups = list(dict.fromkeys(one.gate_up for one in family))
    downs = list(dict.fromkeys((one.down, one.down_span) for one in family))
    found = []
    for index in range(max(len(ups), len(downs))):
        down, span = downs[min(index, len(downs) - 1)]
        found.append(replace(first, gate_up=ups[min(index, len(ups) - 1)], down=down, down_span=span))
    return found


class Compiler:
    """Fills Triton's cache from a pool of processes; what it has not done in time is compiled when first launched."""

    def __init__(self, capability: int, workers: int) -> None:
        context = get_context("spawn")
        self.begun = time.perf_counter()
        self.pool = ProcessPoolExecutor(workers, context, initializer=_prepare_worker, initargs=(capability,))
        self.futures: dict[Future[Done], Job] = {}

    def add(self, jobs: list[Job]) -> None:
        self.futures |= {self.pool.submit(_compile, job): job for job in jobs}

    def wait(self, limit_s: float) -> None:
        wait(list(self.futures), timeout=limit_s)

    def report(self) -> dict[str, Any]:
        done = {future: job for future, job in self.futures.items() if future.done() and not future.cancelled()}
        results = {job: future.result() for future, job in done.items()}
        problems = {f"{asdict(job[0])} {as_json(job[1])}": problem for job, (_, problem) in results.items() if problem}
        spent = sum(taken for taken, _ in results.values())
        wall = time.perf_counter() - self.begun
        return {
            "configs": len(self.futures),
            "done": len(done),
            "wall_s": wall,
            "process_s": spent,
            "problems": problems,
        }

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
