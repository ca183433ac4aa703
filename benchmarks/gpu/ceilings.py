"""What GPUs can do at most, measured: `python -m benchmarks.gpu.ceilings [--facts FILE] [--out FILE] [INDEX]`.

Prints the table of docs/gpu.md; `--facts FILE` writes what `assay estimate --measured FILE` reads, `--out FILE`
everything, after every part. Needs PyTorch with CUDA; with two GPUs or more, the links between them are measured, too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.gpu.moe_tables import write
from benchmarks.gpu.tables import ceilings_table


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
        write(options.facts, {"facts": found["facts"], "curves": found["curves"]})
    print("\n".join(ceilings_table(found)))


if __name__ == "__main__":
    main()
