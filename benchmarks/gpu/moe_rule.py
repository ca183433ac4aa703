"""What the rule for tiles loses against the best tiles tried: `python -m benchmarks.gpu.moe_rule FILE...`; no GPU.

FILE is a recorded run of `benchmarks/gpu/moe_kernel.py`. A cell (slice, type, batch) counts where the rule's choice was
among the tiles tried in the same run; both times are medians of three passes over the same routing.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.moe_slices import SLICES, SLOTS
from benchmarks.gpu.moe_tables import short

from assay.kernels.rule import rule
from assay.kernels.shape import Device
from assay.kernels.tiles import from_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The rule's choice in one cell."""

    cell: str
    tiles: str
    time_s: float | None
    """None: the run did not try these tiles."""
    best_s: float

    @property
    def loss(self) -> float | None:
        """Time over the best tiles' time, less one."""
        return None if self.time_s is None else self.time_s / self.best_s - 1


def choices(run: dict[str, Any]) -> list[Choice]:
    """Of every cell of a run."""
    device, slices = Device(**run["device"]), {one.name: one for one in SLICES.values()}
    found = []
    for cell in run["cells"]:
        one, tokens = slices[cell["slice"]], cell["tokens"]
        shape = one.shape(cell["dtype"])
        ruled = rule(shape, tokens=tokens, slots=SLOTS, global_experts=one.global_experts, device=device)
        times = dict(_tried(each) for each in cell["ours"]["tried"])
        good = [value for value in times.values() if value is not None]
        name = f"{cell['slice']} {cell['dtype']} {tokens}"
        found.append(Choice(cell=name, tiles=short(ruled), time_s=times.get(short(ruled)), best_s=min(good)))
    return found


def _tried(one: list[Any] | dict[str, Any]) -> tuple[str, float | None]:
    """As a run writes it, or as `moe_kernel.py --merge` shortens it."""
    name, told = one if isinstance(one, list) else (short(from_json(one["config"])), one.get("median_s"))
    return name, told if isinstance(told, float) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="as examples/gpu/h200/moe_kernel_bf16.json")
    every = [one for path in parser.parse_args().files for one in choices(json.loads(path.read_text()))]
    for one in every:
        told = "not tried" if one.loss is None else f"{one.loss:+.1%}"
        print(f"{one.cell:26} {told:>9}  {one.tiles}")
    losses = [one.loss for one in every if one.loss is not None]
    mean = math.exp(statistics.mean(math.log1p(loss) for loss in losses)) - 1
    print(
        f"{len(losses)} of {len(every)} choices had been tried: geometric mean {mean:.1%}, "
        f"median {statistics.median(losses):.1%}, worst {max(losses):.1%}"
    )


if __name__ == "__main__":
    main()
