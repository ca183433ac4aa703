"""Ways of computing a model's experts side by side on one GPU: `python -m benchmarks.gpu.lab [--model M] --out FOLDER`.

Writes one file of JSON lines (`lab-MODEL-DTYPE.jsonl`), which `benchmarks/gpu/tables.py` shows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.gpu import running

from assay import models
from assay.lab.jobs import IMPLEMENTATIONS, LAB_PROGRAM, lab_job
from assay.lab.shapes import rank_shape
from assay.records.estimate import Layout, Routing

LAYOUTS = {
    "tp1": Layout(),
    "tp8": Layout(tp=8),
    "ep8": Layout(tp=8, ep=8),
    "tp2": Layout(tp=2),
    "ep2": Layout(tp=2, ep=2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="glm-5")
    parser.add_argument("--layouts", default="tp8,ep8", help=f"of {', '.join(LAYOUTS)}")
    parser.add_argument("--dtype", choices=["bf16", "fp8"])
    parser.add_argument("--tokens", default="1,8,64,256,1024,2048,2,4,16,32,128,512")
    parser.add_argument("--implementations", default=",".join(IMPLEMENTATIONS))
    parser.add_argument("--exponent", type=float, default=0.0, help="of Zipf; 0: uniform routing")
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    model = models.load(options.model)
    shapes = [rank_shape(model, LAYOUTS[name], options.dtype) for name in options.layouts.split(",")]
    routing = Routing(law="zipf", exponent=options.exponent) if options.exponent else Routing()
    tokens = [int(each) for each in options.tokens.split(",")]
    job = lab_job(shapes, tokens, routing, options.seconds, options.implementations.split(","))
    name = f"lab-{options.model}-{shapes[0].dtype}.jsonl"
    rows = running.program(LAB_PROGRAM, job, options.out / name, options.seconds + 60)
    for row in rows:
        if row["kind"] == "point" and "time_s" in row:
            sure = "" if row["correct"] else f" WRONG, error {row['error']:.1e}"
            print(f"{row['layout']} {row['tokens']:5} {row['implementation']:17} {row['time_s'] * 1e6:9.1f} us{sure}")
    for text in sorted({f"{row['implementation']}: {row['problem']}" for row in rows if "problem" in row}):
        print(f"not measured: {text}")


if __name__ == "__main__":
    main()
