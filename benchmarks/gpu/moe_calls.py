"""Who computes a layer: our kernel, the engine's, plain torch; called, checked and timed by the parts of the lab."""

# ruff: noqa: PLC0415 - processes that compile start without torch; it is loaded where it is used
from __future__ import annotations

import importlib
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.kernels.tiles import MoeConfig

if TYPE_CHECKING:
    from assay.lab.on_gpu.expert_data import Batch, Experts

Call = Callable[[], Any]
WORST_ERROR = {"bf16": 1e-2, "fp8": 8e-2}
"""Relative to float64 over the same weights; fp8 activations are rounded to a mantissa of three bits, twice."""


@dataclass(frozen=True, slots=True)
class Task:
    """A layer, the batches of a cell, and what is right for some rows of the first."""

    held: Experts
    batches: Sequence[Batch]
    rows: Any
    wanted: Any

    @classmethod
    def of(cls, held: Experts, batches: Sequence[Batch]) -> Task:
        """With the answers worked out."""
        from assay.lab.on_gpu.expert_data import answers

        return cls(held, batches, *answers(held, batches[0]))


def ours(task: Task, config: MoeConfig | None) -> list[Call]:
    """Our kernel with these tiles; None: with those it would choose."""
    from assay.lab.on_gpu.implementations import ours as made

    return [made(task.held, batch, config) for batch in task.batches]


def engine(task: Task, folder: str | None) -> list[Call]:
    """vLLM's experts: as they come, or with the tuned configurations of a folder."""
    from assay.lab.on_gpu.implementations import vllm

    calls = [vllm(task.held, batch) for batch in task.batches]
    if folder:
        os.environ["VLLM_TUNED_CONFIG_FOLDER"] = folder
    else:
        os.environ.pop("VLLM_TUNED_CONFIG_FOLDER", None)
    importlib.import_module("vllm.model_executor.layers.fused_moe.fused_moe").get_moe_configs.cache_clear()
    return calls


def plain_torch(task: Task) -> list[Call]:
    """A sort, `torch._grouped_mm` twice, a sum: what plain torch offers; bf16."""
    from assay.lab.on_gpu.implementations import torch_grouped

    return [torch_grouped(task.held, batch) for batch in task.batches]


def seconds_of_one(calls: Sequence[Call], passes: int) -> list[float]:
    """Device time of one call: a graph of all of them, over their number.

    Each has tokens and routing of its own, so that weights come from memory; outputs are kept while the graph is
    captured, as an engine keeps them for the next layer.
    """
    from assay.kernels.device_timing import replayed, seconds

    kept: list[Any] = []

    def every() -> None:
        kept[:] = [call() for call in calls]

    return [one / len(calls) for one in seconds(replayed(every), passes, warm=1)]


def measured(calls: Sequence[Call], task: Task, dtype: str, passes: int) -> dict[str, Any]:
    """Checked, then timed; whatever went wrong instead."""
    from assay.kernels.device_timing import poison_free_memory, relative_error

    try:
        poison_free_memory(task.batches[0].x)
        found = calls[0]()
        if not bool(found.isfinite().all()):
            return {"problem": "not everything was written"}
        error = relative_error(found[task.rows], task.wanted)
        if not error <= WORST_ERROR[dtype]:
            return {"problem": f"relative error {error:.2e}"}
        samples = seconds_of_one(calls, passes)
    except Exception as problem:  # noqa: BLE001 - one config's failure is a result; a sticky one ends the run below
        return {"problem": f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[-1][:200]}"}
    return {"median_s": statistics.median(samples), "samples_s": samples, "error": error}


def same_bits(calls: Sequence[Call], task: Task) -> bool:
    """Whether the same call gives the same bits again."""
    from assay.kernels.device_timing import poison_free_memory

    first = calls[0]().clone()
    poison_free_memory(task.batches[0].x)
    return bool((calls[0]() == first).all())
