"""Matmuls of a GPU: square ones by arithmetic, and thin ones as a decode step has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from assay.kernels.device_timing import PASSES, poison, relative_error, replayed, seconds
from assay.probes.ceilings.gpu_readings import WORST_ERROR, Reading, reading

MATMUL = 8192
CHECKED_ROWS = 64
GEMM_ROWS, GEMM_COLUMNS, GEMM_MATRICES = 8192, 4096, 24
BATCHES = (1, 8, 64, 256)
FP8_CAPABILITY, FP4_CAPABILITY = (8, 9), (10, 0)
FP4_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
"""E2M1 by its four bits."""
FP4_GROUP = 16

Tensor = Any


def bf16() -> list[Reading]:
    """Square products in BF16."""
    left, right = _square(), _square()
    return [_product("bf16", left, right, lambda: left @ right)]


def fp32() -> list[Reading]:
    """Square products in FP32, without TF32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    left, right = _square().float(), _square().float()
    return [_product("fp32", left, right, lambda: left @ right, passes=5)]


def fp8() -> list[Reading]:
    """Square products in FP8, one scale a matrix."""
    if torch.cuda.get_device_capability() < FP8_CAPABILITY:
        raise RuntimeError("the chip has no FP8 arithmetic")
    left = _square().to(torch.float8_e4m3fn)
    right = _square().to(torch.float8_e4m3fn).t()  # its columns one after the other, as the instruction wants them
    one = torch.ones((), device="cuda")

    def scaled() -> Tensor:
        return torch._scaled_mm(left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)  # noqa: SLF001 - torch has no public one

    return [_product("fp8", left.float(), right.float(), scaled)]


def fp4() -> list[Reading]:
    """Square products in FP4 with scales of 16 (NVFP4), all scales 1."""
    if torch.cuda.get_device_capability() < FP4_CAPABILITY:
        raise RuntimeError("the chip has no FP4 arithmetic")
    packed = [torch.randint(0, 256, (MATMUL, MATMUL // 2), dtype=torch.uint8, device="cuda") for _ in range(2)]
    scales = torch.ones(MATMUL * MATMUL // FP4_GROUP, device="cuda").to(torch.float8_e4m3fn)
    left, right = (each.view(torch.float4_e2m1fn_x2) for each in packed)

    def scaled() -> Tensor:
        return torch._scaled_mm(left, right.t(), scale_a=scales, scale_b=scales, out_dtype=torch.bfloat16)  # noqa: SLF001 - torch has no public one

    return [_product("fp4", _unpacked(packed[0]), _unpacked(packed[1]).t(), scaled)]


def _unpacked(packed: Tensor) -> Tensor:
    """Two values a byte, the first in the low bits."""
    table = torch.tensor(FP4_VALUES, device=packed.device)
    return torch.stack((table[(packed & 15).long()], table[(packed >> 4).long()]), dim=-1).flatten(1)


def _square() -> Tensor:
    return torch.randn(MATMUL, MATMUL, device="cuda", dtype=torch.bfloat16)


def _product(name: str, left: Tensor, right: Tensor, work: Callable[[], Tensor], passes: int = PASSES) -> Reading:
    rows = torch.randint(0, MATMUL, (CHECKED_ROWS,), device="cuda")
    error = relative_error(work()[rows], left[rows].double() @ right.double())
    taken = seconds(work, passes)
    check = f"relative error {error:.1e} on {CHECKED_ROWS} rows against float64"
    right_enough = error < WORST_ERROR[name]
    return reading(f"{name}_flop_per_s", "flop/s", 2 * MATMUL**3, taken, check, correct=right_enough, cache="warm")


def thin_products() -> list[Reading]:
    """Weight bytes a second of products with few rows, many distinct matrices in one graph: a decode step's."""
    weights = [torch.randn(GEMM_ROWS, GEMM_COLUMNS, device="cuda", dtype=torch.bfloat16) for _ in range(GEMM_MATRICES)]
    size = 2 * GEMM_ROWS * GEMM_COLUMNS * GEMM_MATRICES
    found = []
    for batch in BATCHES:
        tokens = torch.randn(batch, GEMM_COLUMNS, device="cuda", dtype=torch.bfloat16)
        results = [torch.empty((batch, GEMM_ROWS), device="cuda", dtype=torch.bfloat16) for _ in weights]

        def work(tokens: Tensor = tokens, results: list[Tensor] = results) -> None:
            for weight, result in zip(weights, results, strict=True):
                torch.mm(tokens, weight.t(), out=result)

        replay = replayed(work)
        for result in results:
            poison(result)
        taken = seconds(replay)
        error = relative_error(results[-1], tokens.double() @ weights[-1].double().t())
        check = f"relative error {error:.1e} of the last matrix against float64, poisoned before"
        name = f"gemm_{batch}_rows_weight_bytes_per_s"
        found.append(reading(name, "bytes/s", size, taken, check, correct=error < WORST_ERROR["bf16"]))
    return found
