"""What starting a kernel costs: inside a replayed graph, one by one, and the start of a graph itself."""

from __future__ import annotations

import time

import torch

from assay.kernels.device_timing import Work, replayed, seconds
from assay.probes.ceilings.gpu_readings import Reading, reading

KERNELS, EAGER_PASSES, GRAPHS = 1000, 5, 200


def launches() -> list[Reading]:
    """A kernel that does hardly anything, captured a thousand times, launched one by one, and as a graph of its own."""
    cell = torch.zeros(64, device="cuda")

    def work() -> None:
        for _ in range(KERNELS):
            cell.add_(1)

    replay = replayed(work)
    torch.cuda.synchronize()
    cell.zero_()
    replay()
    right = bool((cell == KERNELS).all())
    captured = seconds(replay, 10)
    cell.zero_()
    eager = [_wall_s(work) for _ in range(EAGER_PASSES)]
    eager_right = bool((cell == KERNELS * EAGER_PASSES).all())
    one = replayed(lambda: cell.add_(1))
    cell.zero_()
    starts = [_wall_s(lambda: [one() for _ in range(GRAPHS)]) for _ in range(EAGER_PASSES)]
    counted = bool((cell == GRAPHS * EAGER_PASSES).all())
    check = f"{KERNELS} additions add up"
    warm = "does not matter"
    return [
        reading("launch_s", "s", KERNELS, captured, check, correct=right, cache=warm),
        reading("eager_launch_s", "s", KERNELS, eager, f"{check}; by wall clock", correct=eager_right, cache=warm),
        reading("graph_start_s", "s", GRAPHS, starts, "graphs of one addition add up", correct=counted, cache=warm),
    ]


def _wall_s(work: Work) -> float:
    torch.cuda.synchronize()
    begun = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - begun
