"""Tile choices of the MoE kernel, and which of them fit a chip's shared memory; needs neither torch nor triton."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Path = Literal["pairs", "scan", "sorted"]
"""How tokens meet experts: every (token, slot) on its own, each expert finding its tokens itself, or a sort first."""

KIB = 1024
SHARED_BYTES_PER_BLOCK: Mapping[str, int] = {
    "sm80": 163 * KIB,
    "sm86": 99 * KIB,
    "sm89": 99 * KIB,
    "sm90": 227 * KIB,
    "sm100": 227 * KIB,
    "sm103": 227 * KIB,
    "sm110": 227 * KIB,
    "sm120": 99 * KIB,
    "sm121": 99 * KIB,
}
"""The most shared memory that one block may ask for. Source: CUDA programming guide, "Compute Capabilities"."""

RESERVED_BYTES = KIB
"""Barriers and alignment that the compiler adds to the tiles."""
ROWS = (16, 32, 64, 128)
COLUMNS = (16, 32, 64, 128, 256)
DEPTHS = (32, 64, 128, 256)
STAGES = (2, 3, 4, 5, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One block's share of a product: rows are tokens, columns are outputs, depth is what is summed over."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int
    """Copies of the operand tiles in flight."""

    def shared_bytes(self, *, weights: int, row_bytes: int, weight_bytes: int) -> int:
        """Shared memory of a software-pipelined loop: stages x (tokens' tile + the weights' tiles).

        Args:
            weights: Weight tiles a step: 2 for gate and up together, 1 for down.
            row_bytes: Bytes of one activation element.
            weight_bytes: Bytes of one weight element.

        Source: Triton keeps `num_stages` buffers of each asynchronously copied operand; checked against
        the compiler's own report by tests/gpu/test_kernels_compile.py.
        """
        step = self.depth * (self.rows * row_bytes + weights * self.columns * weight_bytes)
        return self.stages * step + RESERVED_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeConfig:
    """All choices of one call."""

    path: Path
    gate_up: Tile
    down: Tile
    overlap_launches: bool = False
    """Start each kernel while the one before it ends (programmatic dependent launch; needs sm90 or later)."""
    descriptors: bool = False
    """Weights through tensor descriptors (TMA; needs sm90 or later), on the "scan" and "sorted" paths."""
    blocks_per_sm: int = 2
    """Persistent blocks on each multiprocessor, on the "sorted" path."""
    swapped: bool = False
    """Weights as the left operand, which has 64 rows on a Hopper; tokens as the right, on "scan" and "sorted"."""
    down_span: int = 1
    """Blocks of the down product's columns that follow each other in one loop, on "scan" and "sorted"."""
    group: int = 8
    """Row tiles that share a pass over the columns, for reuse in L2, on the "sorted" path."""

    def __post_init__(self) -> None:
        if self.path == "sorted" and self.gate_up.rows != self.down.rows:
            raise ValueError(
                f"the sorted path routes once for both products: rows {self.gate_up.rows} != {self.down.rows}"
            )

    def shared_bytes(self, *, row_bytes: int, weight_bytes: int) -> int:
        """The larger need of the two products."""
        down = self.down.shared_bytes(weights=1, row_bytes=row_bytes, weight_bytes=weight_bytes)
        if self.down_span > 1:
            down += self.down.rows * self.down.columns  # finished columns change their layout beside tiles in flight
        return max(self.gate_up.shared_bytes(weights=2, row_bytes=row_bytes, weight_bytes=weight_bytes), down)

    def fits(self, architecture: str, *, row_bytes: int, weight_bytes: int) -> bool:
        """Whether a block may have that much shared memory on the architecture ("sm90")."""
        needed = self.shared_bytes(row_bytes=row_bytes, weight_bytes=weight_bytes)
        return needed <= SHARED_BYTES_PER_BLOCK[architecture]


REMOVED = "sum_in_down"
"""A choice of earlier versions; tables that were measured then say that it is off."""


def as_json(config: MoeConfig) -> dict[str, Any]:
    """The config as a JSON object."""
    return asdict(config)


def from_json(value: Mapping[str, Any]) -> MoeConfig:
    """What `as_json` wrote, now or in an earlier version.

    Raises:
        ValueError: A key is unknown or missing, or a way of summing is asked for that the kernel no longer has.
    """
    if value.get(REMOVED):
        raise ValueError(f"not a tile choice of the MoE kernel: {REMOVED} was removed, because it was faster nowhere")
    try:
        parts = {name: Tile(**value[name]) for name in ("gate_up", "down")}
        return MoeConfig(**{**{key: each for key, each in value.items() if key != REMOVED}, **parts})
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a tile choice of the MoE kernel: {error}") from error


def tiles_that_fit(architecture: str, *, weights: int, row_bytes: int, weight_bytes: int) -> list[Tile]:
    """Every tile whose pipelined loop fits one block's shared memory, largest in flight first.

    Warps follow the accumulators: a tile of 64 x 128 outputs and more is spread over 8 warps, others over 4.
    """
    limit = SHARED_BYTES_PER_BLOCK[architecture]
    found = [
        Tile(rows=rows, columns=columns, depth=depth, stages=stages, warps=_warps(rows, columns, weights))
        for rows in ROWS
        for columns in COLUMNS
        for depth in DEPTHS
        for stages in STAGES
    ]

    def need(tile: Tile) -> int:
        return tile.shared_bytes(weights=weights, row_bytes=row_bytes, weight_bytes=weight_bytes)

    return sorted((tile for tile in found if need(tile) <= limit), key=need, reverse=True)


WIDE_OUTPUTS = 64 * 128


def _warps(rows: int, columns: int, weights: int) -> int:
    return 8 if rows * columns * weights >= WIDE_OUTPUTS else 4
