"""Stand-ins for what nobody has built yet, measured: `python -m assay.lab.on_gpu.whatif_program JOB RESULTS`.

JOB is JSON: `shape`, `tokens`, `shared_width` (of the shared experts on the rank, 0 for none), `seconds`. Each line of
RESULTS is one stand-in at one number of tokens, per layer where it is about a layer.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from assay.kernels.device_timing import cold_seconds, quartiles, replayed, seconds
from assay.lab.on_gpu.expert_data import Batch, Experts, make_batch, make_experts
from assay.lab.on_gpu.implementations import IMPLEMENTATIONS, Unavailable
from assay.lab.on_gpu.l2_persistence import Persistence
from assay.lab.on_gpu.moe_program import Lab, device, one_line

ENGINES = ("vllm", "sglang", "plain-triton")
"""What is there today, the first that can be had."""
SEEDS = 4
OTHER_BYTES = 512 << 20
"""Read between two readings of what should stay in the L2: far more than the cache, as the rest of a step is."""
ACTIVATION_CALLS = 50


def main() -> None:
    """Measure the job."""
    job, results = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no CUDA device here")
    stand_ins = StandIns(job, results)
    stand_ins.lab.say({"kind": "device", **device()})
    stand_ins.run()


class StandIns:
    """The shape's experts on the device, and what is measured of them."""

    def __init__(self, job: dict[str, Any], results: Path) -> None:
        """Make the experts."""
        self.lab = Lab({"seconds": job["seconds"]}, results)
        self.job = job
        self.held: Experts = make_experts(job["shape"])
        self._until_s = time.monotonic() + float(job["seconds"])

    def run(self) -> None:
        """What depends on no number of tokens first."""
        self._try("l2-persistence", None, self._persistence)
        self._try("launch", None, self._launch)
        for tokens in self.job["tokens"]:
            batches = [make_batch(self.held, tokens, 0.0, seed) for seed in range(SEEDS)]
            self._try("experts", tokens, partial(self._engine, batches))
            self._try("ours", tokens, partial(self._named, "ours", batches))
            self._try("stream", tokens, partial(self._stream, batches))
            self._try("activation", tokens, partial(self._activation, tokens))
            if tokens > 1:
                halves = [make_batch(self.held, tokens // 2, 0.0, seed) for seed in range(SEEDS)]
                self._try("half", tokens, partial(self._engine, halves))
            if self.job["shared_width"]:
                self._try("shared", tokens, partial(self._shared_alone, tokens))
                self._try("together", tokens, partial(self._together, batches, tokens))

    def _try(self, name: str, tokens: int | None, work: Callable[[], tuple[list[float], str]]) -> None:
        row: dict[str, Any] = {"kind": "stand-in", "name": name, "tokens": tokens}
        if time.monotonic() > self._until_s:
            self.lab.say({**row, "problem": "no time was left for it"})
            return
        try:
            taken, words = work()
        except Exception as problem:  # noqa: BLE001 - whatever a kernel throws is a finding, and the next is measured
            self.lab.say({**row, "problem": one_line(problem)})
            torch.cuda.synchronize()  # raises where the device is lost
            return
        low, middle, high = quartiles(taken)
        self.lab.say({**row, "time_s": middle, "low_s": low, "high_s": high, "passes": len(taken), "what": words})

    def _engine(self, batches: Sequence[Batch]) -> tuple[list[float], str]:
        reasons = []
        for name in ENGINES:
            try:
                return self._named(name, batches)
            except Unavailable as problem:
                reasons.append(str(problem))
        raise Unavailable("; ".join(reasons))

    def _named(self, name: str, batches: Sequence[Batch]) -> tuple[list[float], str]:
        calls = [IMPLEMENTATIONS[name](self.held, batch) for batch in batches]
        return cold_seconds(calls, self.lab.cold, 10, 1.0), f"{name}, cold, one layer"

    def _stream(self, batches: Sequence[Batch]) -> tuple[list[float], str]:
        """The chosen experts' weights read once by a kernel that does nothing else."""
        counts = [batch.local_counts(self.held)[0] for batch in batches]
        hit = max(1, round(sum(counts) / len(counts)))
        parts = [weights[:hit].flatten().view(torch.int32) for weights in (self.held.w13, self.held.w2)]

        def work() -> None:
            for part in parts:
                torch.amax(part)

        return cold_seconds([work], self.lab.cold, 10, 1.0), f"weights of {hit} experts read by a reduction, cold"

    def _activation(self, tokens: int) -> tuple[list[float], str]:
        """The pass between the two products, its input still in the cache."""
        width = self.held.w2.shape[2]
        rows = tokens * self.held.top_k * self.held.w13.shape[0] // self.held.experts or 1
        inner = torch.randn((rows, 2 * width), device="cuda", dtype=torch.bfloat16)
        out = torch.empty((rows, width), device="cuda", dtype=torch.bfloat16)
        fused = getattr(torch.ops._C, "silu_and_mul", None) if hasattr(torch.ops, "_C") else None  # noqa: SLF001 - vLLM's
        name = "vLLM's silu_and_mul" if fused is not None else "two passes of PyTorch"

        def once() -> None:
            if fused is not None:
                fused(out, inner)
            else:
                gate, up = inner.chunk(2, dim=-1)
                torch.mul(torch.nn.functional.silu(gate), up, out=out)

        def many() -> None:
            for _ in range(ACTIVATION_CALLS):
                once()

        taken = [one / ACTIVATION_CALLS for one in seconds(replayed(many), 10)]
        return taken, f"{name} over {rows} x {2 * width}, warm"

    def _shared(self, tokens: int) -> tuple[tuple[list[float], str], Callable[[], None]]:
        hidden, width = self.held.w13.shape[2], self.job["shared_width"]
        x = torch.randn((tokens, hidden), device="cuda", dtype=torch.bfloat16)
        up = torch.randn((hidden, 2 * width), device="cuda", dtype=torch.bfloat16)
        down = torch.randn((width, hidden), device="cuda", dtype=torch.bfloat16)

        def work() -> None:
            gate, inner = (x @ up).chunk(2, dim=-1)
            _ = (torch.nn.functional.silu(gate) * inner) @ down

        taken = cold_seconds([work], self.lab.cold, 10, 0.5)
        return (taken, "cuBLAS, cold, one layer"), work

    def _shared_alone(self, tokens: int) -> tuple[list[float], str]:
        return self._shared(tokens)[0]

    def _together(self, batches: Sequence[Batch], tokens: int) -> tuple[list[float], str]:
        """Shared experts on a second stream beside the routed ones."""
        name = next(name for name in ENGINES if self._has(name, batches[0]))
        _, shared = self._shared(tokens)
        other = torch.cuda.Stream()
        calls = []
        for batch in batches:
            routed = IMPLEMENTATIONS[name](self.held, batch)

            def both(routed: Callable[[], object] = routed) -> None:
                other.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(other):
                    shared()
                routed()
                torch.cuda.current_stream().wait_stream(other)

            calls.append(both)
        return cold_seconds(calls, self.lab.cold, 10, 1.0), f"{name} with the shared experts on a second stream"

    def _has(self, name: str, batch: Batch) -> bool:
        try:
            IMPLEMENTATIONS[name](self.held, batch)
        except Unavailable:
            return False
        return True

    def _persistence(self) -> tuple[list[float], str]:
        """What reading a buffer takes less when it was set aside, other data read in between."""
        persistence = Persistence()
        size = persistence.most_bytes // 4 * 4
        with torch.cuda.stream(
            torch.cuda.Stream()
        ):  # the attribute belongs to a stream, and the default one is special
            kept = torch.ones(size // 4, dtype=torch.int32, device="cuda")
            other = torch.ones(OTHER_BYTES // 4, dtype=torch.int32, device="cuda")
            without = self._read_again(kept, other)
            persistence.keep(kept, size)
            try:
                kept_s = self._read_again(kept, other)
            finally:
                persistence.forget()
        saved = [before - after for before in without for after in kept_s]  # no reading belongs to another one
        words = (
            f"{size / 1e6:.1f} MB set aside of an L2 of {self.lab.cold.l2_bytes / 1e6:.1f} MB, read after "
            f"{OTHER_BYTES / 1e6:.0f} MB of other data: {quartiles(without)[1] * 1e6:.1f} us without, "
            f"{quartiles(kept_s)[1] * 1e6:.1f} us with"
        )
        return saved, words

    @staticmethod
    def _read_again(kept: Any, other: Any) -> list[float]:
        torch.amax(kept)
        found = []
        for _ in range(20):
            torch.amax(other)
            found += seconds(lambda: torch.amax(kept), 1, warm=0)
        return found

    @staticmethod
    def _launch() -> tuple[list[float], str]:
        cell = torch.zeros(64, device="cuda")

        def many() -> None:
            for _ in range(500):
                cell.add_(1)

        return [one / 500 for one in seconds(replayed(many), 10)], "a tiny kernel inside a replayed graph"


if __name__ == "__main__":
    main()
