"""Collectives between the GPUs of one machine, one process a GPU: all-reduce by algorithm, others by NCCL, overlap.

Every rank runs `worker`; rank 0 appends a line of JSON for each measurement to a file, so that one which hangs costs
itself alone. NVLink multicast stays off (`gpu_safety`).
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from assay.kernels.device_timing import poison, relative_error, replayed, seconds
from assay.probes.ceilings.gpu_readings import Reading, reading
from assay.probes.ceilings.gpu_safety import SAFE_ENVIRONMENT

SIZES = tuple(1 << power for power in range(12, 27, 2))
"""Bytes that a rank contributes: 4 KiB to 64 MiB. One token of GLM-5 is 12 KiB."""
SMALL_CALLS, LARGE_CALLS, LARGE_BYTES = 20, 5, 4 << 20
PASSES = 10
ONE_SHOT_MOST_BYTES = 16 << 20
"""Above, one-shot reads every rank's whole message and only wastes time."""
SUM_ERROR = 1e-2
OVERLAP_TOKENS = (64, 512, 2048)
OVERLAP_HIDDEN, OVERLAP_WIDTH, OVERLAP_LAYERS = 6144, 2048, 8
TIMEOUT = timedelta(seconds=60)

REFUSED = (RuntimeError, NotImplementedError, AttributeError, TypeError, ValueError, ImportError, AssertionError)
"""What a build raises that cannot do it."""
Worker = Callable[[int, int, str], None]
"""What a rank does: its number, the ranks, and the folder."""


def measure_links(
    world: int, folder: Path, patience_s: float, target: Worker | None = None
) -> tuple[list[Reading], dict[str, str]]:
    """Start the ranks, wait, and read what they wrote.

    Args:
        world: GPUs.
        folder: for the meeting place and the results; empty.
        patience_s: ranks that have not ended by then are ended.
        target: what each rank does; `worker` when None.
    """
    os.environ.update(SAFE_ENVIRONMENT)
    context = torch.multiprocessing.get_context("spawn")
    work = target or worker
    ranks = [context.Process(target=work, args=(rank, world, str(folder)), daemon=True) for rank in range(world)]
    for each in ranks:
        each.start()
    until = time.monotonic() + patience_s
    for each in ranks:
        each.join(max(0.0, until - time.monotonic()))
    problems = {}
    late = [each for each in ranks if each.is_alive()]
    for each in late:
        each.kill()
        each.join()
    if late:
        problems["links"] = f"{len(late)} of {world} ranks had not ended after {patience_s:.0f} s"
    elif any(each.exitcode for each in ranks):
        problems["links"] = f"ranks ended with {[each.exitcode for each in ranks]}"
    return _read(folder / "readings.jsonl", problems), problems


def _read(path: Path, problems: dict[str, str]) -> list[Reading]:
    """Whole lines: a rank that was ended may have left a part of one."""
    found = []
    for line in path.read_text().splitlines(keepends=True) if path.exists() else ():
        if not line.endswith("\n"):
            break
        row = json.loads(line)
        if "problem" in row:
            problems[row["name"]] = row["problem"]
        else:
            found.append(row)
    return found


def worker(rank: int, world: int, folder: str) -> None:
    """One rank: every measurement in the same order as the others."""
    through(rank, world, folder, PARTS)


def through(rank: int, world: int, folder: str, parts: Sequence[Part]) -> None:
    """One rank's way through measurements, which it begins and ends with the others."""
    os.environ.update(SAFE_ENVIRONMENT)
    torch.cuda.set_device(rank)
    torch.manual_seed(rank)
    store = distributed.FileStore(f"{folder}/store", world)
    distributed.init_process_group("nccl", store=store, rank=rank, world_size=world, timeout=TIMEOUT)
    ranks = Ranks(rank, world, Path(folder) / "readings.jsonl")
    for part in parts:
        ranks.run(part.__name__, part)
    distributed.destroy_process_group()


class Ranks:
    """What the measurements share: who we are, where tensors lie, and where rank 0 writes."""

    device = "cuda"

    def __init__(self, rank: int, world: int, path: Path) -> None:
        """All ranks are there already."""
        self.rank, self.world, self._path = rank, world, path

    def run(self, name: str, part: Callable[[Ranks], None]) -> None:
        """One measurement; what goes wrong on every rank alike is written down and the next one begins."""
        try:
            part(self)
        except REFUSED as error:
            self.write({"name": name, "problem": (str(error) or repr(error)).splitlines()[0][:300]})
            if self.device == "cuda":
                torch.cuda.synchronize()

    def write(self, row: dict[str, Any]) -> None:
        """Rank 0 keeps a line."""
        if self.rank == 0:
            with self._path.open("a") as file:
                file.write(json.dumps(row) + "\n")

    def slowest(self, samples: list[float]) -> list[float]:
        """Of each pass, the time of the rank that took longest."""
        times = torch.tensor(samples, device=self.device, dtype=torch.float64)
        distributed.all_reduce(times, distributed.ReduceOp.MAX)
        return [float(each) for each in times.cpu()]

    def every(self, *, correct: bool) -> bool:
        """Whether a check held on every rank."""
        cell = torch.tensor(int(correct), device=self.device)
        distributed.all_reduce(cell, distributed.ReduceOp.MIN)
        return bool(cell)

    def sum_of(self, mine: Any) -> Any:
        """The sum over ranks in float64, by gathering: an independent way."""
        parts = [torch.empty_like(mine) for _ in range(self.world)]
        distributed.all_gather(parts, mine)
        return sum(part.double() for part in parts)

    def time(self, work: Callable[[], object], calls: int) -> tuple[list[float], str]:
        """Seconds of a call inside a graph of `calls`; launched one by one where it cannot be captured."""

        def many() -> None:
            for _ in range(calls):
                work()

        try:
            replay, how = replayed(many), "in a replayed graph"
        except RuntimeError as error:
            torch.cuda.synchronize()
            replay, how = many, f"launched one by one ({str(error).splitlines()[0][:80]})"
        distributed.barrier()
        return self.slowest([one / calls for one in seconds(replay, PASSES)]), how


def nccl(ranks: Ranks) -> None:
    """By the library's own choice of algorithm and protocol."""
    all_reduces(ranks, "nccl")


def all_reduces(ranks: Ranks, algorithm: str, group: Any = None) -> None:
    """Over a group (None: all ranks), under the name that its curve gets."""
    for size in SIZES:
        mine = torch.randn(size // 2, device=ranks.device, dtype=torch.bfloat16)
        wanted = ranks.sum_of(mine)
        result = mine.clone()
        distributed.all_reduce(result, group=group)
        error = relative_error(result, wanted)
        result.zero_()  # sums of sums would overflow after some hundred calls

        def work(result: Any = result) -> None:
            distributed.all_reduce(result, group=group)

        told(ranks, algorithm, size, error, work)


def one_shot(ranks: Ranks) -> None:
    """Every rank reads all messages and sums them itself: one exchange, for small messages."""
    from torch.distributed import _symmetric_memory as symmetric  # noqa: PLC0415 - absent in older builds

    group = distributed.group.WORLD.group_name
    for size in (each for each in SIZES if each <= ONE_SHOT_MOST_BYTES):
        mine = _symmetric(symmetric, size)
        wanted = ranks.sum_of(mine)
        result = torch.empty_like(wanted, dtype=torch.bfloat16)
        poison(result)
        distributed.barrier()

        def work(mine: Any = mine, result: Any = result) -> None:
            torch.ops.symm_mem.one_shot_all_reduce_out(mine, "sum", group, result)

        work()
        told(ranks, "one-shot", size, relative_error(result, wanted), work)


def two_shot(ranks: Ranks) -> None:
    """Every rank sums a part and hands it to all others: two exchanges, less traffic."""
    from torch.distributed import _symmetric_memory as symmetric  # noqa: PLC0415 - absent in older builds

    group = distributed.group.WORLD.group_name
    for size in SIZES:
        mine = _symmetric(symmetric, size)
        wanted = ranks.sum_of(mine)
        distributed.barrier()
        torch.ops.symm_mem.two_shot_all_reduce_(mine, "sum", group)
        error = relative_error(mine, wanted)
        mine.zero_()  # sums of sums would overflow after some hundred calls

        def work(mine: Any = mine) -> None:
            torch.ops.symm_mem.two_shot_all_reduce_(mine, "sum", group)

        told(ranks, "two-shot", size, error, work)


def _symmetric(symmetric: Any, size: int) -> Any:
    mine = symmetric.empty(size // 2, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device()))
    symmetric.rendezvous(mine, group=distributed.group.WORLD)
    mine.copy_(torch.randn(size // 2, device="cuda", dtype=torch.bfloat16))
    return mine


def all_to_all(ranks: Ranks) -> None:
    """A part of the message to each rank, and theirs."""
    for size in SIZES:
        mine = torch.randn(ranks.world, size // 2 // ranks.world, device=ranks.device, dtype=torch.bfloat16)
        result = torch.empty_like(mine)
        poison(result)
        everything = [torch.empty_like(mine) for _ in range(ranks.world)]
        distributed.all_gather(everything, mine)
        distributed.all_to_all_single(result, mine)
        wanted = torch.stack([part[ranks.rank] for part in everything])

        def work(mine: Any = mine, result: Any = result) -> None:
            distributed.all_to_all_single(result, mine)

        told(ranks, "nccl", size, relative_error(result, wanted), work, name="all_to_all_s")


def all_gather(ranks: Ranks) -> None:
    """Every rank gets the messages of all: what data-parallel attention does before its experts."""
    for size in SIZES:
        mine = torch.randn(size // 2, device=ranks.device, dtype=torch.bfloat16)
        everything = [torch.empty_like(mine) for _ in range(ranks.world)]
        distributed.all_gather(everything, mine)
        result = torch.empty(ranks.world * mine.numel(), device=ranks.device, dtype=torch.bfloat16)
        poison(result)
        distributed.all_gather_into_tensor(result, mine)
        error = relative_error(result, torch.cat(everything))

        def work(mine: Any = mine, result: Any = result) -> None:
            distributed.all_gather_into_tensor(result, mine)

        told(ranks, "nccl", size, error, work, name="all_gather_s")


def reduce_scatter(ranks: Ranks) -> None:
    """Every rank gets its part of the sum: what follows those experts."""
    for size in SIZES:
        mine = torch.randn(size // 2, device=ranks.device, dtype=torch.bfloat16)
        wanted = ranks.sum_of(mine).chunk(ranks.world)[ranks.rank]
        result = torch.empty(mine.numel() // ranks.world, device=ranks.device, dtype=torch.bfloat16)
        poison(result)
        distributed.reduce_scatter_tensor(result, mine)
        error = relative_error(result, wanted)

        def work(mine: Any = mine, result: Any = result) -> None:
            distributed.reduce_scatter_tensor(result, mine)

        told(ranks, "nccl", size, error, work, name="reduce_scatter_s")


def told(
    ranks: Ranks, algorithm: str, size: int, error: float, work: Callable[[], object], name: str = "all_reduce_s"
) -> None:
    """Time one message and write it down, with what its check said."""
    good = ranks.every(correct=error < SUM_ERROR)
    taken, how = ranks.time(work, LARGE_CALLS if size >= LARGE_BYTES else SMALL_CALLS)
    check = f"relative error {error:.1e} against the gathered messages in float64; {how}"
    more: dict[str, Any] = {"algorithm": algorithm, "message_bytes": size, "world": ranks.world}
    ranks.write(reading(name, "s", 1, taken, check, correct=good, cache="warm", **more))


def overlap(ranks: Ranks) -> None:
    """Products and all-reduces on two streams: alone and together, at a layer's size."""
    for tokens in OVERLAP_TOKENS:
        left = torch.randn(tokens, OVERLAP_HIDDEN, device=ranks.device, dtype=torch.bfloat16)
        weights = [
            torch.randn(OVERLAP_HIDDEN, OVERLAP_WIDTH, device=ranks.device, dtype=torch.bfloat16)
            for _ in range(OVERLAP_LAYERS)
        ]
        message = torch.zeros(tokens * OVERLAP_HIDDEN, device=ranks.device, dtype=torch.bfloat16)
        other = torch.cuda.Stream()

        def compute(left: Any = left, weights: Any = weights) -> None:
            for weight in weights:
                torch.mm(left, weight)

        def talk(message: Any = message, weights: Any = weights) -> None:
            for _ in weights:
                distributed.all_reduce(message)

        def together(compute: Any = compute, talk: Any = talk, other: Any = other) -> None:
            other.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(other):
                talk()
            compute()
            torch.cuda.current_stream().wait_stream(other)

        alone_s = [statistics.median(ranks.time(work, 1)[0]) for work in (compute, talk)]
        both, how = ranks.time(together, 1)
        alone = f"products alone {alone_s[0] * 1e6:.0f} us, all-reduces alone {alone_s[1] * 1e6:.0f} us"
        check = f"results not looked at; {alone}; {how}"
        more: dict[str, Any] = {
            "tokens": tokens,
            "compute_s": alone_s[0],
            "communication_s": alone_s[1],
            "message_bytes": 2 * tokens * OVERLAP_HIDDEN,
            "world": ranks.world,
        }
        ranks.write(reading("overlap_s", "s", 1, both, check, correct=True, cache="cold", **more))


Part = Callable[[Ranks], None]
PARTS: tuple[Part, ...] = (nccl, one_shot, two_shot, all_to_all, all_gather, reduce_scatter, overlap)
