"""How often a campaign is wrong, what it finds, what that costs and what its headline is worth, beside other rules.

    python -m benchmarks.verdicts nulls --campaigns 2000 --keep verdicts.jsonl
    python -m benchmarks.verdicts power mix --campaigns 500 --keep verdicts.jsonl --write docs/verdicts.md

Whole campaigns of Assay's own planner in simulated worlds, with its default budget and error rates, beside two rules
that other tools follow. Nothing is launched. Campaigns are kept in the file given with --keep as they come; the same
command goes on where it was stopped, and with --campaigns 0 only the tables are made. They are printed, or put into
their places in a document.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads only wait for each other

from benchmarks.verdicts.kept import Kept
from benchmarks.verdicts.ours import Cell, play
from benchmarks.verdicts.studies import STUDIES
from benchmarks.verdicts.tables import TABLES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"{', '.join(STUDIES)}; absent: all")
    parser.add_argument("--campaigns", type=int, default=50, help="of each cell")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help='cells whose key holds it: "sd=0.01 worth=0.01 normal"'
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop playing then, and make the tables")
    parser.add_argument("--keep", type=Path, help="JSON lines; begin a new file when the planner has changed")
    parser.add_argument("--write", type=Path, help="document with places for the tables")
    asked = parser.parse_args()
    studies = asked.studies or list(STUDIES)
    if unknown := set(studies) - set(STUDIES):
        parser.error(f"no such study: {', '.join(sorted(unknown))}; there are {', '.join(STUDIES)}")
    kept = Kept(asked.keep)
    cells = [cell for study in studies for cell in STUDIES[study]() if asked.only in cell.key]
    simulate(cells, kept, asked.campaigns, time.monotonic() + 60 * asked.minutes)
    for name, (study, make) in TABLES.items():
        if study in studies:
            publish(name, make(kept), asked.write)


def simulate(cells: list[Cell], kept: Kept, campaigns: int, until: float) -> None:
    """Play what is missing, one campaign of every cell after the other, so that an early end leaves equal numbers."""
    if not cells:
        return
    for seed in range(campaigns):
        for cell in cells:
            if seed in kept.of(cell):
                continue
            if time.monotonic() > until:
                return
            kept.keep(cell, seed, play(cell, seed))
        print(f"\r{seed + 1} of {campaigns} campaigns of {len(cells)} cells", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def publish(name: str, text: str, document: Path | None) -> None:
    """Print a table, or put it between its two marks."""
    if document is None:
        print(f"## {name}\n\n{text}\n")
        return
    marked = re.compile(f"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    old = document.read_text(encoding="utf-8")
    if not marked.search(old):
        sys.exit(f"{document} has no place for the table {name}: put <!-- table: {name} --> and <!-- end --> there")
    document.write_text(marked.sub(lambda found: f"{found[1]}{text}\n{found[2]}", old), encoding="utf-8")


if __name__ == "__main__":
    main()
