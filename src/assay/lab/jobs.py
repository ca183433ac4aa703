"""What the programs on the GPU are asked to do, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assay.lab import floors
from assay.lab.shapes import ExpertShape, rank_shape
from assay.lab.tuning.space import Problem
from assay.records.estimate import Layout, Routing
from assay.records.model_shape import ModelShape
from assay.roofline import sharding
from assay.roofline.ceilings import Ceilings

TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
"""Of the lab: decode batches, and a chunk of a prompt."""
TUNED_TOKENS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096)
"""What the engines' own tuners write files for."""
IMPLEMENTATIONS = ("vllm", "sglang", "ours", "torch-grouped-mm", "plain-triton", "cublas-loop")
LAB_PROGRAM, TUNE_PROGRAM, WHATIF_PROGRAM = (
    f"assay.lab.on_gpu.{name}" for name in ("moe_program", "tune_program", "whatif_program")
)


def lab_job(
    shapes: Sequence[ExpertShape],
    tokens: Sequence[int],
    routing: Routing,
    seconds: float,
    implementations: Sequence[str] = IMPLEMENTATIONS,
) -> dict[str, Any]:
    """Every implementation at every number of tokens on every shape."""
    return {
        "shapes": [shape.as_job() for shape in shapes],
        "tokens": list(tokens),
        "implementations": list(implementations),
        "exponent": routing.exponent if routing.law == "zipf" else 0.0,
        "seconds": seconds,
    }


def tune_job(
    shape: ExpertShape,
    engine: str,
    tokens: Sequence[int],
    limits: Ceilings,
    journal: Path,
    *,
    routing: Routing | None = None,
    mode: str = "adaptive",
    seconds: float = 3600.0,
    workers: int | None = None,
    compare: Mapping[str, Mapping[str, Mapping[str, int]]] | None = None,
) -> dict[str, Any]:
    """The best tiles for every number of tokens.

    Args:
        shape: of one rank.
        engine: vllm or sglang.
        tokens: numbers of tokens that the file will hold.
        limits: of the device; what bounds are calculated from before anything is measured.
        journal: where measurements are kept.
        routing: how tokens are drawn over experts.
        mode: adaptive, or exhaustive over the engine's own grid.
        seconds: of wall clock.
        workers: processes that compile; None: by the cores.
        compare: named files (configurations by tokens) to be measured beside the winners.
    """
    routing = routing or Routing()
    return {
        "shape": shape.as_job(),
        "engine": engine,
        "problems": [problem(shape, count, limits, routing) for count in tokens],
        "journal": str(journal),
        "mode": mode,
        "exponent": routing.exponent if routing.law == "zipf" else 0.0,
        "seconds": seconds,
        "workers": workers,
        "compare": {name: {str(key): dict(row) for key, row in rows.items()} for name, rows in (compare or {}).items()},
    }


def problem(shape: ExpertShape, tokens: int, limits: Ceilings, routing: Routing) -> dict[str, Any]:
    """One number of tokens; what the chip bounds is filled in where the chip is."""
    floor = floors.expected(shape, tokens, limits, routing)
    made = Problem(
        tokens=tokens,
        distinct=floor.distinct,
        pairs=floor.pairs,
        hidden=shape.hidden,
        width=shape.width,
        element_bytes=floors.element_bytes(shape),
        read_bytes_per_s=limits.read.reached.mid,
        flop_per_s=limits.flop[shape.dtype].reached.mid,
        smem_per_block_bytes=0,
        sms=0,
    )
    return asdict(made)


def whatif_job(model: ModelShape, layout: Layout, tokens: Sequence[int], seconds: float) -> dict[str, Any]:
    """Stand-ins at each number of tokens."""
    shared = [
        matrix.cols
        for group in model.layers
        for matrix in group.matrices
        if matrix.part == "shared_experts" and sharding.kernel_name(matrix.name, matrix.part).endswith(".down")
    ]
    return {
        "shape": rank_shape(model, layout).as_job(),
        "tokens": list(tokens),
        "shared_width": max(shared, default=0) // layout.tp,
        "seconds": seconds,
    }
