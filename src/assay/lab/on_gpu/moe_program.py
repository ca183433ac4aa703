"""The expert-GEMM lab on a GPU: `python -m assay.lab.on_gpu.moe_program JOB RESULTS`.

JOB is JSON: `shapes` (as `assay.lab.shapes.ExpertShape.as_job` writes them), `tokens`, `implementations`, `exponent` of
the routing (0: uniform) and `seconds`. Every figure is appended to RESULTS as a line of JSON as soon as it is there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from assay.kernels.device_timing import ColdCache, cold_seconds, poison_free_memory, quartiles, relative_error
from assay.lab.on_gpu.expert_data import Batch, Experts, answers, make_batch, make_experts
from assay.lab.on_gpu.implementations import IMPLEMENTATIONS

ROUTINGS, FEW_ROUTINGS, MANY_TOKENS = 6, 3, 512
PASSES = 15
POINT_S = 1.5
"""Wall clock for the passes of one figure."""
WORST_ERROR = {"bf16": 2e-2, "fp8": 8e-2}
"""Against float64: BF16 rounds the intermediate layer, FP8 rounds inputs and intermediate layer to three bits."""


def main() -> None:
    """Measure the job."""
    job, results = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no CUDA device here")
    lab = Lab(job, results)
    lab.say({"kind": "device", **device()})
    lab.run()


def device() -> dict[str, Any]:
    """What was measured on."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    try:
        import triton  # noqa: PLC0415 - may be absent

        version = triton.__version__
    except ImportError:
        version = None
    return {
        "device": properties.name,
        "torch": torch.__version__,
        "triton": version,
        "date": time.strftime("%Y-%m-%d"),
        "smem_per_block_bytes": getattr(properties, "shared_memory_per_block_optin", None),
        "sms": properties.multi_processor_count,
        "l2_bytes": getattr(properties, "L2_cache_size", None),
    }


def one_line(problem: BaseException) -> str:
    """What was thrown, short."""
    return f"{type(problem).__name__}: {(str(problem) or '?').splitlines()[0][:300]}"


class Lab:
    """A job with the time that is left for it."""

    def __init__(self, job: dict[str, Any], results: Path) -> None:
        """Nothing is on the device yet."""
        self.job, self._results = job, results
        self._until_s = time.monotonic() + float(job.get("seconds", 300))
        self.cold = ColdCache()

    def say(self, row: dict[str, Any]) -> None:
        """Keep a line; a kill after this loses nothing of it."""
        with self._results.open("a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def run(self) -> None:
        """All shapes at one number of tokens after the other, as asked for: a cut leaves the first ones whole."""
        every = [(shape, make_experts(shape)) for shape in self.job["shapes"]]
        for tokens in self.job["tokens"]:
            for shape, held in every:
                batches = list(self._batches(held, tokens))
                counts = [batch.local_counts(held) for batch in batches]
                point = {
                    "layout": shape["layout"],
                    "model": shape["model"],
                    "dtype": shape["dtype"],
                    "tokens": tokens,
                    "distinct": sum(one for one, _ in counts) / len(counts),
                    "pairs": sum(pairs for _, pairs in counts) / len(counts),
                }
                for name in self.job["implementations"]:
                    self._figure(point, name, held, batches)

    def _batches(self, held: Experts, tokens: int) -> Iterator[Batch]:
        for seed in range(FEW_ROUTINGS if tokens >= MANY_TOKENS else ROUTINGS):
            yield make_batch(held, tokens, float(self.job.get("exponent", 0.0)), seed)

    def _figure(self, point: dict[str, Any], name: str, held: Experts, batches: list[Batch]) -> None:
        row = {"kind": "point", **point, "implementation": name}
        if time.monotonic() > self._until_s:
            self.say({**row, "problem": "no time was left for it"})
            return
        try:
            calls = [IMPLEMENTATIONS[name](held, batch) for batch in batches]
            rows, wanted = answers(held, batches[0])
            poison_free_memory(batches[0].x)
            error = relative_error(calls[0]()[rows], wanted)
            taken = cold_seconds(calls, self.cold, PASSES, POINT_S)
        except Exception as problem:  # noqa: BLE001 - whatever a kernel throws is a finding, and the next is measured
            self.say({**row, "problem": one_line(problem)})
            torch.cuda.synchronize()  # raises where the device is lost: nothing more can be measured then
            return
        low, middle, high = quartiles(taken)
        correct = error < WORST_ERROR[point["dtype"]]
        self.say(
            {
                **row,
                "time_s": middle,
                "low_s": low,
                "high_s": high,
                "passes": len(taken),
                "error": error,
                "correct": correct,
                "cache": "cold",
            }
        )


if __name__ == "__main__":
    main()
