"""What the kernel's measurements become: a table of tiles, a row of a report, a file in short."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.gpu.moe_slices import SLICES

from assay.kernels.tiles import MoeConfig, from_json

FASTER = 1.01
"""An engine's own kernel keeps a batch unless ours gains this much: below it a clock's mood decides."""


def tiles_file(cells: list[dict], device: dict) -> dict:
    """What `assay.kernels.choose` reads: by shape and batch our best tiles, and whose kernel an engine should run."""
    names = {one.name: one for one in SLICES.values()}
    entries: dict[tuple[str, str], dict] = {}
    for found in cells:
        if "config" in found["ours"] and found["routing"] == "uniform":
            shape = asdict(names[found["slice"]].shape(found["dtype"]))
            key = (found["slice"], found["dtype"])
            entry = entries.setdefault(key, {"device": device, "shape": shape, "batches": {}})
            ours, engine = found["ours"].get("median_s"), best_of_engine(found)
            by = "ours" if ours is not None and (engine is None or engine >= FASTER * ours) else "engine"
            entry["batches"][str(found["tokens"])] = {
                "by": by, "ours_s": ours, "engine_s": engine, "config": found["ours"]["config"],
            }  # fmt: skip
    return {"entries": list(entries.values())}


def told_command(argv: list[str]) -> str:
    """The command without the folders of this machine."""
    words = [Path(argv[0]).name, *argv[1:]]
    return " ".join(Path(word).name if word.startswith("/") else word for word in words)


def best_of_engine(found: dict) -> float | None:
    """The engine as it comes; a tuned table is somebody's choice and not its default."""
    return found["vllm"].get("median_s")


def merged(runs: list[dict]) -> dict:
    """The tables of several runs as one; of a batch that two have, the one where ours did better beside the engine.

    Each run draws its own routing, and fewer experts hit are fewer bytes: times of two runs do not compare.
    """
    entries: dict[tuple, dict] = {}
    for one in runs:
        for entry in tiles_file(one["cells"], one["device"])["entries"]:
            key = (*entry["device"].values(), *entry["shape"].values())
            batches = entries.setdefault(key, {**entry, "batches": {}})["batches"]
            for batch, found in entry["batches"].items():
                if batch not in batches or _beside_engine(found) < _beside_engine(batches[batch]):
                    batches[batch] = found
    for entry in entries.values():
        entry["batches"] = {batch: entry["batches"][batch] for batch in sorted(entry["batches"], key=int)}
    return {"entries": list(entries.values())}


def _beside_engine(found: dict) -> float:
    """Our time over the engine's of the same run; without one, the time itself in seconds, which is below any ratio."""
    return found["ours_s"] / found["engine_s"] if found.get("engine_s") else found["ours_s"]


def shortened(run_: dict) -> dict:
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
    on = {
        "o": config.overlap_launches,
        "d": config.descriptors,
        "s": config.sum_in_down,
        "w": config.swapped,
    }
    marks = "".join(mark for mark, holds in on.items() if holds) or "-"
    walk = f" b{config.blocks_per_sm} g{config.group}" if config.path == "sorted" else ""
    return f"{config.path} {tiles} {marks}{walk}" + (f" n{config.down_span}" if config.down_span > 1 else "")


def row(found: dict) -> str:
    def told(name: str) -> str:
        one = found.get(name, {})
        if "median_s" not in one:
            return (one.get("problem") or "-")[:24]
        return f"{one['median_s'] * 1e6:,.1f} ({found['floor_s'] / one['median_s']:.0%})"

    mine, theirs = found["ours"].get("median_s"), found["vllm"].get("median_s")
    gain = f"{theirs / mine:.2f}x" if mine and theirs else "-"
    config = found["ours"].get("config")
    cells = [
        found["slice"],
        found["dtype"],
        str(found["tokens"]),
        f"{found['distinct_experts']:.0f}",
        f"{found['floor_s'] * 1e6:,.1f}",
    ]
    cells += [told(name) for name in ("ours", "vllm", "vllm_tuned", "torch")] + [
        gain,
        short(from_json(config)) if config else "-",
    ]
    return "| " + " | ".join(cells) + " |"


def write(path: Path, value: object) -> None:
    """All or nothing: a killed run leaves the last whole file."""
    fresh = path.with_suffix(".part")
    fresh.write_text(json.dumps(value, indent=1))
    fresh.replace(path)
