"""Measures what a GPU can do at most, in a process of its own: `python -m assay.probes.ceilings.gpu_program [INDEX]`.

Writes one JSON object: `facts` (as `assay estimate --measured` reads them), `readings` (every sample, with its check)
and `problems` (what could not be measured, and why). Needs PyTorch, which Assay does not install. Outputs are poisoned
before each check and compared with a reference in higher precision on rows drawn at random; a reading whose check fails
gives no fact. Memory is read cold: buffers far larger than the L2 cache.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

PASSES, WARM = 20, 3
BIG_BYTES = 4 << 30
MATMUL = 8192
CHECKED_ROWS = 64
WORST_ERROR = {"fp32": 1e-4, "bf16": 1e-2, "fp8": 6e-2}
"""Relative error of a product that is still right: fp8 has a mantissa of three bits, its inputs are rounded to it."""
KERNELS = 1000
GEMM_ROWS, GEMM_COLUMNS, GEMM_MATRICES = 8192, 4096, 24
BATCHES = (1, 8, 64, 256)
HOST_BYTES = 256 << 20

Reading = dict[str, Any]


def seconds(work: Callable[[], object], passes: int = PASSES) -> list[float]:
    """Device time of each pass, by events around it."""
    for _ in range(WARM):
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


def replayed(work: Callable[[], object]) -> Callable[[], None]:
    """The same work as one captured graph: launches cost what they cost an engine that captures."""
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay  # type: ignore[no-any-return]


def reading(name: str, unit: str, amount: float, taken_s: list[float], check: str, *, correct: bool) -> Reading:
    """Amount over time for rates; time over amount for costs (unit "s")."""
    samples = [one / amount for one in taken_s] if unit == "s" else [amount / one for one in taken_s]
    return {"name": name, "unit": unit, "samples": samples, "check": check, "correct": bool(correct)}


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
    return [
        reading(
            "memory_read_bytes_per_s",
            "bytes/s",
            size,
            read,
            "the largest value, planted",
            correct=largest == (1 << 30) + 7,
        ),
        reading(
            "memory_copy_bytes_per_s",
            "bytes/s",
            2 * size,
            copied,
            "target equals source, poisoned before",
            correct=right,
        ),
    ]


def products() -> list[Reading]:
    """Square products by arithmetic; rates of the largest size that engines see."""
    left = torch.randn(MATMUL, MATMUL, device="cuda", dtype=torch.bfloat16)
    right = torch.randn(MATMUL, MATMUL, device="cuda", dtype=torch.bfloat16)
    found = [_product("bf16", left, right, lambda: left @ right)]
    wide = left.float(), right.float()
    torch.backends.cuda.matmul.allow_tf32 = False
    found.append(_product("fp32", *wide, lambda: wide[0] @ wide[1], passes=5))
    if torch.cuda.get_device_capability() >= (8, 9):
        narrow = left.to(torch.float8_e4m3fn), right.t().contiguous().to(torch.float8_e4m3fn).t()
        one = torch.ones((), device="cuda")

        def scaled() -> torch.Tensor:
            return torch._scaled_mm(*narrow, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)  # noqa: SLF001 - torch has no public one

        found.append(_product("fp8", narrow[0].float(), narrow[1].float(), scaled))
    return found


def _product(
    name: str, left: torch.Tensor, right: torch.Tensor, work: Callable[[], torch.Tensor], passes: int = PASSES
) -> Reading:
    rows = torch.randint(0, MATMUL, (CHECKED_ROWS,), device="cuda")
    wanted = left[rows].double() @ right.double()
    error = float((work()[rows].double() - wanted).norm() / wanted.norm())
    taken = seconds(work, passes)
    check = f"relative error {error:.1e} on {CHECKED_ROWS} rows against float64"
    return reading(f"{name}_flop_per_s", "flop/s", 2 * MATMUL**3, taken, check, correct=error < WORST_ERROR[name])


def thin_products() -> list[Reading]:
    """Weight bytes a second of products with few rows, many distinct matrices in one graph: a decode step's."""
    weights = [torch.randn(GEMM_ROWS, GEMM_COLUMNS, device="cuda", dtype=torch.bfloat16) for _ in range(GEMM_MATRICES)]
    size = 2 * GEMM_ROWS * GEMM_COLUMNS * GEMM_MATRICES
    found = []
    for batch in BATCHES:
        tokens = torch.randn(batch, GEMM_COLUMNS, device="cuda", dtype=torch.bfloat16)
        results = [torch.full((batch, GEMM_ROWS), float("nan"), device="cuda", dtype=torch.bfloat16) for _ in weights]

        def work(tokens: torch.Tensor = tokens, results: list[torch.Tensor] = results) -> None:
            for weight, result in zip(weights, results, strict=True):
                torch.mm(tokens, weight.t(), out=result)

        taken = seconds(replayed(work))
        wanted = tokens.double() @ weights[-1].double().t()
        error = float((results[-1].double() - wanted).norm() / wanted.norm())
        check = f"relative error {error:.1e} of the last matrix against float64"
        name = f"gemm_{batch}_rows_weight_bytes_per_s"
        found.append(reading(name, "bytes/s", size, taken, check, correct=error < WORST_ERROR["bf16"]))
    return found


def launches() -> list[Reading]:
    """What a kernel that does nothing costs, inside a replayed graph and launched one by one."""
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
    begun = time.perf_counter()
    work()
    torch.cuda.synchronize()
    eager = time.perf_counter() - begun
    check = f"{KERNELS} additions add up"
    return [
        reading("launch_s", "s", KERNELS, captured, check, correct=right),
        reading("eager_launch_s", "s", KERNELS, [eager], "wall clock of one pass", correct=True),
    ]


def host_link() -> list[Reading]:
    """Pinned memory to the device: the direction in which weights and prompts go."""
    source = torch.randint(0, 256, (HOST_BYTES,), dtype=torch.uint8).pin_memory()
    target = torch.zeros(HOST_BYTES, dtype=torch.uint8, device="cuda")
    taken = seconds(lambda: target.copy_(source, non_blocking=True))
    right = bool(torch.equal(target.cpu(), source))
    return [reading("host_link_bytes_per_s", "bytes/s", HOST_BYTES, taken, "device equals host", correct=right)]


FACTS = frozenset(
    {
        "memory_read_bytes_per_s",
        "memory_copy_bytes_per_s",
        "bf16_flop_per_s",
        "fp32_flop_per_s",
        "fp8_flop_per_s",
        "launch_s",
        "host_link_bytes_per_s",
    }
)
"""Readings that are facts of a device; the rest tell about kernels."""


def measure(index: int) -> dict[str, Any]:
    """Everything, on one device."""
    torch.cuda.set_device(index)
    properties = torch.cuda.get_device_properties(index)
    readings: list[Reading] = []
    problems: dict[str, str] = {}
    for part in (memory, products, thin_products, launches, host_link):
        try:
            readings += part()
        except (RuntimeError, NotImplementedError, AttributeError) as error:
            problems[part.__name__] = str(error).splitlines()[0][:300]
        torch.cuda.empty_cache()
    about = f"{properties.name}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}"
    facts = {
        one["name"]: {
            "value": sorted(one["samples"])[len(one["samples"]) // 2],
            "unit": one["unit"],
            "basis": "measured",
            "source": f"median of {len(one['samples'])} passes; {about}",
        }
        for one in readings
        if one["name"] in FACTS and one["correct"]
    }
    return {"device": properties.name, "about": about, "facts": facts, "readings": readings, "problems": problems}


def main() -> None:
    """Measure the device that is named (the first one), and write JSON."""
    index = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    if not torch.cuda.is_available():
        found: dict[str, Any] = {"problem": "PyTorch sees no CUDA device here"}
    else:
        found = measure(index)
    json.dump(found, sys.stdout)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
