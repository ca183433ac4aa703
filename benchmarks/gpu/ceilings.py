"""What GPUs can do at most, measured: `python benchmarks/gpu/ceilings.py [--facts FILE] [--out FILE] [INDEX]`.

Prints a table; `--facts FILE` writes what `assay estimate --measured FILE` reads, `--out FILE` everything, after every
part. Needs PyTorch with CUDA; with two GPUs or more, the links between them are measured, too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

SCALES = {"bytes/s": (1e9, "GB/s"), "flop/s": (1e12, "TFLOP/s"), "s": (1e-6, "us")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", default="120")
    parser.add_argument("index", nargs="?", default="0")
    options = parser.parse_args()
    argv = [sys.executable, "-m", "assay.probes.ceilings.gpu_program", options.index, "--seconds", options.seconds]
    argv += ["--out", str(options.out)] if options.out else []
    found = json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])
    if "problem" in found:
        sys.exit(found["problem"])
    if options.facts:
        options.facts.write_text(json.dumps({"facts": found["facts"], "curves": found["curves"]}, indent=1))
    print(found["about"], end="\n\n")
    print("| quantity | median | least | most | passes | cache | check |\n|---|---:|---:|---:|---:|---|---|")
    for one in found["readings"]:
        scale, unit = SCALES[one["unit"]]
        values = [value / scale for value in one["samples"]]
        told = " | ".join(f"{value:,.2f}" for value in (statistics.median(values), min(values), max(values)))
        good = one["check"] if one["correct"] else f"WRONG: {one['check']}"
        size = one.get("footprint_bytes", one.get("message_bytes"))
        where = "".join(
            [f" {one['algorithm']}" if "algorithm" in one else "", f" {size / 1024:,.0f} KiB" if size else ""]
        )
        print(f"| {one['name']}{where}, {unit} | {told} | {len(values)} | {one['cache']} | {good} |")
    for name, problem in found["problems"].items():
        print(f"\nnot measured: {name}: {problem}")


if __name__ == "__main__":
    main()
