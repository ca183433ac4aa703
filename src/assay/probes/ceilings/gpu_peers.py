"""Copies between GPUs, from one process: bandwidth one way and both ways, and what an empty copy costs."""

from __future__ import annotations

import time
from typing import Any

import torch

from assay.kernels.device_timing import seconds
from assay.probes.ceilings.gpu_readings import Reading, reading

COPY_BYTES = 256 << 20
SMALL_COPIES = 500


def peers(first: int = 0, second: int = 1) -> list[Reading]:
    """From the first device to the second, both ways at once, and small messages one after the other."""
    direct = torch.cuda.can_device_access_peer(first, second)
    way = "peer to peer" if direct else "through the host: the driver gives no peer access"
    torch.cuda.set_device(first)
    source = torch.randint(0, 256, (COPY_BYTES,), dtype=torch.uint8, device=f"cuda:{first}")
    target = torch.zeros(COPY_BYTES, dtype=torch.uint8, device=f"cuda:{second}")
    one_way = seconds(lambda: target.copy_(source))
    right = bool(torch.equal(target.cpu(), source.cpu()))
    found = [reading("p2p_bytes_per_s", "bytes/s", COPY_BYTES, one_way, f"equal; {way}", correct=right)]
    found.append(_both_ways(first, second, source, target, way))
    cell, other = source[:8], target[:8]
    other.zero_()

    def ping() -> None:
        for _ in range(SMALL_COPIES):
            other.copy_(cell, non_blocking=True)

    small = seconds(ping, 10)
    right = bool(torch.equal(other.cpu(), cell.cpu()))
    found.append(reading("p2p_copy_s", "s", SMALL_COPIES, small, f"8 bytes equal; {way}", correct=right, cache="warm"))
    return found


def _both_ways(first: int, second: int, source: Any, target: Any, way: str) -> Reading:
    """Two copies at once, in opposite directions, by wall clock over several repetitions."""
    back_source = torch.randint(0, 256, (COPY_BYTES,), dtype=torch.uint8, device=f"cuda:{second}")
    back_target = torch.zeros(COPY_BYTES, dtype=torch.uint8, device=f"cuda:{first}")
    streams = torch.cuda.Stream(first), torch.cuda.Stream(second)
    taken = []
    for _ in range(8):
        torch.cuda.synchronize(first)
        torch.cuda.synchronize(second)
        begun = time.perf_counter()
        for _ in range(8):
            with torch.cuda.stream(streams[0]):
                target.copy_(source, non_blocking=True)
            with torch.cuda.stream(streams[1]):
                back_target.copy_(back_source, non_blocking=True)
        torch.cuda.synchronize(first)
        torch.cuda.synchronize(second)
        taken.append((time.perf_counter() - begun) / 8)
    right = bool(torch.equal(target.cpu(), source.cpu())) and bool(torch.equal(back_target.cpu(), back_source.cpu()))
    return reading("p2p_both_ways_bytes_per_s", "bytes/s", 2 * COPY_BYTES, taken, f"both equal; {way}", correct=right)
