"""A whole campaign on a real vLLM without a GPU: model made, planned, measured, judged, reported, its record kept.

    python benchmarks/vllm_cpu_campaign.py --vllm /opt/vllm/bin/python [--folder FOLDER] [--record examples/vllm-cpu]

`--vllm` names a Python that has vLLM's CPU build, torch and transformers. The model (Qwen3-MoE, random weights, about
60 million parameters) is made by `tiny_moe.py`, once. What is tried is the built-in catalogue's tier 1, as far as it
applies to a machine without a GPU, and `vllm_cpu_catalogue`: a flag that the engine takes and does not act on, one that
cannot start here, one that does nothing with one rank. Stopped at any moment, the same command goes on.

Two cores, otherwise quiet: at most half an hour (`--minutes`); a disturbed run is repeated.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from assay import api
from assay.engines.cache import cache_folder
from assay.records.spec import Budget, CampaignSpec, Gates, Objective, Policy, Target, Workload

HERE = Path(__file__).parent
OWN = HERE / "vllm_cpu_catalogue"
BUILTIN = ["cpu-backend-all-cores", "prefix-cache-off", "spec-ngram", "stream-interval"]
KEPT = ("assay.toml", "assay.db", "improvements", "report", "catalogue", "runs")


def spec(model: Path, vllm: str, minutes: float) -> CampaignSpec:
    """The question: the CPU build as its guide starts it, sixteen clients."""
    return CampaignSpec(
        name="vllm-cpu",
        target=Target(
            engine="vllm",
            model=str(model),
            executable=vllm,
            flags={"--enforce-eager": True, "--max-model-len": 1024, "--max-num-seqs": 64},
            env={"VLLM_CPU_KVCACHE_SPACE": "1"},
        ),
        workload=Workload(
            concurrency=16,
            input_tokens=(24, 64),
            output_tokens=(16, 48),
            window_s=3.0,
            windows=3,
            warmup_min_s=2.0,
            warmup_max_s=15.0,
        ),
        objective=Objective(min_effect=0.10),
        budget=Budget(
            total_s=60 * minutes,
            calibration_brackets=2,
            block=2,
            min_brackets=1,
            max_brackets=2,
            composition_brackets=3,
            confirmation_brackets=3,
        ),
        gates=Gates(max_foreign_cores=0.25),
        policy=Policy(only=[*BUILTIN, *sorted(path.stem for path in OWN.glob("*.toml"))], catalogue=["catalogue"]),
    )


def made_model(vllm: str) -> Path:
    """The model, made when it is not there."""
    folder = cache_folder() / "models" / "tiny-moe"
    if not (folder / "config.json").exists():
        subprocess.run([vllm, str(HERE / "tiny_moe.py"), str(folder)], check=True)
    return folder


def prepared(folder: Path, vllm: str, minutes: float) -> None:
    """assay.toml and the campaign's own entries, when they are not there."""
    if not (folder / "assay.toml").exists():
        api.init(folder, spec(made_model(vllm), vllm, minutes))
    shutil.copytree(OWN, folder / "catalogue", dirs_exist_ok=True)


def keep(folder: Path, record: Path) -> None:
    """The record, without what can be made again."""
    record.mkdir(parents=True)
    for name in KEPT:
        source = folder / name
        if source.is_dir():
            shutil.copytree(source, record / name)
        else:
            shutil.copy2(source, record / name)


def main() -> int:
    """Run it and keep its record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vllm", required=True, help="a Python that has vLLM's CPU build")
    parser.add_argument("--folder", type=Path, default=Path("vllm-cpu-campaign"), help="where the campaign goes")
    parser.add_argument("--record", type=Path, help="where to copy the finished record")
    parser.add_argument("--minutes", type=float, default=30.0, help="measuring time of the whole campaign")
    asked = parser.parse_args()
    if asked.record and asked.record.exists():
        parser.error(f"{asked.record} exists already: two records in one folder would be none")
    prepared(asked.folder, asked.vllm, asked.minutes)
    assay = [sys.executable, "-m", "assay"]
    ended = subprocess.run([*assay, "run", "--folder", str(asked.folder)], check=False).returncode
    if ended == 0 and asked.record:
        keep(asked.folder, asked.record)
        ended = subprocess.run([*assay, "verify", "--folder", str(asked.record)], check=False).returncode
    return ended


if __name__ == "__main__":
    sys.exit(main())
