"""Everything that wants a GPU, most important first: `python -m benchmarks.gpu.all --seconds 400 --out FOLDER`.

Each part is a process of its own with a time-out and writes its results as they come; `--parts` chooses. What an engine
offers is measured where the engine can be imported (PYTHONPATH).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.gpu import running

PARTS: dict[str, tuple[float, str]] = {
    "ceilings": (120, "ceilings --facts {out}/facts.json --out {out}/ceilings.json"),
    "lab-glm5": (130, "lab --model glm-5 --out {out}"),
    "tuner": (150, "tuner --model glm-5 --dtype fp8 --out {out}"),
    "whatif": (60, "whatif --model glm-5 --out {out}"),
    "lab-glm5-fp8": (110, "lab --model glm-5 --dtype fp8 --out {out}"),
    "lab-qwen3": (80, "lab --model qwen3-30b-a3b --layouts tp1 --out {out}"),
    "tuner-qwen3": (120, "tuner --model qwen3-30b-a3b --layout tp1 --out {out}"),
    "exhaustive": (420, "tuner --model glm-5 --dtype fp8 --exhaustive 64,1024 --out {out}"),
}
"""Seconds at most, and the script with its arguments."""
GRACE_S = 45.0
"""For starting, importing an engine and compiling, beyond a part's own time."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=400.0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", default="ceilings,lab-glm5,tuner,whatif,lab-glm5-fp8,lab-qwen3,tuner-qwen3")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    until_s = time.monotonic() + options.seconds
    for name in options.parts.split(","):
        most_s, words = PARTS[name]
        left_s = until_s - time.monotonic()
        if left_s < 20:
            print(f"{name}: no time was left for it", flush=True)
            continue
        given_s = max(10.0, min(most_s, left_s - GRACE_S))
        script, *rest = words.format(out=options.out.resolve()).split()
        argv = [sys.executable, "-m", f"benchmarks.gpu.{script}", *rest, "--seconds", f"{given_s:.0f}"]
        log = options.out / f"{name}.txt"
        ended = running.run(argv, log, min(left_s, given_s + 2 * GRACE_S))
        print(f"== {name}: {ended}", flush=True)
        print(log.read_text()[-3000:], flush=True)


if __name__ == "__main__":
    main()
