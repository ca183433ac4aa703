"""Campaigns already played, one JSON line each: a long study goes on where it was stopped."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.verdicts.ours import Cell, Played, Told


class Kept:
    """What was played so far, and where more is written."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._played: dict[str, dict[int, Played]] = defaultdict(dict)
        if path is not None and path.exists():
            for line in _whole_lines(path):
                row = json.loads(line)
                self._played[row["cell"]][row["seed"]] = _read(row["played"])

    def of(self, cell: Cell) -> dict[int, Played]:
        """Campaigns of a cell by seed."""
        return self._played[cell.key]

    def keep(self, cell: Cell, seed: int, played: Played) -> None:
        """One more."""
        self._played[cell.key][seed] = played
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"cell": cell.key, "seed": seed, "played": asdict(played)}) + "\n")


def _whole_lines(path: Path) -> list[str]:
    """Every line; one that was cut off when the study was killed is taken off the file, and played again."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return whole.decode().splitlines()


def _read(row: dict[str, Any]) -> Played:
    told = [Told(**one) for one in row.pop("told")]
    kinds = [(effect, kind) for effect, kind in row.pop("kinds")]
    return Played(**row, kinds=kinds, told=told)
