"""A campaign of vLLM on one GPU, in slices: a model of GLM-5's shape, A/A calibration, hypotheses of tiers 1 to 3.

    python benchmarks/gpu/vllm_campaign.py --python /opt/vllm/bin/python --tokenizer MODEL_FOLDER \
        --model /opt/models/glm5-slice --folder CAMPAIGN --seconds 500

GPU time comes in slices: a run is begun only when the time left holds one as long as the longest so far. The same
command goes on where it stopped, also on the next machine of the same fingerprint; no bracket spans two machines.
The model is written when it is not there (`moe_model.py`): seeded, so that every GPU machine serves the same weights.

A step must take the GPU longer than the host needs to prepare the next one, else a verdict is about the host: with six
layers and 8 streams identical launches scattered by 11.8 % either way (docs/gpu.md). Sixteen layers are 42 GB, which a
disk of 64 GB holds, and by vLLM's times there (271 us a layer with 16 streams, 556 with 64) 4.3 and 8.9 ms of experts a
step, where the host took up to about 3. `--intermediate 2048 --layers 2` are as many bytes and about as long a step in
an eighth of the launches; but our kernel's tiles were measured for 256 columns, and are chosen by rule for 2,048.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from assay import api
from assay.records.spec import Budget, CampaignSpec, Gates, LoadPoint, Objective, Policy, Target, Workload
from assay.records.state import RunRecord

HERE = Path(__file__).parent
OWN = HERE / "vllm_catalogue"
TRIED = (
    "assay-persistent-moe",
    "weights-fp8",
    "kv-fp8",
    "prefill-chunk-large",
    "async-scheduling-off",
    "compile-and-piecewise",
    "graphs-off",
    "stream-interval",
)
LAYERS, INTERMEDIATE = 16, 256
FIRST_RUN_S = 240.0
"""Allowed for a run while none has been made: a cold start compiles, and reads the model from the disk."""
MARGIN_S = 10.0


def spec(model: Path, python: str) -> CampaignSpec:
    """The question: decode at 64 and at 16 streams, graphs for decode alone, so that a launch stays short."""
    return CampaignSpec(
        name="vllm-h200-glm5-slice",
        target=Target(
            engine="vllm",
            model=str(model),
            executable=python,
            flags={
                "--max-model-len": 4096,
                "--max-num-seqs": 128,
                "--gpu-memory-utilization": 0.6,
                "--enable-prefix-caching": False,
                "--moe-backend": "triton",
                "--compilation-config": (
                    '{"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY", '
                    '"cudagraph_capture_sizes": [1, 2, 4, 8, 16, 32, 64, 128]}'
                ),
            },
            env={"VLLM_USE_FLASHINFER_SAMPLER": "0"},
            start_timeout_s=FIRST_RUN_S,
        ),
        workload=Workload(
            concurrency=64,
            input_tokens=(256, 256),
            output_tokens=(96, 160),
            window_s=3.0,
            windows=3,
            warmup_min_s=2.0,
            warmup_max_s=20.0,
            points=[LoadPoint(name="c16", concurrency=16)],
        ),
        objective=Objective(min_effect=0.03),
        budget=Budget(total_s=3 * 3600.0, calibration_brackets=2, block=4, min_brackets=2, max_brackets=4),
        gates=Gates(max_foreign_cores=1.0),
        policy=Policy(only=list(TRIED), catalogue=["catalogue"]),
    )


def make_model(asked: argparse.Namespace) -> None:
    """Write the model, or make sure that the one there is the one that is asked for."""
    if not (asked.model / "model.safetensors.index.json").exists():
        sizes = ["--layers", str(asked.layers), "--intermediate", str(asked.intermediate)]
        made = [str(HERE / "moe_model.py"), str(asked.model), "--tokenizer", str(asked.tokenizer), *sizes]
        subprocess.run([asked.python, *made], check=True)
    config = json.loads((asked.model / "config.json").read_text())
    found = config["num_hidden_layers"], config["moe_intermediate_size"]
    if found != (asked.layers, asked.intermediate):
        sys.exit(
            f"{asked.model} has {found[0]} layers of experts {found[1]} wide, "
            f"not {asked.layers} of {asked.intermediate}: "
            "name another folder, or give --layers and --intermediate as it was made"
        )


def longest_run_s(folder: Path) -> float:
    """What the longest run took, wall clock."""
    return max((run.outcome.duration_s for run in runs_of(folder) if run.outcome), default=FIRST_RUN_S)


def runs_of(folder: Path) -> list[RunRecord]:
    """The runs so far."""
    return api.status(folder).runs if (folder / "assay.db").exists() else []


def main() -> int:
    """Go on with the campaign for as long as there is time."""
    begun_s = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True, help="a Python that has vLLM")
    parser.add_argument("--tokenizer", type=Path, required=True, help="a model folder whose tokenizer is used")
    parser.add_argument("--model", type=Path, required=True, help="where the model is, or will be")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--layers", type=int, default=LAYERS, help="2.6 GB each with the default width (%(default)s)")
    parser.add_argument("--intermediate", type=int, default=INTERMEDIATE, help="columns of an expert (%(default)s)")
    asked = parser.parse_args()
    make_model(asked)
    print(f"[{time.monotonic() - begun_s:.0f} s] model is there", flush=True)
    if not (asked.folder / "assay.toml").exists():
        api.init(asked.folder, spec(asked.model, asked.python))
    shutil.copytree(OWN, asked.folder / "catalogue", dirs_exist_ok=True)
    assay = [sys.executable, "-m", "assay"]
    while time.monotonic() - begun_s + longest_run_s(asked.folder) + MARGIN_S < asked.seconds:
        before = len(runs_of(asked.folder))
        words = [*assay, "run", "--folder", str(asked.folder), "--plain", "--max-runs", "1"]
        code = subprocess.run(words, check=False, stdout=subprocess.DEVNULL).returncode
        made = len(runs_of(asked.folder))
        print(f"[{time.monotonic() - begun_s:.0f} s] exit {code}, {made} runs", flush=True)
        if made == before:  # finished, or it cannot go on
            return code
    subprocess.run([*assay, "status", "--folder", str(asked.folder)], check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
