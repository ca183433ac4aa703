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
FP8_PAIRS_TOKENS = 2
"""Tokens up to which fp8 weights do without tensor cores; four are as fast either way."""
NARROW_SLICE = 512
"""Intermediate columns up to which a handful of tokens do without tensor cores."""
WARP_GROUP_ROWS = 64
"""Rows of the left operand that one instruction of a Hopper's matrix units takes."""
HOPPER = 9
LEAST_ROWS = 16
PROCESSORS = 132
"""Multiprocessors of an H200, the device that the rule was made on."""
STEPS_OF_A_LOOP = 12


def allowed(config: MoeConfig, *, tokens: int, slots: int) -> bool:
    """Whether the path can carry a batch: a scan holds all pairs in registers."""
    return config.path == "sorted" or tokens * slots <= (PAIRS_AT_MOST if config.path == "pairs" else SCAN_AT_MOST)


def rule(shape: Shape, *, tokens: int, slots: int, global_experts: int, device: Device | None = None) -> MoeConfig:
    """Tiles where nothing was measured: those near the best most often on one H200 (2026-12-01, docs/gpu.md).

    Fewer stages where a block has less shared memory than an H200's; overlapped launches and descriptors from compute
    capability 9.0 on; fp8 weights as the left operand at 9.x alone, whose matrix units are the reason for it.
    """
    major = int(device.capability.split(".")[0]) if device is not None else 0
    pairs = tokens * slots
    few = pairs <= min(PAIRS_AT_MOST, global_experts) and (shape.dtype != "fp8" or tokens <= FP8_PAIRS_TOKENS)
    if few and shape.intermediate <= NARROW_SLICE:
        return _pairs(shape, tokens)
    each = pairs / max(global_experts, 1)
    if shape.dtype == "fp8" and major == HOPPER:
        config = _fp8_on_hopper(shape, pairs=pairs, each=each)
    elif pairs <= SCAN_BY_RULE_AT_MOST:
        config = _scan(shape, modern=major >= HOPPER)
    else:
        most = WARP_GROUP_ROWS if shape.dtype == "fp8" else 2 * WARP_GROUP_ROWS  # registers of fp8's partial sums
        config = _sorted(shape, rows_of(each, most), modern=major >= HOPPER)
    return within(config, shape, device)


def rows_of(each: float, most: int) -> int:
    """Rows of a tile for experts of so many tokens: a third more than these, as a power of two."""
    rows = LEAST_ROWS
    while rows < min(most, each * 4 / 3):
        rows *= 2
    return rows


def spans(shape: Shape, tile: Tile, *, pairs: int) -> list[int]:
    """How many of the down product's column blocks to do in one loop, most promising first.

    About twelve steps of depth fill and drain a pipeline for little; but every multiprocessor wants two blocks.
    """
    steps = max(1, shape.intermediate // tile.depth)
    blocks = max(1, shape.hidden // tile.columns)
    most = max(1, min(pairs, shape.experts) * blocks // (2 * PROCESSORS))
    possible = [span for span in (1, 2, 4, 8, 16) if span <= min(most, blocks)]
    return sorted(possible, key=lambda span: abs(span * steps - STEPS_OF_A_LOOP))[:3]


def _pairs(shape: Shape, tokens: int) -> MoeConfig:
    """No tensor cores: each (token, slot) by itself."""
    if shape.dtype == "fp8":
        up = Tile(rows=1, columns=4, depth=1024, warps=4, stages=3)
        if tokens > 1:
            up = Tile(rows=1, columns=8, depth=256, warps=2, stages=4)
        return MoeConfig(path="pairs", gate_up=up, down=Tile(rows=1, columns=32, depth=256, warps=4, stages=1))
    return MoeConfig(
        path="pairs",
        gate_up=Tile(rows=1, columns=8, depth=512, warps=4, stages=3),
        down=Tile(rows=1, columns=16, depth=256, warps=4, stages=1),
    )


def _fp8_on_hopper(shape: Shape, *, pairs: int, each: float) -> MoeConfig:
    """Weights on the left while an expert's tokens fill no 64 rows of an instruction; several down blocks a loop.

    Four stages of gate-up leave room for one block on a multiprocessor: right where there is no more than one to do.
    """
    scan = pairs <= SCAN_BY_RULE_AT_MOST
    rows = LEAST_ROWS if scan else rows_of(each, WARP_GROUP_ROWS)
    if rows == WARP_GROUP_ROWS:
        config = _sorted(shape, rows, modern=True)
        return replace(config, down_span=spans(shape, config.down, pairs=pairs)[0])
    columns = 128
    one_each = each * shape.experts * shape.intermediate / columns <= PROCESSORS
    down = Tile(rows=rows, columns=columns, depth=128, warps=4, stages=4)
    return MoeConfig(
        path="scan" if scan else "sorted",
        gate_up=Tile(rows=rows, columns=columns, depth=128, warps=4, stages=4 if one_each else 3),
        down=down,
        overlap_launches=scan or rows > LEAST_ROWS,
        descriptors=True,
        swapped=True,
        down_span=spans(shape, down, pairs=pairs)[0],
    )


def _scan(shape: Shape, *, modern: bool) -> MoeConfig:
    if shape.dtype == "fp8":
        up = Tile(rows=LEAST_ROWS, columns=64, depth=128, warps=4, stages=4)
        down = Tile(rows=LEAST_ROWS, columns=128, depth=128, warps=4, stages=3)
    else:
        up = Tile(rows=LEAST_ROWS, columns=32, depth=128, warps=4, stages=4)
        down = Tile(rows=LEAST_ROWS, columns=128, depth=64, warps=4, stages=4)
    return MoeConfig(path="scan", gate_up=up, down=down, overlap_launches=modern, descriptors=modern)


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
