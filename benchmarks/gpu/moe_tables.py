"""What the kernel's measurements become: a table of tiles, a row of a report, a file in short."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.moe_slices import SLICES

from assay.kernels.tiles import MoeConfig, as_json, from_json

FASTER = 1.01
"""An engine's own kernel keeps a batch unless ours gains this much: below it a clock's mood decides."""
KERNEL = {"bf16": 1, "fp8": 2}
"""State of our kernel by type of weights, written into every run; counted up when a change alters what that type does.

A run of an earlier state says nothing of the kernel that there is now. fp8's second state: weights on the left, several
down blocks in a loop, scales loaded ahead. bf16 got no more than new tiles to choose from: all its runs count.
"""
Cell = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """All runs of one batch with the present kernel, on one device."""

    device: tuple[str, str]
    slice: str
    dtype: str
    tokens: int
    cells: tuple[Cell, ...]
    """Of each run one, ours slowest beside the engine's first."""

    @property
    def middle(self) -> Cell:
        """The median run by our speed beside the engine's; of two the worse one.

        Each run draws its own routing, and fewer experts hit are fewer bytes: times of two runs do not compare.
        """
        return self.cells[(len(self.cells) - 1) // 2]

    @property
    def tiles(self) -> MoeConfig:
        """Of a run that tried the other runs' tiles beside its own and found its own faster; else the median run's."""
        wanted = {short(_config(cell)) for cell in self.cells}
        whole = [cell for cell in self.cells if wanted <= _tried(cell)]
        return _config(whole[0] if len(whole) == 1 else self.middle)

    @property
    def gains(self) -> list[float]:
        """The engine's time over ours in each run that measured both, ascending."""
        return [found for cell in self.cells if (found := gain(cell)) is not None]

    @property
    def by(self) -> str:
        """Whose kernel an engine should run: its own where any run that measured both says so.

        Where none did, ours: as without a table.
        """
        return "ours" if all(found >= FASTER for found in self.gains) else "engine"


def points(runs: Iterable[dict[str, Any]]) -> list[Point]:
    """Every batch of uniform routing that was measured with the present kernel, with all of its runs."""
    found: dict[tuple[tuple[str, str], str, str, int], list[Cell]] = {}
    for one in runs:
        device = one["device"]["name"], one["device"]["capability"]
        for cell in one["cells"]:
            present = state(one, cell["dtype"]) == KERNEL[cell["dtype"]]
            if present and "config" in cell["ours"] and cell["routing"] == "uniform":
                found.setdefault((device, cell["slice"], cell["dtype"], cell["tokens"]), []).append(cell)
    order = list(SLICES.values())
    names = [one.name for one in order]
    return [
        Point(device=key[0], slice=key[1], dtype=key[2], tokens=key[3], cells=tuple(sorted(found[key], key=_rank)))
        for key in sorted(found, key=lambda key: (key[0], key[2], names.index(key[1]), key[3]))
    ]


def state(run: dict[str, Any], dtype: str) -> int:
    """Of the kernel that a run measured; runs that do not say were made with the first."""
    return int(run.get("kernel", {}).get(dtype, 1))


def gain(cell: Cell) -> float | None:
    """The engine's time over ours, the engine as it comes: a tuned table is somebody's choice and not its default."""
    ours, engine = cell["ours"].get("median_s"), cell["vllm"].get("median_s")
    return engine / ours if ours and engine else None


def _rank(cell: Cell) -> tuple[bool, float]:
    """Runs without the engine's time come last: they decide nothing."""
    found = gain(cell)
    return found is None, found or cell["ours"]["median_s"]


def merged(runs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What `assay.kernels.choose` reads: by shape and batch tiles, the median run's times, and whose kernel it is."""
    names = {one.name: one for one in SLICES.values()}
    entries: dict[tuple[tuple[str, str], str, str], dict[str, Any]] = {}
    for point in points(runs):
        shape = asdict(names[point.slice].shape(point.dtype))
        device = dict(zip(("name", "capability"), point.device, strict=True))
        new = {"device": device, "shape": shape, "batches": {}}
        entry = entries.setdefault((point.device, point.slice, point.dtype), new)
        times = [_times(cell) for cell in point.cells]
        entry["batches"][str(point.tokens)] = {
            "by": point.by, **_times(point.middle), "runs": times, "config": as_json(point.tiles),
        }  # fmt: skip
    return {"entries": list(entries.values())}


def _config(cell: Cell) -> MoeConfig:
    return from_json(cell["ours"]["config"])


def _tried(cell: Cell) -> set[str]:
    """Tiles that a run timed, in short: as it writes them, or as `shortened` does."""
    tried = cell["ours"].get("tried", [])
    return {one[0] if isinstance(one, list) else short(from_json(one["config"])) for one in tried}


def _times(cell: Cell) -> dict[str, float | None]:
    return {"ours_s": cell["ours"].get("median_s"), "engine_s": cell["vllm"].get("median_s")}


def table(of: Sequence[Point]) -> Iterator[str]:
    """Each batch's median run, with the spread of our speed beside the engine's over all runs."""
    yield _row("slice", "tokens", "experts hit", "floor", "ours", "vLLM", "torch", "vLLM / ours", "our tiles")
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---|"
    for point in of:
        cell, tiles = point.middle, short(_config(point.middle))
        ours, engine, torch_ = (share(cell[name], cell["floor_s"]) for name in ("ours", "vllm", "torch"))
        yield _row(
            f"{point.slice} {point.dtype}", f"{point.tokens:,}", f"{cell['distinct_experts']:.0f}",
            f"{cell['floor_s'] * 1e6:,.1f}", ours, engine, torch_, told_gains(point.gains), tiles,
        )  # fmt: skip


def told_gains(gains: Sequence[float]) -> str:
    """The median run's (of two the worse one's), and the spread over all where there are several."""
    if not gains:
        return "-"
    middle = f"{gains[(len(gains) - 1) // 2]:.2f}"
    return middle if len(gains) == 1 else f"{middle} ({gains[0]:.3f}-{gains[-1]:.3f}, {len(gains)} runs)"


def share(one: dict[str, Any], floor_s: float) -> str:
    """Microseconds, with the floor's share of them."""
    return f"{one['median_s'] * 1e6:,.1f} ({floor_s / one['median_s']:.0%})" if "median_s" in one else "-"


def told_command(argv: list[str]) -> str:
    """The command without the folders of this machine."""
    words = [Path(argv[0]).name, *argv[1:]]
    return " ".join(Path(word).name if word.startswith("/") else word for word in words)


def shortened(run_: dict[str, Any]) -> dict[str, Any]:
    """A run without the samples and the spelled-out configs of what was only tried; one that is so already stays."""
    cells = []
    for found in run_["cells"]:
        tried = [
            one if isinstance(one, list) else [short(from_json(one["config"])), one.get("median_s") or one["problem"]]
            for one in found["ours"]["tried"]
        ]
        cells.append({**found, "ours": {**found["ours"], "tried": tried}})
    return {**run_, "cells": cells}


def short(config: MoeConfig) -> str:
    """A config in one line: path, tiles (rows x columns x depth x warps x stages) of gate-up / down, marks."""
    tiles = " / ".join(
        f"{tile.rows}x{tile.columns}x{tile.depth}x{tile.warps}x{tile.stages}" for tile in (config.gate_up, config.down)
    )
    on = {"o": config.overlap_launches, "d": config.descriptors, "w": config.swapped}
    marks = "".join(mark for mark, holds in on.items() if holds) or "-"
    walk = f" b{config.blocks_per_sm} g{config.group}" if config.path == "sorted" else ""
    return f"{config.path} {tiles} {marks}{walk}" + (f" n{config.down_span}" if config.down_span > 1 else "")


def row(found: Cell) -> str:
    """One cell while it is measured, with what went wrong where there is no time."""

    def told(name: str) -> str:
        one = found.get(name, {})
        return share(one, found["floor_s"]) if "median_s" in one else (one.get("problem") or "-")[:24]

    better, config = gain(found), found["ours"].get("config")
    return _row(
        found["slice"], found["dtype"], str(found["tokens"]), f"{found['distinct_experts']:.0f}",
        f"{found['floor_s'] * 1e6:,.1f}", *(told(name) for name in ("ours", "vllm", "vllm_tuned", "torch")),
        f"{better:.2f}x" if better else "-", short(from_json(config)) if config else "-",
    )  # fmt: skip


def write(path: Path, value: object) -> None:
    """All or nothing: a killed run leaves the last whole file."""
    fresh = path.with_suffix(".part")
    fresh.write_text(json.dumps(value, indent=1))
    fresh.replace(path)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
