"""Ways to store weights, by name: bits per weight with their scales, and what the matmul runs in."""

from __future__ import annotations

from collections.abc import Callable

from assay.records.model_shape import Compute, Storage

FP32 = Storage(name="fp32", bits_per_weight=32, compute="fp32")
BF16 = Storage(name="bf16", bits_per_weight=16)
FP16 = Storage(name="fp16", bits_per_weight=16)
FP8 = Storage(name="fp8", bits_per_weight=8, compute="fp8")
"""One scale a tensor, or a row: too few to count."""
BY_DTYPE: dict[str, Storage] = {
    "float32": FP32,
    "float": FP32,
    "bfloat16": BF16,
    "float16": FP16,
    "half": FP16,
    "float8_e4m3fn": FP8,
    "float8_e5m2": FP8,
}
"""By `torch_dtype`. FP16 multiplies at the rate of BF16."""
SCALE_BITS = {"fp32": 32, "fp16": 16, "fp8": 8}


def fp8_blocks(rows: int, cols: int) -> Storage:
    """FP8 with one FP32 scale for a block of the matrix (DeepSeek-V3, arXiv 2412.19437, section 3.3)."""
    name = f"fp8-block{rows}" if rows == cols else f"fp8-block{rows}x{cols}"
    return Storage(name=name, bits_per_weight=8 + SCALE_BITS["fp32"] / (rows * cols), compute="fp8")


def nvfp4(compute: Compute = "fp4") -> Storage:
    """E2M1 values with one FP8 scale for 16 of them: 4.5 bits (NVIDIA, "Introducing NVFP4")."""
    return Storage(name="nvfp4", bits_per_weight=4.5, compute=compute)


def mxfp4(compute: Compute = "bf16") -> Storage:
    """E2M1 values with one 8-bit exponent for 32 of them: 4.25 bits (OCP Microscaling formats 1.0)."""
    return Storage(name="mxfp4", bits_per_weight=4.25, compute=compute)


def mxfp8() -> Storage:
    """FP8 values with one 8-bit exponent for 32 of them (OCP Microscaling formats 1.0)."""
    return Storage(name="mxfp8", bits_per_weight=8.25, compute="fp8")


def integers(bits: int, group: int | None, *, zeros: bool, compute: Compute = "bf16") -> Storage:
    """Packed integers with an FP16 scale, and perhaps a zero point, for each group (AWQ, GPTQ).

    Without a group the scales are one a row: too few to count, as are the group indices of GPTQ.
    """
    extra = 0.0 if group is None else (SCALE_BITS["fp16"] + (bits if zeros else 0)) / group
    name = f"int{bits}" if group is None else f"int{bits}-g{group}"
    return Storage(name=name, bits_per_weight=bits + extra, compute=compute)


def compute_of(weight_bits: int, activation: tuple[int, str] | None) -> Compute:
    """What a matmul runs in: that of the activations, where these are quantized too; else BF16.

    Args:
        weight_bits: bits of a weight.
        activation: bits and sort (`int`, `float`) of the activations; None: not quantized.
    """
    if activation is None or max(weight_bits, activation[0]) > 8:  # noqa: PLR2004 - nothing wider is a quantization
        return "bf16"
    bits, sort = activation
    if sort == "int":
        return "int8"
    return "fp4" if max(bits, weight_bits) == 4 else "fp8"  # noqa: PLR2004 - FP4 needs both sides in FP4


ALGORITHMS: dict[str, Callable[[int], Storage]] = {
    "NVFP4": lambda _: nvfp4(),
    "NVFP4_AWQ": lambda _: nvfp4(),
    "NVFP4_SVDQUANT": lambda _: nvfp4(),
    "W4A16_NVFP4": lambda _: nvfp4("bf16"),
    "W4A8_NVFP4_FP8": lambda _: nvfp4("fp8"),
    "MXFP4": lambda _: mxfp4(),
    "W4A8_MXFP4_FP8": lambda _: mxfp4("fp8"),
    "MXFP8": lambda _: mxfp8(),
    "FP8": lambda _: FP8,
    "FP8_PER_CHANNEL_PER_TOKEN": lambda _: FP8,
    "FP8_PB_WO": lambda _: fp8_blocks(128, 128),
    "FP8_PB_REAL": lambda _: fp8_blocks(128, 128),
    "INT8_SQ": lambda _: integers(8, None, zeros=False, compute="int8"),
    "W4A16_AWQ": lambda group: integers(4, group, zeros=False),
    "INT4_AWQ": lambda group: integers(4, group, zeros=False),
    "W4A8_AWQ": lambda group: integers(4, group, zeros=False, compute="fp8"),
}
"""ModelOpt's names, each with the storage at a group size.

Source: NVIDIA Model Optimizer, `modelopt/torch/export/quant_utils.py`; TensorRT-LLM, `QuantAlgo`.
"""
