"""What a fused-MoE kernel can be launched with: the engines' own grids, and which of it is worth a measurement.

Nothing here needs more than Python, so that the program on the GPU can search without Assay's other dependencies.

>>> len(engine_space("bf16")), len(engine_space("fp8"))
(1920, 640)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import product

FIELDS = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
"""As both engines spell them in their files."""
RANGES: tuple[tuple[int, ...], ...] = (
    (16, 32, 64, 128, 256),
    (32, 64, 128, 256),
    (64, 128, 256),
    (1, 16, 32, 64),
    (4, 8),
    (2, 3, 4, 5),
)
"""The grid that vLLM's benchmarks/kernels/benchmark_moe.py and SGLang's tuning_fused_moe_triton.py walk through."""
FP8_BLOCK = 128


@dataclass(frozen=True, slots=True, order=True)
class Config:
    """One way of launching the kernel."""

    block_m: int
    block_n: int
    block_k: int
    group_m: int
    num_warps: int
    num_stages: int

    @classmethod
    def of(cls, row: Mapping[str, int]) -> Config:
        """From an engine's spelling; what it leaves out is Triton's default, or no grouping."""
        defaults = {"num_warps": 4, "num_stages": 3, "GROUP_SIZE_M": 1}
        return cls(*(int(row.get(name, defaults.get(name, 0))) for name in FIELDS))

    def as_engine(self) -> dict[str, int]:
        """In the engines' spelling."""
        return dict(zip(FIELDS, astuple(self), strict=True))

    @property
    def told(self) -> str:
        """`16x64x128 g1 w4 s3`."""
        return f"{self.block_m}x{self.block_n}x{self.block_k} g{self.group_m} w{self.num_warps} s{self.num_stages}"


def engine_space(dtype: str) -> list[Config]:
    """Everything that the engines' own tuners try: with FP8 blocks of 128, only tiles of whole blocks."""
    every = [Config(*values) for values in product(*RANGES)]
    if dtype != "fp8":
        return every
    return [one for one in every if one.block_k % FP8_BLOCK == 0 and one.block_n % FP8_BLOCK == 0]


def our_space(dtype: str) -> list[Config]:
    """The engines' grid without what cannot differ, and with the narrow tiles that FP8 blocks allow.

    The kernel cuts a tile's depth to the FP8 block, so that 256 is 128 again; columns need not be whole blocks, because
    scales are looked up for every column.
    """
    if dtype != "fp8":
        return engine_space(dtype)
    return [Config(*values) for values in product(*RANGES) if values[2] == FP8_BLOCK]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One number of tokens on one shape: what pruning and guesses are calculated from."""

    tokens: int
    distinct: float
    """Experts of the rank that are chosen."""
    pairs: float
    """Token-expert pairs on the rank."""
    hidden: int
    width: int
    element_bytes: float
    read_bytes_per_s: float
    flop_per_s: float
    smem_per_block_bytes: int
    sms: int

    @property
    def rows(self) -> float:
        """Tokens of an expert that has any."""
        return self.pairs / max(self.distinct, 1e-9)

    @property
    def floor_s(self) -> float:
        """Weights of the chosen experts at the read bandwidth, or the arithmetic; whichever takes longer."""
        weights = 3 * self.hidden * self.width * self.element_bytes * self.distinct
        return max(weights / self.read_bytes_per_s, 6 * self.hidden * self.width * self.pairs / self.flop_per_s)


CACHE_OVER_MEMORY = 5.0
"""The L2 is taken to be at most so many times as fast as the memory (`assay.roofline.efficiency`, its high end)."""
HOPELESS = 2.0
"""A configuration whose optimistic bound is so many times the floor is not measured."""
MOST_SUMS = 256
"""Sums of a tile that a thread can hold in registers; above, they spill. With FP8 blocks each is held twice: what a
block gave is scaled before it is added. (Measured on an H200: 128 x 256 by four warps takes 5.7 ms where the best
takes 0.4, and up to 18 s to compile.)"""
ALWAYS_ROWS = 64
"""Never too many: Hopper's warp-group instructions take 64 rows at a time, and published tunings choose them for one
token."""


def why_not(config: Config, problem: Problem) -> str | None:
    """Why a configuration need not be measured; None when it has to be."""
    depth = min(config.block_k, FP8_BLOCK) if problem.element_bytes == 1 else config.block_k
    staged = (config.block_m + config.block_n) * depth * problem.element_bytes * (config.num_stages - 1)
    if staged > problem.smem_per_block_bytes:
        return f"{staged / 1024:.0f} KiB of shared memory, {problem.smem_per_block_bytes / 1024:.0f} a block"
    held = 2 if problem.element_bytes == 1 else 1
    sums = held * config.block_m * config.block_n / (32 * config.num_warps)
    if sums > MOST_SUMS:
        return f"{sums:.0f} sums a thread, {MOST_SUMS} registers"
    most_rows = problem.rows + 4 * problem.rows**0.5 + 1
    if config.block_m > max(ALWAYS_ROWS, 2 * _power_of_two(min(most_rows, problem.tokens))):
        return f"{config.block_m} rows, and no expert has more than about {most_rows:.0f} tokens"
    bound = traffic_s(config, problem)
    if bound > HOPELESS * problem.floor_s:
        return f"at least {bound * 1e6:.0f} us through the L2, where the floor is {problem.floor_s * 1e6:.0f}"
    return None


def traffic_s(config: Config, problem: Problem) -> float:
    """Seconds at least: every tile of rows fetches the weights again, every tile of columns the tokens."""
    size = problem.element_bytes
    weights = 3 * problem.hidden * problem.width * size * problem.distinct
    again = max(1.0, problem.rows / config.block_m)
    tokens = problem.pairs * size * problem.hidden * 2 * problem.width / config.block_n
    inner = problem.pairs * size * problem.width * problem.hidden / config.block_n
    fetched = weights * again + tokens + inner
    return max(weights / problem.read_bytes_per_s, fetched / (CACHE_OVER_MEMORY * problem.read_bytes_per_s))


def guess_s(config: Config, problem: Problem) -> float:
    """A guess at the time, only to choose where to begin: traffic, padded arithmetic, waves, pipeline depth.

    Factors are rough on purpose; the search does not trust them.
    """
    tiles_m = problem.distinct * max(1.0, -(-problem.rows // config.block_m))
    padded = tiles_m * config.block_m * 6 * problem.hidden * problem.width / problem.flop_per_s
    skinny = 1 + 16 / config.block_m + 32 / config.block_n
    blocks = tiles_m * (2 * problem.width / config.block_n)
    resident = problem.smem_per_block_bytes // max(
        1, (config.block_m + config.block_n) * config.block_k * problem.element_bytes * (config.num_stages - 1)
    )
    waves = blocks / (problem.sms * max(1, min(resident, 16 // config.num_warps)))
    uneven = -(-waves // 1) / max(waves, 1e-9)
    in_flight = (config.num_stages - 1) * config.block_k * config.block_n * problem.element_bytes * max(1, resident)
    latency = 1 + 32768 / max(in_flight, 1)
    busy: float = max(traffic_s(config, problem) * latency, padded * skinny)
    return busy * math.sqrt(min(uneven, 3.0))


def steps(config: Config, allowed: set[Config]) -> Iterator[Config]:
    """Configurations one step away in one direction."""
    for place in range(len(RANGES)):
        for moved in _moved(config, place):
            if moved in allowed:
                yield moved


PAIRS = ((0, 1), (0, 4), (1, 4), (2, 5), (1, 5), (1, 2), (0, 3))
"""Directions that depend on each other: tile and warps, depth and stages, both sides of a tile."""


def double_steps(config: Config, allowed: set[Config]) -> Iterator[Config]:
    """Configurations one step away in two directions that depend on each other."""
    for first, second in PAIRS:
        for half in _moved(config, first):
            for moved in _moved(half, second):
                if moved in allowed:
                    yield moved


def _moved(config: Config, place: int) -> Iterator[Config]:
    name = Config.__slots__[place]
    values = sorted({*RANGES[place], getattr(config, name)})
    at = values.index(getattr(config, name))
    for other in (at - 1, at + 1):
        if 0 <= other < len(values):
            yield replace(config, **{name: values[other]})


def _power_of_two(least: float) -> int:
    size = 1
    while size < least:
        size *= 2
    return size
