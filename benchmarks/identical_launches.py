"""How often `assay compare` finds a difference between two launches of the same command: none is there to be found.

    python benchmarks/identical_launches.py [--times 20] [--side 'embedded --threads 1'] [--folder FOLDER]

Each comparison is one of its own, of as many rounds as `--rounds` says, and prints a line as it ends. A comparison
whose answer is kept is not made again: the same command goes on where it was stopped. Ends with 1 if any side was
called better or worse.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

FALSE = {"better", "worse"}
SILENT = "too few valid runs"
LABELS = ("first", "second")


def compared(folder: Path, side: str, rounds: int, seed: int) -> dict[str, Any]:
    """One comparison of a command with itself, as `assay compare --json` tells it; kept beside its folder."""
    kept = folder.with_suffix(".json")
    if not kept.exists():
        labels = [word for label in LABELS for word in ("--label", label)]
        most = ["--min-rounds", str(min(3, rounds)), "--max-rounds", str(rounds), "--seed", str(seed)]
        argv = [sys.executable, "-m", "assay", "compare", side, side, *labels, *most, "--folder", str(folder), "--json"]
        done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
        if not done.stdout.strip():
            sys.exit(f"{' '.join(argv)} ended with {done.returncode} and said nothing")
        kept.write_bytes(done.stdout)
    found: dict[str, Any] = json.loads(kept.read_bytes())
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="comparisons (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="of each at most (%(default)s)")
    parser.add_argument("--side", default="embedded --threads 1", help="launch command or address (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("identical-launches"), help="(%(default)s)")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    verdicts: Counter[str] = Counter()
    for number in range(1, given.times + 1):
        found = compared(given.folder / f"{number:03d}", given.side, given.rounds, number)
        verdict = found["verdicts"][LABELS[1]] if LABELS[1] in found["effects"] else SILENT
        verdicts[verdict] += 1
        print(f"[{number}/{given.times}] {verdict}: {found['sentences'].get(LABELS[1], '')}", flush=True)
    false, told = sum(verdicts[each] for each in FALSE), given.times - verdicts[SILENT]
    print(f"{false} false verdicts in {told} comparisons that could be judged, of {given.times}: {dict(verdicts)}")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
