"""Assay's fused-MoE tuner against the engine: `python -m benchmarks.gpu.tuner --model M --layout tp8 --out FOLDER`.

One adaptive search over the numbers of tokens, then the winners beside the engine's default and the file that the
engine ships for the shape (if it does), measured in turn. With `--exhaustive 64,1024` the engine's own grid is walked
through whole at these numbers of tokens, compiled on as many cores as the search has; with `--workers 0` as the
engine's own tuner does it, which compiles in the process that measures. `--beside RESULTS` takes the winners of another
search into the last comparison: only what is measured in turn can be held against each other.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from pathlib import Path
from typing import Any

from benchmarks.gpu import running
from benchmarks.gpu.lab import LAYOUTS

from assay import models
from assay.lab.jobs import TUNE_PROGRAM, TUNED_TOKENS, tune_job
from assay.lab.shapes import ExpertShape, rank_shape
from assay.lab.tuning import config_files
from assay.lab.tuning.space import Config
from assay.probes.devices import box
from assay.probes.measured_file import with_measured
from assay.roofline import ceilings

PLACES = {
    "vllm": "model_executor/layers/fused_moe/configs",
    "sglang": "srt/layers/moe/moe_runner/triton_utils/configs/triton_*",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="glm-5")
    parser.add_argument("--layout", choices=list(LAYOUTS), default="tp8")
    parser.add_argument("--dtype", choices=["bf16", "fp8"])
    parser.add_argument("--engine", choices=list(PLACES), default="vllm")
    parser.add_argument("--device", default="h200", help="for bounds before anything is measured")
    parser.add_argument("--device-name", default="NVIDIA H200", help="as CUDA says it")
    parser.add_argument("--measured", type=Path, help="what benchmarks/gpu/ceilings.py --facts wrote")
    parser.add_argument("--tokens", default=",".join(map(str, TUNED_TOKENS)))
    parser.add_argument("--exhaustive", default="")
    parser.add_argument("--beside", type=Path, help="results (.jsonl) of another search of this shape")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    shape = rank_shape(models.load(options.model), LAYOUTS[options.layout], options.dtype)
    known = box(options.device)
    limits = ceilings.of((with_measured(known, options.measured) if options.measured else known).device)
    name = f"tune-{options.engine}-{options.model}-{options.layout}-{shape.dtype}"
    wanted = options.exhaustive or options.tokens
    mode = "exhaustive" if options.exhaustive else "adaptive"
    options.out.mkdir(parents=True, exist_ok=True)
    job = tune_job(
        shape,
        options.engine,
        [int(each) for each in wanted.split(",")],
        limits,
        options.out / f"{name}-{mode}.journal.jsonl",
        mode=mode,
        seconds=options.seconds,
        workers=options.workers,
        compare={**shipped(options.engine, shape, options.device_name), **beside(options.beside)},
    )
    rows = running.program(TUNE_PROGRAM, job, options.out / f"{name}-{mode}.jsonl", options.seconds + 90)
    show(rows)
    winners = {row["tokens"]: Config.of(row["config"]) for row in rows if row["kind"] == "winner"}
    triton = next((row["triton"] for row in rows if row["kind"] == "device"), "unknown")
    if winners and mode == "adaptive":
        device = next(row["device"] for row in rows if row["kind"] == "device")
        file = config_files.file_name(
            options.engine, experts=shape.local_experts, width=shape.width, device=device, dtype=shape.dtype
        )
        (options.out / "tuned").mkdir(exist_ok=True)
        (options.out / "tuned" / file).write_text(config_files.write(options.engine, winners, triton))


def shipped(engine: config_files.Engine, shape: ExpertShape, device: str) -> dict[str, Any]:
    """The file that the installed engine brings for the shape: what its own exhaustive tuner found, some time ago."""
    spec = importlib.util.find_spec(engine)
    if spec is None or spec.origin is None:
        return {}
    file = config_files.file_name(
        engine, experts=shape.local_experts, width=shape.width, device=device, dtype=shape.dtype
    )
    for folder in sorted(Path(spec.origin).parent.glob(PLACES[engine]), reverse=True):
        if (folder / file).exists():
            found = config_files.read((folder / file).read_text())
            return {"shipped": {str(tokens): config.as_engine() for tokens, config in found.items()}}
    print(f"{engine} ships no {file}")
    return {}


def beside(results: Path | None) -> dict[str, Any]:
    """The winners of another search, by its mode."""
    if results is None:
        return {}
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    winners = [row for row in rows if row["kind"] == "winner"]
    if not winners:
        raise SystemExit(f"{results}: no search ended there with a winner")
    return {winners[0]["mode"]: {str(row["tokens"]): row["config"] for row in winners}}


def show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["kind"] == "compared":
            told = ", ".join(f"{name} {time_s * 1e6:.1f}" for name, time_s in row["time_s"].items())
            print(f"{row['tokens']:5} tokens, us: {told}; {json.dumps(list(row['configs']['tuned'].values()))}")
        elif row["kind"] in ("search", "stopped", "note"):
            print({key: value for key, value in row.items() if key != "kind"})


if __name__ == "__main__":
    main()
