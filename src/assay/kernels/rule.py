"""Which tiles to use where nothing was measured, and what a path can carry; pure."""

from __future__ import annotations

from dataclasses import replace

from assay.kernels.shape import Device, Shape
from assay.kernels.tiles import SHARED_BYTES_PER_BLOCK, MoeConfig, Tile

PAIRS_AT_MOST = 64
SCAN_AT_MOST = 1024
"""(token, slot) pairs that the path can carry."""
SCAN_BY_RULE_AT_MOST = 512
"""Pairs up to which every expert looks for its own tokens; beyond, one sort is cheaper."""
NARROW_SLICE = 512
"""Intermediate columns up to which a handful of tokens do without tensor cores."""
WARP_GROUP_ROWS = 64
"""Rows of the left operand that one instruction of a Hopper's matrix units takes."""
HOPPER = 9


def allowed(config: MoeConfig, *, tokens: int, slots: int) -> bool:
    """Whether the path can carry a batch: a scan holds all pairs in registers."""
    return config.path == "sorted" or tokens * slots <= (PAIRS_AT_MOST if config.path == "pairs" else SCAN_AT_MOST)


def rule(shape: Shape, *, tokens: int, slots: int, global_experts: int, device: Device | None = None) -> MoeConfig:
    """Tiles where nothing was measured: those that won most often on one H200 (2026-11-30, docs/gpu.md).

    Fewer stages where a block has less shared memory than an H200's; overlapped launches and descriptors from compute
    capability 9.0 on.
    """
    modern = device is not None and int(device.capability.split(".")[0]) >= HOPPER
    pairs = tokens * slots
    few = pairs <= min(PAIRS_AT_MOST, global_experts) and (shape.dtype != "fp8" or tokens == 1)
    if few and shape.intermediate <= NARROW_SLICE:
        return _pairs(shape)
    if pairs <= SCAN_BY_RULE_AT_MOST:
        config = _scan(shape, modern=modern)
    else:
        config = _sorted(shape, _rows(shape, pairs / max(global_experts, 1)), modern=modern)
    return within(config, shape, device)


def _pairs(shape: Shape) -> MoeConfig:
    """No tensor cores: each (token, slot) by itself."""
    if shape.dtype == "fp8":
        tile = Tile(rows=1, columns=16, depth=256, warps=4, stages=3)
        return MoeConfig(path="pairs", gate_up=tile, down=tile)
    return MoeConfig(
        path="pairs",
        gate_up=Tile(rows=1, columns=8, depth=512, warps=4, stages=3),
        down=Tile(rows=1, columns=16, depth=256, warps=4, stages=1),
    )


def _scan(shape: Shape, *, modern: bool) -> MoeConfig:
    if shape.dtype == "fp8":
        up = Tile(rows=16, columns=64, depth=128, warps=4, stages=4)
        down = Tile(rows=16, columns=128, depth=128, warps=4, stages=3)
    else:
        up = Tile(rows=16, columns=32, depth=128, warps=4, stages=4)
        down = Tile(rows=16, columns=128, depth=64, warps=4, stages=4)
    return MoeConfig(path="scan", gate_up=up, down=down, overlap_launches=modern, descriptors=modern)


def _rows(shape: Shape, each: float) -> int:
    """Twice the tokens of an expert, as a power of two; fp8 has no registers for more than 64."""
    most = 64 if shape.dtype == "fp8" else 128
    rows = 16
    while rows < min(most, each * 4 / 3):
        rows *= 2
    return rows


def _sorted(shape: Shape, rows: int, *, modern: bool) -> MoeConfig:
    wide = rows >= WARP_GROUP_ROWS
    modern = modern and wide
    if shape.dtype == "fp8":
        up = (128, 128, 8, 4) if wide else (64, 128, 4, 3)
        down = (256, 128, 8, 3) if wide else (128, 128, 4, 3)
        blocks = 1 if wide else 3
    else:
        up = (128, 64, 8, 4) if wide else (64, 64, 4, 4)
        down = (256, 64, 8, 3)
        blocks = 1 if wide else 2
    products = [
        Tile(rows=rows, columns=columns, depth=depth, warps=warps, stages=stages)
        for columns, depth, warps, stages in (up, down)
    ]
    return MoeConfig(
        path="sorted",
        gate_up=products[0],
        down=products[1],
        overlap_launches=modern,
        descriptors=modern,
        blocks_per_sm=blocks,
    )


def within(config: MoeConfig, shape: Shape, device: Device | None) -> MoeConfig:
    """The config with as many stages as the device's shared memory holds, two at least."""
    architecture = f"sm{device.capability.replace('.', '')}" if device is not None else "sm90"
    size = 1 if shape.dtype == "fp8" else 2
    limit = SHARED_BYTES_PER_BLOCK.get(architecture, min(SHARED_BYTES_PER_BLOCK.values()))

    def fitted(tile: Tile, weights: int) -> Tile:
        while tile.stages > 2 and tile.shared_bytes(weights=weights, row_bytes=size, weight_bytes=size) > limit:  # noqa: PLR2004 - one to load, one to multiply
            tile = replace(tile, stages=tile.stages - 1)
        return tile

    return replace(config, gate_up=fitted(config.gate_up, 2), down=fitted(config.down, 1))
