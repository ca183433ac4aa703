"""Compiles kernels ahead of their measurement, on every core: each process launches a configuration once.

Triton keeps what it compiled on disk, so that the process which measures finds it there. Tuning is mostly compiling:
a launch takes a millisecond, its two kernels seconds.
"""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Sequence
from typing import Any

import torch

PATIENCE_S = 90.0
"""For one generation without any answer."""
MOST_WORKERS = 14
TOO_LARGE = "out of resource"
"""How Triton begins what it says of a configuration that the chip cannot hold."""
Task = tuple[int, dict[str, int]]


class CompilePool:
    """Processes that compile; none where only one core is there."""

    def __init__(self, shape: dict[str, Any], engine: str, workers: int | None = None) -> None:
        """Start them; they load the engine meanwhile."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        count = min(MOST_WORKERS, cores - 2) if workers is None else workers
        context = torch.multiprocessing.get_context("spawn")
        self._tasks, self._done = context.Queue(), context.Queue()
        self._workers = [
            context.Process(target=_work, args=(shape, engine, self._tasks, self._done), daemon=True)
            for _ in range(max(0, count))
        ]
        for each in self._workers:
            each.start()
        self._generation = 0

    def prepare(self, tasks: Sequence[Task]) -> dict[int, str]:
        """Compile, and say what could not be: place in `tasks` to the reason."""
        if not any(each.is_alive() for each in self._workers) or len(tasks) < 2:  # noqa: PLR2004 - one is not worth the way
            return {}
        self._generation += 1
        for place, task in enumerate(tasks):
            self._tasks.put((self._generation, place, *task))
        problems: dict[int, str] = {}
        waiting, heard_s = len(tasks), time.monotonic()
        while waiting and time.monotonic() - heard_s < PATIENCE_S:
            try:
                generation, place, problem = self._done.get(timeout=1.0)
            except queue.Empty:
                if not any(each.is_alive() for each in self._workers):
                    break
                continue
            heard_s = time.monotonic()
            if generation != self._generation:
                continue  # an answer that came after its generation was given up
            waiting -= 1
            if problem is not None and TOO_LARGE in problem:
                problems[place] = problem  # anything else may be this process's own trouble: it is launched once more
        return problems

    def close(self) -> None:
        """End them."""
        for _ in self._workers:
            self._tasks.put(None)
        for each in self._workers:
            each.join(2.0)
            if each.is_alive():
                each.kill()
                each.join()


def _work(shape: dict[str, Any], engine: str, tasks: Any, done: Any) -> None:
    """Launch what is asked for; the same sizes as the real ones, since kernels are compiled for what divides by 16."""
    from assay.lab.on_gpu.expert_data import empty_experts, make_batch  # noqa: PLC0415 - in the child only
    from assay.lab.on_gpu.implementations import IMPLEMENTATIONS  # noqa: PLC0415

    held = empty_experts(shape)
    make: Any = IMPLEMENTATIONS[engine]
    batches: dict[int, Any] = {}
    while (task := tasks.get()) is not None:
        generation, place, tokens, config = task
        try:
            if tokens not in batches:
                batches[tokens] = make_batch(held, tokens, 0.0, 0)
            make(held, batches[tokens], config)()
            torch.cuda.synchronize()
            done.put((generation, place, None))
        except Exception as error:  # noqa: BLE001 - whatever a compiler throws is a reason
            done.put((generation, place, (str(error) or repr(error)).splitlines()[0][:200]))
