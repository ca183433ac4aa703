"""Stand-ins for what nobody has built, on one GPU: `python -m benchmarks.gpu.whatif --model M --out FOLDER`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.gpu import running

from assay import models
from assay.lab.jobs import WHATIF_PROGRAM, whatif_job
from assay.records.estimate import Layout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="glm-5")
    parser.add_argument("--tp", type=int, default=8)
    parser.add_argument("--tokens", default="64,256,1024,8")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    tokens = [int(each) for each in options.tokens.split(",")]
    job = whatif_job(models.load(options.model), Layout(tp=options.tp), tokens, options.seconds)
    rows = running.program(WHATIF_PROGRAM, job, options.out / f"whatif-{options.model}.jsonl", options.seconds + 60)
    for row in rows:
        if row["kind"] == "stand-in":
            told = row.get("problem") or f"{row['time_s'] * 1e6:.1f} us ({row['what']})"
            print(f"{row['name']} {row['tokens'] or ''}: {told}")


if __name__ == "__main__":
    main()
