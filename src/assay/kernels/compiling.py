"""Compile the kernels of a call without running it, on any machine: what they need of a chip, and a warm cache.

Calls take tensors on the "meta" device, which have shapes and no memory.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from assay.kernels.choose import Shape
from assay.kernels.moe import fused_moe
from assay.kernels.operands import FP8, GROUP
from assay.kernels.tiles import MoeConfig


@dataclass(frozen=True, slots=True)
class Compiled:
    """One kernel as the compiler left it."""

    name: str
    shared_bytes: int
    ptx: str


class _NoDevice:
    """A driver that knows a target and has no device."""

    def __init__(self, capability: int) -> None:
        self.target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _device: int) -> int:
        return 0


def without_device(capability: int) -> None:
    """Let this process compile for a compute capability (90 for sm90); it can launch nothing afterwards."""
    driver.set_active(_NoDevice(capability))


@contextlib.contextmanager
def only_compiling() -> Iterator[list[Compiled]]:
    """Inside, launches compile and do not run; yields what was compiled."""
    found: list[Compiled] = []
    launch = JITFunction.run

    def instead(kernel: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        del warmup
        made = launch(kernel, *arguments, grid=grid, warmup=True, **options)
        found.append(Compiled(kernel.fn.__name__, made.metadata.shared, made.asm["ptx"]))
        return made

    JITFunction.run = instead
    try:
        yield found
    finally:
        JITFunction.run = launch


def compile_layer(
    shape: Shape, config: MoeConfig, *, tokens: int, slots: int, global_experts: int | None = None
) -> list[Compiled]:
    """The kernels of one layer and batch; `global_experts`: an expert map is used."""
    with only_compiling() as found:
        call = layer_call(shape, config, tokens=tokens, slots=slots, global_experts=global_experts)
        call()
    return found


def layer_call(
    shape: Shape, config: MoeConfig, *, tokens: int, slots: int, global_experts: int | None
) -> Callable[[], torch.Tensor]:
    """A call on tensors without memory."""

    def empty(*size: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device="meta")

    experts, n, k = shape.experts, shape.intermediate, shape.hidden
    narrow = shape.dtype == "fp8"
    kind = FP8 if narrow else torch.bfloat16
    scales = {
        "w13_scale": empty(experts, 2 * n // GROUP, k // GROUP, dtype=torch.float32) if narrow else None,
        "w2_scale": empty(experts, k // GROUP, n // GROUP, dtype=torch.float32) if narrow else None,
    }
    return lambda: fused_moe(
        empty(tokens, k, dtype=torch.bfloat16),
        empty(experts, 2 * n, k, dtype=kind),
        empty(experts, k, n, dtype=kind),
        empty(tokens, slots, dtype=torch.float32),
        empty(tokens, slots, dtype=torch.int32),
        expert_map=empty(global_experts, dtype=torch.int32) if global_experts else None,
        config=config,
        **scales,
    )
