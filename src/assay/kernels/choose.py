"""Which tiles to use for a batch: a measured table where there is one, a rule of thumb elsewhere."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.kernels.rule import allowed, rule
from assay.kernels.shape import Device, Shape
from assay.kernels.tiles import MoeConfig, from_json

__all__ = [
    "SHIPPED",
    "VARIABLE",
    "Device",
    "Measured",
    "Shape",
    "allowed",
    "choose",
    "engine_is_faster",
    "parse",
    "rule",
]

VARIABLE = "ASSAY_MOE_CONFIG"
"""Environment variable: a JSON file of measured tile choices, as `benchmarks/gpu/moe_kernel.py` writes it."""
SHIPPED = Path(__file__).with_name("measured.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured for a batch: our best tiles, and whether the engine's own kernel was left behind."""

    config: MoeConfig
    by_engine: bool
    """Ours was not at least 1% faster: inside an engine the batch is better left to the engine's own kernel."""


def choose(shape: Shape, *, tokens: int, slots: int, global_experts: int, device: Device | None = None) -> MoeConfig:
    """The config for a batch: of the nearest one measured on this device, or by rule."""
    found = _nearest(shape, tokens, device)
    if found is not None and allowed(found.config, tokens=tokens, slots=slots):
        return found.config
    return rule(shape, tokens=tokens, slots=slots, global_experts=global_experts, device=device)


def engine_is_faster(shape: Shape, *, tokens: int, device: Device | None) -> bool:
    """Whether the nearest batch measured on this device went to the engine's own kernel; False if none was."""
    found = _nearest(shape, tokens, device)
    return found is not None and found.by_engine


def _nearest(shape: Shape, tokens: int, device: Device | None) -> Measured | None:
    measured = _measured(os.environ.get(VARIABLE)).get((device, shape)) if device is not None else None
    if not measured:
        return None
    return measured[min(measured, key=lambda one: (abs(one.bit_length() - tokens.bit_length()), abs(one - tokens)))]


Table = dict[tuple[Device, Shape], dict[int, Measured]]
"""By device and shape: what was measured, by batch."""


@functools.cache
def _measured(path: str | None) -> Table:
    file = Path(path) if path else SHIPPED
    if not file.exists():
        if path:
            raise FileNotFoundError(f"{VARIABLE} names {path}, which does not exist")
        return {}
    return parse(json.loads(file.read_text()))


def parse(value: dict[str, Any]) -> Table:
    """`{"entries": [{"device": {...}, "shape": {...}, "batches": {"8": {"by": "ours", "config": {...}}}}]}`.

    Raises:
        ValueError: A batch is by neither "ours" nor "engine", or a config is none.
    """
    return {
        (Device(**entry["device"]), Shape(**entry["shape"])): {
            int(batch): _one(found) for batch, found in entry["batches"].items()
        }
        for entry in value["entries"]
    }


def _one(found: dict[str, Any]) -> Measured:
    if found["by"] not in {"ours", "engine"}:
        raise ValueError(f"a batch is by 'ours' or by 'engine', not {found['by']!r}")
    return Measured(config=from_json(found["config"]), by_engine=found["by"] == "engine")
