"""What the engines launch their kernel with when no file says otherwise: always measured, and what a gain is over.

Source: `get_default_config` of vLLM 0.26.0 and of SGLang 0.5.17 on NVIDIA GPUs with more than 128 KiB of shared memory
a block.
"""

from __future__ import annotations

from assay.lab.tuning.space import FP8_BLOCK, Config


def vllm_default(tokens: int, experts: int, dtype: str) -> Config:
    """By tokens of the batch and experts on the rank."""
    if dtype == "fp8":
        columns = 64 if tokens <= 8 else FP8_BLOCK  # noqa: PLR2004 - the engine's thresholds
        stages = 4 if tokens <= 4 else 3  # noqa: PLR2004
        return Config(16 if tokens <= 64 else 64, columns, FP8_BLOCK, 1 if tokens <= 16 else 32, 4, stages)  # noqa: PLR2004
    rows = 16 if tokens <= 32 else 32 if tokens <= 96 else 64 if tokens <= 512 else 128  # noqa: PLR2004
    few = tokens <= 64  # noqa: PLR2004
    grouped = 16 if tokens // max(experts, 1) > 128 else 1  # noqa: PLR2004
    warps, stages = (4 if tokens <= 128 else 8), (4 if tokens <= 32 else 3)  # noqa: PLR2004
    return Config(rows, 64 if few else 128, 128 if few else 64, grouped, warps, stages)


def sglang_default(tokens: int, experts: int, dtype: str) -> Config:
    """By tokens of the batch and experts on the rank; warps and stages are Triton's own where it names none."""
    if dtype == "fp8":
        return Config(64, FP8_BLOCK, FP8_BLOCK, 32, 4, 3)
    if tokens <= experts:
        return Config(16, 32, 64, 1, 4, 3)
    return Config(64, 64, 32, 8, 4, 3)
