"""How device time is measured everywhere: captured graphs between events, caches named cold or warm, outputs poisoned.

Nothing here needs more than PyTorch, so that it runs in processes which have nothing else of Assay's dependencies.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

PASSES, WARM = 20, 3
FLUSH_TIMES_L2 = 2.5
"""So many caches' worth of other data are read between two cold passes."""
UNKNOWN_L2_BYTES = 128 << 20

Work = Callable[[], object]


def seconds(work: Work, passes: int = PASSES, warm: int = WARM) -> list[float]:
    """Device time of each pass, by events around it."""
    for _ in range(warm):
        work()
    torch.cuda.synchronize()
    found = []
    for _ in range(passes):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        found.append(begin.elapsed_time(end) / 1e3)
    return found


def replayed(work: Work) -> Callable[[], None]:
    """The same work as one captured graph: launches cost what they cost an engine that captures."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay  # type: ignore[no-any-return]


class ColdCache:
    """Reads other data between passes, so that each finds the L2 cache without anything of its own.

    It reads and does not write: lines that were written would have to go back to memory during the pass that follows.
    """

    def __init__(self) -> None:
        """Take the buffer: 2.5 L2 caches."""
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        l2 = getattr(properties, "L2_cache_size", 0) or UNKNOWN_L2_BYTES
        self.l2_bytes = int(l2)
        self._other = torch.ones(int(FLUSH_TIMES_L2 * l2) // 4, dtype=torch.int32, device="cuda")
        self._cell = torch.zeros((), dtype=torch.int32, device="cuda")
        self._alone_s: dict[int, float] = {}

    def flush(self) -> None:
        """Evict."""
        torch.amax(self._other, dim=0, out=self._cell)

    def evicting_s(self, times: int) -> float:
        """Seconds of a graph that evicts so many times and does nothing else; measured once."""
        if times not in self._alone_s:

            def alone() -> None:
                for _ in range(times):
                    self.flush()

            self._alone_s[times] = statistics.median(seconds(replayed(alone), 10))
        return self._alone_s[times]


def cold_seconds(
    works: Sequence[Work], cold: ColdCache, passes: int = PASSES, budget_s: float = math.inf
) -> list[float]:
    """Seconds of one of `works` with a cold cache and inside a graph, once for each pass.

    Two graphs are captured: one that evicts and works in turn, and one that only evicts. Their difference over the
    number of works leaves out what starting a graph costs, which an engine pays once a step and not once an operation.

    Args:
        works: the same operation on different data, such as one routing each.
        cold: what evicts.
        passes: at most.
        budget_s: stop after so many seconds of wall clock, not before three passes.
    """

    def both() -> None:
        for work in works:
            cold.flush()
            work()

    evicting = cold.evicting_s(len(works))
    replay = replayed(both)
    for _ in range(WARM):
        replay()
    torch.cuda.synchronize()
    found: list[float] = []
    begun_s = time.perf_counter()
    while len(found) < passes and (len(found) < WARM or time.perf_counter() - begun_s < budget_s):
        found += [(one - evicting) / len(works) for one in seconds(replay, 1, warm=0)]
    return found


def quartiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile; linear between the two nearest."""
    ordered = sorted(samples)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    return at(0.25), at(0.5), at(0.75)


def relative_error(found: Any, wanted: Any) -> float:
    """Norm of the difference over the norm of what was wanted, in float64; infinite where something is not finite."""
    found, wanted = found.double(), wanted.double()
    if not bool(torch.isfinite(found).all()):
        return math.inf
    return float((found - wanted).norm() / wanted.norm())


def poison_free_memory(like: Any, count: int = 4) -> None:
    """Fill blocks of a size with NaN and give them back: an output allocated next is likely one of them.

    For functions that allocate their own outputs; the allocator hands out what was freed last.
    """
    blocks = [torch.empty_like(like) for _ in range(count)]
    for each in blocks:
        poison(each)


def poison(tensor: Any) -> None:
    """Fill an output with what no right result holds, so that a kernel which writes nothing is found out."""
    tensor.fill_(float("nan") if tensor.is_floating_point() else -1)
