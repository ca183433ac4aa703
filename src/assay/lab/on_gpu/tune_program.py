"""The fused-MoE tuner on a GPU: `python -m assay.lab.on_gpu.tune_program JOB RESULTS`.

JOB is JSON: `shape`, `engine` (vllm or sglang), `problems` (as `assay.lab.tuning.space.Problem`), `journal` (a path),
`mode` (adaptive, or exhaustive over the engine's own grid), `exponent` of the routing, `seconds`, and `compare` (named
configurations by number of tokens that are measured with the winners). RESULTS gets lines of JSON as they come.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from assay.kernels.device_timing import ColdCache, cold_seconds, poison_free_memory, relative_error
from assay.lab.on_gpu.compile_pool import CompilePool
from assay.lab.on_gpu.expert_data import Batch, Experts, answers, make_batch, make_experts
from assay.lab.on_gpu.implementations import IMPLEMENTATIONS
from assay.lab.on_gpu.moe_program import WORST_ERROR, device, one_line
from assay.lab.tuning.defaults import sglang_default, vllm_default
from assay.lab.tuning.journal import Journal
from assay.lab.tuning.search import Ask, Progress, Told, Winner, search
from assay.lab.tuning.space import Config, Problem, engine_space, our_space, why_not

ROUTINGS = {"quick": 3, "full": 5}
PASSES = {"quick": 5, "full": 25}
GENERATION = 64
"""Configurations of an exhaustive search that are compiled at once."""


class OutOfTime(Exception):  # noqa: N818 - an end, not an error
    """The job's seconds are over."""


def main() -> None:
    """Tune."""
    job, results = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no CUDA device here")
    until_s = float(sys.argv[3]) if len(sys.argv) > 3 else time.monotonic() + float(job.get("seconds", 1e9))  # noqa: PLR2004 - the program itself is the first
    tuner = Tuner(job, results, until_s)
    try:
        tuner.run()
    except RuntimeError as lost:
        if time.monotonic() > until_s or not tuner.launches:
            raise  # where nothing new was measured, it would be lost at the same place again
        tuner.say({"kind": "note", "text": f"the device was lost and the program begins anew: {one_line(lost)}"})
        tuner.pool.close()
        argv = [sys.executable, "-m", "assay.lab.on_gpu.tune_program", *sys.argv[1:3], str(until_s)]
        os.execv(sys.executable, argv)  # noqa: S606 - this program again; a CUDA context that failed cannot be mended
    finally:
        tuner.pool.close()


class Tuner:
    """A job: experts on the device, the journal, and the time that is left."""

    def __init__(self, job: dict[str, Any], results: Path, until_s: float) -> None:
        """The experts are made while the compilers start."""
        self.job, self._results = job, results
        self._begun_s = time.monotonic()
        self._until_s = until_s
        self.shape, self.engine = job["shape"], job["engine"]
        IMPLEMENTATIONS[self.engine](*_smallest(self.shape))  # raises where the engine is not here
        self.pool = CompilePool(self.shape, self.engine, job.get("workers"))
        about = device()
        version = _version(self.engine)
        self.say({"kind": "device", **about, "engine": self.engine, "version": version})
        identity = {
            "engine": self.engine,
            "version": version,
            "shape": self.shape,
            "exponent": job.get("exponent", 0.0),
            **{key: about[key] for key in ("device", "torch", "triton")},
        }
        self.journal = Journal(Path(job["journal"]), identity)
        chip = {"smem_per_block_bytes": about["smem_per_block_bytes"] or 0, "sms": about["sms"]}
        self.problems = [Problem(**{**row, **chip}) for row in job["problems"]]
        self.held: Experts = make_experts(self.shape)
        self.cold = ColdCache()
        self._batches: dict[tuple[int, str], list[Batch]] = {}
        self._answers: dict[int, Any] = {}
        self.launches = 0

    def say(self, row: dict[str, Any]) -> None:
        """Keep a line."""
        with self._results.open("a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def run(self) -> None:
        """Search, then measure what the winners are compared with."""
        mode = self.job.get("mode", "adaptive")
        found: list[Winner] = []
        try:
            if mode == "exhaustive":
                for problem in self.problems:
                    found.append(self._exhaustive(problem))
                    self._tell(found[-1:], mode)
            else:
                space = our_space(self.shape["dtype"])
                for winner in search(space, self.problems, self._default, self.measure, self._watch):
                    found.append(winner)
                    self._tell([winner], mode)
        except OutOfTime:
            self.say({"kind": "stopped", "reason": "no time was left; the journal keeps what was measured"})
        took_s = time.monotonic() - self._begun_s
        self.say(
            {"kind": "search", "mode": mode, "took_s": took_s, "launches": self.launches, "known": len(self.journal)}
        )
        self._compare(found)

    def _tell(self, winners: Sequence[Winner], mode: str) -> None:
        for one in winners:
            self.say(
                {
                    "kind": "winner",
                    "mode": mode,
                    "tokens": one.tokens,
                    "config": one.config.as_engine(),
                    "time_s": one.time_s,
                    "default_s": one.default_s,
                    "measured": one.measured,
                    "pruned": one.pruned,
                    "after_s": time.monotonic() - self._begun_s,
                }
            )

    def _default(self, tokens: int) -> Config:
        choose = vllm_default if self.engine == "vllm" else sglang_default
        return choose(tokens, self.shape["local_experts"], self.shape["dtype"])

    def _watch(self, progress: Progress) -> None:
        spent_s = time.monotonic() - self._begun_s
        self.say(
            {
                "kind": "progress",
                "tokens": progress.tokens,
                "done": progress.done,
                "total": progress.total,
                "measured": progress.measured,
                "best_s": progress.best_s,
                "spent_s": spent_s,
            }
        )

    def _exhaustive(self, problem: Problem) -> Winner:
        """All of the engine's own grid that can be launched, then the best few again as the adaptive search does."""
        every = engine_space(self.shape["dtype"])
        times: dict[Config, float] = {}
        for first in range(0, len(every), GENERATION):
            part = every[first : first + GENERATION]
            asks = [Ask(tokens=problem.tokens, config=one, effort="quick") for one in part]
            for one, told in zip(part, self.measure(asks), strict=True):
                if told.time_s is not None:
                    times[one] = told.time_s
        close = sorted(times, key=lambda one: times[one])[:5]
        default = self._default(problem.tokens)
        asks = [Ask(tokens=problem.tokens, config=one, effort="full") for one in dict.fromkeys([*close, default])]
        full = {ask.config: told.time_s for ask, told in zip(asks, self.measure(asks), strict=True) if told.time_s}
        if not full:
            raise SystemExit(f"no configuration of the engine's grid could be measured at {problem.tokens} tokens")
        best = min(full, key=lambda one: full[one])
        pruned = sum(why_not(one, problem) is not None for one in every)
        return Winner(
            tokens=problem.tokens,
            config=best,
            time_s=full[best],
            default_s=full.get(default),
            measured=len(every),
            pruned=pruned,
        )

    def measure(self, asks: Sequence[Ask]) -> list[Told]:
        """A generation: what the journal knows, else compiled on all cores and measured one after the other.

        Raises:
            OutOfTime: the job's seconds are over.
        """
        new = [ask for ask in asks if self.journal.find(ask) is None]
        problems = self.pool.prepare([(ask.tokens, ask.config.as_engine()) for ask in new])
        for place, ask in enumerate(new):
            if time.monotonic() > self._until_s:
                raise OutOfTime
            told = Told(time_s=None, problem=problems[place]) if place in problems else self._one(ask)
            self.journal.add(ask, told)
            if told.time_s is None:
                torch.cuda.synchronize()  # raises where the kernel took the device with it
        return [known for ask in asks if (known := self.journal.find(ask)) is not None]

    def _one(self, ask: Ask) -> Told:
        self.launches += 1
        try:
            calls = self._calls(ask.tokens, ask.effort, ask.config)
            error = self._error(ask.tokens, calls[0])
            if error >= WORST_ERROR[self.shape["dtype"]]:
                return Told(time_s=None, problem=f"wrong: relative error {error:.1e}")
            taken = cold_seconds(calls, self.cold, PASSES[ask.effort])
        except Exception as problem:  # noqa: BLE001 - whatever a kernel throws is a finding about its tiles
            return Told(time_s=None, problem=one_line(problem))
        return Told(time_s=statistics.median(taken))

    def _calls(self, tokens: int, effort: str, config: Config) -> list[Any]:
        make: Any = IMPLEMENTATIONS[self.engine]
        return [make(self.held, batch, config.as_engine()) for batch in self._drawn(tokens, effort)]

    def _drawn(self, tokens: int, effort: str) -> list[Batch]:
        if (tokens, effort) not in self._batches:
            exponent = float(self.job.get("exponent", 0.0))
            self._batches[tokens, effort] = [
                make_batch(self.held, tokens, exponent, seed) for seed in range(ROUTINGS[effort])
            ]
        return self._batches[tokens, effort]

    def _error(self, tokens: int, call: Any) -> float:
        if tokens not in self._answers:
            self._answers[tokens] = answers(self.held, self._drawn(tokens, "quick")[0])
        rows, wanted = self._answers[tokens]
        poison_free_memory(self._drawn(tokens, "quick")[0].x)
        return relative_error(call()[rows], wanted)

    def _compare(self, winners: Sequence[Winner]) -> None:
        """Winners, the engine's default and named configurations once more, in turn, so that clocks are fair."""
        named: dict[str, dict[str, Any]] = self.job.get("compare", {})
        for winner in winners:
            rows = {"tuned": winner.config, "default": self._default(winner.tokens)}
            for name, configs in named.items():
                rows[name] = Config.of(configs[min(configs, key=lambda key: abs(int(key) - winner.tokens))])
            times: dict[str, list[float]] = {name: [] for name in rows}
            calls = {name: self._calls(winner.tokens, "full", config) for name, config in rows.items()}
            for _ in range(3):
                for name in rows:
                    try:
                        times[name] += cold_seconds(calls[name], self.cold, 8)
                    except Exception as problem:  # noqa: BLE001 - as above
                        self.say({"kind": "note", "text": f"{name} at {winner.tokens}: {one_line(problem)}"})
            self.say(
                {
                    "kind": "compared",
                    "tokens": winner.tokens,
                    "configs": {name: config.as_engine() for name, config in rows.items()},
                    "time_s": {name: statistics.median(taken) for name, taken in times.items() if taken},
                }
            )


def _smallest(shape: dict[str, Any]) -> tuple[Experts, Batch]:
    """One expert's worth of the shape, to ask whether the engine can be called at all."""
    held = make_experts({**shape, "experts": shape["top_k"], "local_experts": shape["top_k"], "width": 128})
    return held, make_batch(held, 1, 0.0, 0)


def _version(engine: str) -> str:
    from importlib import metadata  # noqa: PLC0415 - once

    try:
        return metadata.version(engine)
    except metadata.PackageNotFoundError:
        module = __import__(engine)
        return str(getattr(module, "__version__", "unknown"))


if __name__ == "__main__":
    main()
