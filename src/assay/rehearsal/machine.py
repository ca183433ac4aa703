"""The simulated machine of a command line: model, box, layout, memory, step times and noise."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

from assay.errors import UsageError
from assay.models import load
from assay.probes.devices import box as named_box
from assay.records.device import Box
from assay.records.estimate import Layout, MemoryBudget
from assay.records.model_shape import ModelShape
from assay.rehearsal.batch import Batch, Limits
from assay.rehearsal.flags import CommandLine
from assay.rehearsal.noise import Noise
from assay.rehearsal.step_times import StepTimes
from assay.roofline import layouts, memory

RUN_TOKEN = "ASSAY_RUN_TOKEN"  # noqa: S105 - the name of a marker
"""`assay.campaign.bench.RUN_TOKEN`, written here again because that module costs a server a tenth of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the server simulates."""

    shape: ModelShape
    box: Box
    layout: Layout
    budget: MemoryBudget
    batch: Batch
    seed: str


def layout_of(given: dict[str, Any]) -> Layout:
    """The layout that the flags name.

    Raises:
        UsageError: a size below 1.
    """
    sizes = {name: given.get(f"{name}_size") or 1 for name in ("tp", "pp", "dp", "ep")}
    if min(sizes.values()) < 1:
        raise UsageError(f"a layout of {sizes} has no ranks", hint="sizes are 1 and above")
    return Layout(**sizes)


def element_bytes(given: dict[str, Any]) -> float:
    """Bytes of a value in the cache."""
    return 1.0 if given.get("kv_cache_dtype") == "fp8_e4m3" else 2.0


def build(line: CommandLine) -> Machine:
    """Put the machine together.

    Raises:
        UsageError: no such model or box, or an impossible layout.
    """
    given = line.effective()
    if not given.get("model"):
        raise UsageError("the following arguments are required: --model", hint="name a model")
    shape, box, layout = load(str(given["model"])), named_box(str(given["box"])), layout_of(given)
    if (problem := layouts.check(shape, box, layout)) is not None:
        raise UsageError(f"layout {layout.name} is impossible: {problem}", hint="choose other sizes")
    budget = memory.budget(
        shape,
        box,
        layout,
        memory_fraction=given["mem_fraction_static"],
        cache_bytes_per_element=element_bytes(given),
        max_step_tokens=given["chunked_prefill_size"],
    )
    seed, hours = _noise_origin(line)
    truths = [truth for _, truth in line.truths]
    times = StepTimes(shape, box, layout, truths, cache_bytes_per_element=element_bytes(given))
    noise = Noise(line.world.noise, seed, hours_since_epoch=hours)
    limits = Limits(
        running=given["max_running_requests"],
        chunk_tokens=given["chunked_prefill_size"],
        cache_tokens=budget.cache_tokens,
    )
    return Machine(shape=shape, box=box, layout=layout, budget=budget, batch=Batch(times, noise, limits), seed=seed)


def _noise_origin(line: CommandLine) -> tuple[str, float]:
    """The seed of this launch's noise, and the simulated hours since the epoch of the drift.

    Inside a campaign the run's id is the seed, so that the same campaign meets the same noise twice, and the epoch is
    the campaign's creation: both stand in the marker that every server of a campaign carries.
    """
    created, _, run = os.environ.get(RUN_TOKEN, "").rpartition("-")
    given = line.given["seed"]
    seed = f"{line.world.seed}:{run or '0' if given is None else given}"
    epoch_s = line.world.epoch_s
    if epoch_s is None:
        epoch_s = int(created) / 1e9 if created.isdigit() else time.time()
    return seed, (time.time() - epoch_s) * line.given["time_scale"] / 3600
