"""Configs worth trying for a shape and a batch, most promising first; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from assay.kernels.rule import LEAST_ROWS, PAIRS_AT_MOST, SCAN_AT_MOST, WARP_GROUP_ROWS, rows_of, spans
from assay.kernels.shape import Shape
from assay.kernels.tiles import MoeConfig, Tile

MOST_ROWS = 128


def _tile(rows: int, columns: int, depth: int, warps: int, stages: int) -> Tile:
    return Tile(rows=rows, columns=columns, depth=depth, warps=warps, stages=stages)


def _pairs(shape: Shape) -> tuple[list[Tile], list[Tile]]:
    depth = 256 if shape.intermediate % 512 else 512
    if shape.dtype == "fp8":
        up = [(16, 256, 4, 3), (8, 512, 4, 3), (16, 512, 4, 2), (4, 1024, 4, 3), (8, 1024, 4, 2), (8, 256, 2, 4)]
        down = [(16, depth, 4, 1), (16, depth, 4, 3), (32, depth, 4, 1), (16, depth, 8, 1), (8, depth, 2, 1)]
    else:
        up = [
            (16, 256, 4, 3), (8, 512, 4, 3), (4, 512, 4, 4), (8, 512, 4, 2), (8, 1024, 8, 2), (4, 1024, 4, 2),
            (8, 256, 4, 4),
        ]  # fmt: skip
        down = [
            (16, depth, 4, 1), (8, depth, 4, 1), (16, depth, 8, 1), (16, depth, 4, 3), (32, 256, 8, 2),
            (8, depth, 2, 1),
        ]  # fmt: skip
    return [_tile(1, *one) for one in up], [_tile(1, *one) for one in down]


def _scan(shape: Shape, rows: int) -> tuple[list[Tile], list[Tile]]:
    if shape.dtype == "fp8":
        up = [(64, 128, 4, 4), (32, 128, 4, 5), (128, 128, 4, 3), (32, 128, 4, 3), (64, 128, 8, 3)]
        down = [(128, 128, 4, 3), (64, 128, 4, 3), (32, 128, 4, 4), (128, 128, 8, 2)]
    else:
        up = [(32, 128, 4, 4), (32, 64, 4, 5), (16, 128, 4, 5), (64, 64, 4, 4), (32, 128, 4, 3), (64, 128, 8, 3)]
        down = [(64, 128, 4, 3), (32, 128, 4, 3), (128, 64, 4, 4), (64, 64, 4, 4), (128, 128, 8, 2)]
    return [_tile(rows, *one) for one in up], [_tile(rows, *one) for one in down]


def _sorted(shape: Shape, rows: int) -> tuple[list[Tile], list[Tile]]:
    wide = rows >= WARP_GROUP_ROWS
    if shape.dtype == "fp8" and not wide:
        up = [(64, 128, 4, 3), (64, 128, 4, 4), (128, 128, 8, 4)]
        down = [(128, 128, 4, 3), (128, 128, 4, 4), (256, 128, 8, 3)]
    elif shape.dtype == "fp8" and rows > WARP_GROUP_ROWS:
        up = [(64, 128, 8, 4), (64, 128, 8, 3)]
        down = [(128, 128, 8, 3), (64, 128, 8, 4)]
    elif shape.dtype == "fp8":
        up = [(128, 128, 8, 4), (128, 128, 8, 3), (64, 128, 4, 4), (64, 128, 8, 4)]
        down = [(256, 128, 8, 3), (128, 128, 8, 3), (128, 128, 4, 4), (64, 128, 4, 4)]
    elif wide:
        up = [(128, 64, 8, 4), (64, 64, 4, 4), (128, 64, 8, 3), (64, 128, 8, 3)]
        down = [(256, 64, 8, 3), (128, 64, 4, 4), (128, 64, 8, 4), (128, 128, 8, 3)]
    else:
        up = [(64, 64, 4, 4), (32, 128, 4, 4), (64, 128, 4, 3), (128, 64, 8, 4)]
        down = [(256, 64, 8, 3), (128, 64, 4, 4), (64, 128, 4, 3), (128, 128, 8, 3)]
    return [_tile(rows, *one) for one in up], [_tile(rows, *one) for one in down]


def _swapped(shape: Shape, rows: int) -> tuple[list[Tile], list[Tile]]:
    """Weights as the left operand: their columns are its rows, 64 for each four warps."""
    if shape.dtype == "fp8" and rows < WARP_GROUP_ROWS:
        up = [(128, 128, 4, 3), (128, 128, 4, 4), (64, 128, 4, 4), (128, 128, 4, 2), (128, 128, 8, 4)]
        down = [(128, 128, 4, 4), (128, 128, 4, 3), (256, 128, 8, 3), (64, 128, 4, 4), (128, 128, 4, 6)]
    elif shape.dtype == "fp8" and rows > WARP_GROUP_ROWS:  # each step's product has registers of its own
        up = [(64, 128, 8, 4), (64, 128, 8, 3)]
        down = [(128, 128, 8, 3), (64, 128, 8, 4)]
    elif shape.dtype == "fp8":
        up = [(128, 128, 8, 4), (128, 128, 8, 3), (64, 128, 4, 4), (64, 128, 4, 3)]
        down = [(128, 128, 4, 4), (256, 128, 8, 3), (128, 128, 8, 4), (128, 128, 8, 3)]
    elif rows < WARP_GROUP_ROWS:
        up = [(64, 64, 4, 4), (64, 128, 4, 3), (128, 64, 4, 3), (64, 64, 4, 6), (64, 128, 4, 2)]
        down = [(128, 64, 4, 4), (64, 128, 4, 3), (256, 64, 8, 3), (128, 128, 4, 3), (64, 64, 4, 5)]
    else:
        up = [(128, 64, 8, 4), (128, 64, 8, 3), (64, 64, 4, 4), (64, 64, 8, 5)]
        down = [(256, 64, 8, 3), (128, 64, 4, 4), (128, 64, 8, 4), (256, 64, 8, 4)]
    return [_tile(rows, *one) for one in up], [_tile(rows, *one) for one in down]


def rows_for(tokens: int, slots: int, global_experts: int) -> list[int]:
    """Rows of a sorted tile: about a third more than an expert's mean, then half and twice that."""
    middle = rows_of(tokens * slots / global_experts, MOST_ROWS)
    return [rows for rows in (middle, middle // 2, middle * 2) if LEAST_ROWS <= rows <= MOST_ROWS]


FLAGS = {
    "scan": ((True, True, True), (True, True, False), (False, False, False), (False, True, True)),
    "sorted": ((False, True, True), (True, True, True), (False, False, False), (True, True, False)),
}
"""(overlapped launches, descriptors, weights on the left): what to try first.

On one H200 (2026-11-30) overlap and descriptors won wherever experts scan; with a sort and few rows they cost 5 to 7%,
from 64 rows on they won 1 to 3%.
"""


def families(shape: Shape, *, tokens: int, slots: int, global_experts: int) -> Iterator[list[MoeConfig]]:
    """Groups of configs that differ in one product's tile from their first: the group's representative."""
    pairs = tokens * slots
    if pairs <= PAIRS_AT_MOST:
        for overlap in (True, False):
            up, down = _pairs(shape)
            yield _family(MoeConfig(path="pairs", gate_up=up[0], down=down[0], overlap_launches=overlap), up, down, [])
    paths: list[tuple[Literal["scan", "sorted"], int]] = [("scan", LEAST_ROWS)] if pairs <= SCAN_AT_MOST else []
    if pairs > SCAN_AT_MOST // 4:
        paths += [("sorted", rows) for rows in rows_for(tokens, slots, global_experts)]
    for number in range(len(FLAGS["scan"])):
        for path, rows in paths:
            overlap, descriptors, swapped = FLAGS[path][number]
            tiles = _swapped if swapped else _scan if path == "scan" else _sorted
            up, down = tiles(shape, rows)
            around = spans(shape, down[0], pairs=pairs)
            first = MoeConfig(
                path=path,
                gate_up=up[0],
                down=down[0],
                overlap_launches=overlap,
                descriptors=descriptors,
                blocks_per_sm=1 if up[0].warps == 8 else 2,  # noqa: PLR2004 - as many warps as fill half a multiprocessor's registers
                swapped=swapped,
                down_span=around[0],
            )
            yield _family(first, up, down, around)


def _family(first: MoeConfig, up: list[Tile], down: list[Tile], around: list[int]) -> list[MoeConfig]:
    found = [first, *(replace(first, gate_up=one) for one in up[1:]), *(replace(first, down=one) for one in down[1:])]
    return [*found, *(replace(first, down_span=span) for span in around[1:])]


def neighbours(config: MoeConfig, family: list[MoeConfig]) -> list[MoeConfig]:
    """Configs one step from a good one: another tile of its family for one product, other ways to walk the tiles."""
    found = [replace(config, gate_up=one.gate_up) for one in family]
    found += [replace(config, down=one.down) for one in family]
    found += [replace(config, down_span=one.down_span) for one in family]
    if config.path == "sorted":
        found += [replace(config, blocks_per_sm=count) for count in (1, 2, 3, 4)]
        found += [replace(config, group=group) for group in (1, 4, 16, 64)]
    return [one for one in dict.fromkeys(found) if one != config]
