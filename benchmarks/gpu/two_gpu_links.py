"""All-reduces that engines can be switched to, between the GPUs of one machine: NCCL's protocols, vLLM's own kernel.

`worker` is what a rank does in `benchmarks.gpu.two_gpu_ceilings`. NCCL reads NCCL_ALGO and NCCL_PROTO whenever a
communicator is made, so each variant gets a group of its own, made while its variable is set; the log that NCCL is told
to write says which were read. NVLink multicast stays off, as in `assay.probes.ceilings.gpu_links`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from assay.kernels.device_timing import relative_error, replayed, seconds
from assay.probes.ceilings import gpu_links
from assay.probes.ceilings.gpu_links import SIZES, Ranks
from assay.probes.ceilings.gpu_readings import reading

VARIANTS = {
    "nccl_ll": {"NCCL_PROTO": "LL"},
    "nccl_ll128": {"NCCL_PROTO": "LL128"},
    "nccl_simple": {"NCCL_PROTO": "Simple"},
    "nccl_ring": {"NCCL_ALGO": "Ring"},
    "nccl_tree": {"NCCL_ALGO": "Tree"},
}
"""By the name of the part; the curve's has dashes."""
CUSTOM = "vllm-custom"


def worker(rank: int, world: int, folder: str) -> None:
    """One rank: Assay's own set, then the variants, vLLM's kernel before those that a build may refuse."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    log = os.environ.get("ASSAY_NCCL_LOG", folder)
    os.environ |= {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV", "NCCL_DEBUG_FILE": f"{log}/nccl-{rank}.log"}
    first, rest = ("nccl_ll", "nccl_ll128", "nccl_simple"), ("nccl_ring", "nccl_tree")
    parts = (*gpu_links.PARTS, *map(variant, first), vllm_custom, *map(variant, rest))
    gpu_links.through(rank, world, folder, parts)


def variant(name: str) -> gpu_links.Part:
    """All-reduces over a group of its own, whose communicator is made with its variables."""

    def part(ranks: Ranks) -> None:
        with set_to(VARIANTS[name]):
            group = distributed.new_group()
            cell = torch.ones(1, device=ranks.device)
            distributed.all_reduce(cell, group=group)  # the communicator is made by the first call
        gpu_links.all_reduces(ranks, name.replace("_", "-"), group)

    part.__name__ = name
    return part


@contextmanager
def set_to(variables: dict[str, str]) -> Iterator[None]:
    """With these variables in the environment of this process, and afterwards as before."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def vllm_custom(ranks: Ranks) -> None:
    """vLLM's own kernel, as its graphs hold it: messages that its ranks read from each other's memory directly."""
    from vllm.distributed.device_communicators.custom_all_reduce import (  # noqa: PLC0415 - where the engine is
        CustomAllreduce,
    )

    group = distributed.new_group(backend="gloo")
    engine = CustomAllreduce(group=group, device=torch.device("cuda", torch.cuda.current_device()))
    if engine.disabled:
        raise RuntimeError("vLLM's all-reduce switches itself off here: its log says why")
    for size in SIZES:
        mine = torch.randn(size // 2, device=ranks.device, dtype=torch.bfloat16)
        if not engine.should_custom_ar(mine):
            break
        calls = gpu_links.LARGE_CALLS if size >= gpu_links.LARGE_BYTES else gpu_links.SMALL_CALLS
        taken, result = _captured(ranks, engine, mine, calls)
        error = relative_error(result, ranks.sum_of(mine))
        check = f"relative error {error:.1e} against the gathered messages in float64; in a replayed graph"
        more: dict[str, Any] = {"algorithm": CUSTOM, "message_bytes": size, "world": ranks.world}
        good = ranks.every(correct=error < gpu_links.SUM_ERROR)
        ranks.write(reading("all_reduce_s", "s", 1, taken, check, correct=good, cache="warm", **more))
    distributed.barrier()
    engine.close()


def _captured(ranks: Ranks, engine: Any, mine: Any, calls: int) -> tuple[list[float], Any]:
    """Seconds of a call in a graph, and what the last one gave; what is captured is registered when capture ends."""
    result: list[Any] = [None]

    def many() -> None:
        for _ in range(calls):
            result[0] = engine.custom_all_reduce(mine)

    with engine.capture():
        replay: Callable[[], None] = replayed(many)
    result[0].fill_(float("nan"))
    distributed.barrier()
    return ranks.slowest([one / calls for one in seconds(replay, gpu_links.PASSES)]), result[0]


def settings_read(folder: Path) -> dict[str, int]:
    """How often the ranks' NCCL said that it read which setting, as {"NCCL_PROTO LL": 2}."""
    found: dict[str, int] = {}
    for log in sorted(folder.glob("nccl-*.log")):
        for line in log.read_text(errors="replace").splitlines():
            head, middle, value = line.partition(" set by environment to ")
            if middle:
                name = f"{head.rsplit(maxsplit=1)[-1]} {value.strip(' .')}"
                found[name] = found.get(name, 0) + 1
    return found
