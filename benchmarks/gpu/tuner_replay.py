"""The adaptive search on a recorded grid: `python -m benchmarks.gpu.tuner_replay JOURNAL JOB`.

`benchmarks.gpu.tuner --exhaustive` writes down what each configuration of the engine's own grid took on the device. The
adaptive search, which measures nothing itself, is asked to find the best of it, and is told from the journal. What it
costs is counted in configurations, which are compiled and launched alike in both.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from assay.lab.tuning.defaults import sglang_default, vllm_default
from assay.lab.tuning.search import Ask, Told, search
from assay.lab.tuning.space import Config, Problem, engine_space


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("journal", type=Path)
    parser.add_argument("job", type=Path)
    parser.add_argument("--smem-per-block-bytes", type=int, default=232448, help="of the device; H200: 227 KiB")
    parser.add_argument("--sms", type=int, default=132)
    options = parser.parse_args()
    first, *rows = (json.loads(line) for line in options.journal.read_text().splitlines())
    shape, engine = first["identity"]["shape"], first["identity"]["engine"]
    choose = vllm_default if engine == "vllm" else sglang_default
    space = engine_space(shape["dtype"])
    chip = {"smem_per_block_bytes": options.smem_per_block_bytes, "sms": options.sms}
    print("tokens  grid  recorded  within 2%  tried  best us  found us   over  default us  default over")
    for row in json.loads(options.job.read_text())["problems"]:
        problem = Problem(**{**row, **chip})
        times = {Config.of(one["config"]): one["time_s"] for one in rows if one["tokens"] == problem.tokens}
        good = [time for time in times.values() if time is not None]
        if not good:
            raise SystemExit(f"{options.journal}: nothing was measured at {problem.tokens} tokens")
        replay(problem, space, times, choose(problem.tokens, shape["local_experts"], shape["dtype"]))


def replay(problem: Problem, space: Sequence[Config], times: dict[Config, float | None], default: Config) -> None:
    """One number of tokens: a row of the table. What was not recorded counts as not to be launched."""
    tried: set[Config] = set()

    def measure(asks: Sequence[Ask]) -> list[Told]:
        tried.update(ask.config for ask in asks)
        return [Told(time_s=times.get(ask.config)) for ask in asks]

    (winner,) = search(space, [problem], lambda _: default, measure)
    good = [time for time in times.values() if time is not None]
    best, usual = min(good), times.get(default)
    near = sum(time <= 1.02 * best for time in good)
    told = f"{usual * 1e6:10.1f}  {usual / best - 1:12.1%}" if usual else f"{'':10}  {'not recorded':>12}"
    print(
        f"{problem.tokens:6}  {len(space):4}  {len(times):8}  {near:9}  {len(tried):5}  {best * 1e6:7.1f}  "
        f"{winner.time_s * 1e6:8.1f}  {winner.time_s / best - 1:5.1%}  {told}"
    )


if __name__ == "__main__":
    main()
