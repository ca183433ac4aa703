"""Which tiles of a grouped GEMM fit on a chip, and why the others do not.

A block of threads keeps `stages` copies of both input tiles in shared memory while the next ones arrive, and the sums
of its output tile in registers. Both are limited per block, and differently from chip to chip: a tile that is fast on
one may not exist on another.

>>> tile = Tile(rows=128, columns=256, depth=64, stages=4, warps=8)
>>> [tile.problem(CHIPS[name], element_bytes=2) is None for name in ("sm90", "sm120")]
[True, False]
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.errors import UsageError
from assay.kernels.tiles import SHARED_BYTES_PER_BLOCK
from assay.records.device import Device

KIB = 1024
REGISTER_BYTES = 4
THREADS_PER_WARP = 32
MOST_REGISTERS = 255
"""Of one thread (CUDA C++ Programming Guide, technical specifications per compute capability)."""
OTHER_REGISTERS = 40
"""Of a thread for addresses, masks and inputs on their way. Assumed; a tile beyond it spills to memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """What bounds a block of threads."""

    name: str
    smem_per_block_bytes: int
    """The most that a block may ask for."""
    sms: int | None = None
    registers_per_sm: int = 65536
    """Of 32 bits; the same from compute capability 5 on."""


CHIPS = {name: Chip(name=name, smem_per_block_bytes=most) for name, most in SHARED_BYTES_PER_BLOCK.items()}
"""By compute capability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """The part of a product that one block of threads computes at a time."""

    rows: int
    """Tokens."""
    columns: int
    """Outputs."""
    depth: int
    """Inputs that are summed per step."""
    stages: int
    warps: int

    def smem_bytes(self, element_bytes: float) -> float:
        """Shared memory: (rows + columns) * depth elements for each stage."""
        return (self.rows + self.columns) * self.depth * element_bytes * self.stages

    @property
    def registers_per_thread(self) -> float:
        """For the sums alone: rows * columns of 32 bits over the threads."""
        return self.rows * self.columns / (self.warps * THREADS_PER_WARP)

    def problem(self, chip: Chip, element_bytes: float) -> str | None:
        """Why the tile cannot be had on a chip; None when it fits."""
        asked = self.smem_bytes(element_bytes)
        if asked > chip.smem_per_block_bytes:
            fitting = self.most_stages(chip, element_bytes)
            rest = f"{fitting} stages fit" if fitting > 1 else "no pipeline fits"
            return f"{asked / KIB:.0f} KiB > {chip.smem_per_block_bytes / KIB:.0f}: {rest}"
        wanted = self.registers_per_thread + OTHER_REGISTERS
        if wanted > MOST_REGISTERS:
            return f"{wanted:.0f} registers > {MOST_REGISTERS}"
        return None

    def most_stages(self, chip: Chip, element_bytes: float) -> int:
        """Stages that would fit; 0 when not even one does."""
        return int(chip.smem_per_block_bytes // ((self.rows + self.columns) * self.depth * element_bytes))

    @property
    def told(self) -> str:
        """`128x256x64, 4 stages, 8 warps`."""
        return f"{self.rows}x{self.columns}x{self.depth}, {self.stages} stages, {self.warps} warps"

    def flops_per_byte(self, element_bytes: float) -> float:
        """Operations for each byte that the tile fetches: what makes large tiles fast where arithmetic binds."""
        return 2 * self.rows * self.columns / ((self.rows + self.columns) * element_bytes)


SHOWN = tuple(
    Tile(rows=rows, columns=columns, depth=depth, stages=stages, warps=warps)
    for rows, columns, depth, stages, warps in (
        (16, 64, 128, 4, 4),
        (16, 128, 128, 3, 4),
        (16, 256, 128, 3, 8),
        (32, 128, 128, 4, 4),
        (64, 128, 64, 4, 4),
        (64, 128, 128, 3, 4),
        (64, 256, 64, 4, 8),
        (128, 128, 64, 4, 8),
        (128, 128, 128, 3, 8),
        (128, 256, 64, 3, 8),
        (128, 256, 64, 4, 8),
        (128, 256, 128, 4, 8),
        (256, 128, 64, 4, 8),
    )
)
"""Tiles that engines choose: vLLM's and SGLang's defaults and the winners of their published tunings."""


def chip_of(text: str, device: Device | None = None) -> Chip:
    """The chip that `sm120` names, or the one of a known device.

    Raises:
        UsageError: neither.
    """
    found = re.fullmatch(r"(?:sm[_ ]?)?(\d{2,3})", text.strip().lower())
    if found and f"sm{found[1]}" in CHIPS:
        return CHIPS[f"sm{found[1]}"]
    if device is not None:
        shared, sms = device.fact("smem_per_block_bytes"), device.fact("sms")
        if shared is not None:
            return Chip(name=device.name, smem_per_block_bytes=int(shared.value), sms=int(sms.value) if sms else None)
    raise UsageError(
        f"nothing is known of the shared memory of {text!r}",
        hint=f"one of {', '.join(CHIPS)}, or a device of `assay estimate --list` with smem_per_block_bytes",
    )
