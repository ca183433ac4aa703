"""What a GPU can do at most, measured: `python benchmarks/gpu/ceilings.py [--facts FILE] [INDEX]`.

Prints a table; `--facts FILE` writes what `assay estimate --measured FILE` reads. Needs PyTorch with CUDA.
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
    parser.add_argument("index", nargs="?", default="0")
    options = parser.parse_args()
    argv = [sys.executable, "-m", "assay.probes.ceilings.gpu_program", options.index]
    found = json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout)
    if "problem" in found:
        sys.exit(found["problem"])
    print(found["about"], end="\n\n")
    print("| quantity | median | least | most | passes | check |\n|---|---:|---:|---:|---:|---|")
    for one in found["readings"]:
        scale, unit = SCALES[one["unit"]]
        values = [value / scale for value in one["samples"]]
        told = " | ".join(f"{value:,.2f}" for value in (statistics.median(values), min(values), max(values)))
        good = one["check"] if one["correct"] else f"WRONG: {one['check']}"
        print(f"| {one['name']}, {unit} | {told} | {len(values)} | {good} |")
    for name, problem in found["problems"].items():
        print(f"\nnot measured: {name}: {problem}")
    if options.facts:
        options.facts.write_text(json.dumps({"facts": found["facts"]}, indent=1))


if __name__ == "__main__":
    main()
