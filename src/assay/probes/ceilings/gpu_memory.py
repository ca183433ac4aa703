"""Memory of a GPU: reads and copies of what no cache holds, reads by footprint through the L2, and the host link."""

from __future__ import annotations

import torch

from assay.kernels.device_timing import seconds
from assay.probes.ceilings.gpu_readings import Reading, reading

BIG_BYTES = 4 << 30
HOST_BYTES = 256 << 20
PROGRAMS, ROUNDS, BLOCK = 1024, 192, 4096
BLOCK_BYTES = 4 * BLOCK
FOOTPRINTS_MIB = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 1024)
"""Each is a number of 16 KiB blocks that divides PROGRAMS * ROUNDS, so that every block is read equally often."""

try:
    import triton
    import triton.language as tl
except ImportError:  # the curve over footprints is then missing, with that reason
    triton = None


def memory() -> list[Reading]:
    """Reads and copies of buffers far larger than the cache; a copy counts its reading and its writing."""
    size = min(BIG_BYTES, torch.cuda.mem_get_info()[0] // 4) // 4 * 4
    source = torch.randint(0, 1 << 30, (size // 4,), dtype=torch.int32, device="cuda")
    place = int(torch.randint(0, source.numel(), (1,)))
    source[place] = (1 << 30) + 7
    largest = int(torch.amax(source))
    read = seconds(lambda: torch.amax(source))
    target = torch.full_like(source, -1)
    copied = seconds(lambda: target.copy_(source))
    right = bool(torch.equal(source, target))
    found = largest == (1 << 30) + 7
    return [
        reading("memory_read_bytes_per_s", "bytes/s", size, read, "the largest value, planted", correct=found),
        reading(
            "memory_copy_bytes_per_s",
            "bytes/s",
            2 * size,
            copied,
            "target equals source, poisoned before",
            correct=right,
        ),
    ]


def cache_curve() -> list[Reading]:
    """Reads through the L2 by footprint: what is read again and again, past the first-level caches."""
    if triton is None:
        raise RuntimeError("Triton is not installed: no kernel that reads past the first-level caches")
    return [_footprint(size << 20) for size in FOOTPRINTS_MIB]


def _footprint(size: int) -> Reading:
    blocks = size // BLOCK_BYTES
    times = PROGRAMS * ROUNDS // blocks
    source = torch.randint(-(1 << 20), 1 << 20, (size // 4,), dtype=torch.int32, device="cuda")
    sums = torch.full((PROGRAMS,), -1, dtype=torch.int64, device="cuda")

    def work() -> None:
        _read_blocks[(PROGRAMS,)](source, sums, blocks, ROUNDS, PROGRAMS, BLOCK, num_warps=8)

    work()
    wanted = times * int(source.sum(dtype=torch.int64))
    right = int(sums.sum()) == wanted
    taken = seconds(work, 10)
    check = f"the sum of every block read {times} times, exact"
    name = "l2_curve_read_bytes_per_s"
    amount = PROGRAMS * ROUNDS * BLOCK_BYTES
    return reading(name, "bytes/s", amount, taken, check, correct=right, cache="warm", footprint_bytes=size)


if triton is not None:

    @triton.jit
    def _read_blocks(source, sums, blocks, rounds, programs, block: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - Triton reads the types of the launch, and Any is none of its names
        program = tl.program_id(0)
        lane = tl.arange(0, block)
        total = tl.zeros(
            (block,), dtype=tl.int32
        )  # 192 values of at most 2**20 fit: wider sums would cost more than reading
        for turn in range(rounds):
            at = (turn * programs + program) % blocks
            total += tl.load(source + at.to(tl.int64) * block + lane, cache_modifier=".cg")
        tl.store(sums + program, tl.sum(total.to(tl.int64), axis=0))


def host_link() -> list[Reading]:
    """Pinned memory to the device, the direction in which weights and prompts go, and back."""
    source = torch.randint(0, 256, (HOST_BYTES,), dtype=torch.uint8).pin_memory()
    target = torch.zeros(HOST_BYTES, dtype=torch.uint8, device="cuda")
    taken = seconds(lambda: target.copy_(source, non_blocking=True))
    right = bool(torch.equal(target.cpu(), source))
    back = torch.zeros(HOST_BYTES, dtype=torch.uint8).pin_memory()
    returned = seconds(lambda: back.copy_(target, non_blocking=True))
    returned_right = bool(torch.equal(back, source))
    return [
        reading("host_link_bytes_per_s", "bytes/s", HOST_BYTES, taken, "device equals host", correct=right),
        reading(
            "host_link_back_bytes_per_s", "bytes/s", HOST_BYTES, returned, "host equals device", correct=returned_right
        ),
    ]
