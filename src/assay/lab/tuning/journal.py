"""What was measured, one line each, so that a tuner that is killed goes on where it was.

The first line names kernel, version, device and shape; measurements under another name are not taken over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from assay.lab.tuning.search import Ask, Told
from assay.lab.tuning.space import Config

Key = tuple[int, tuple[Any, ...], str]


class Journal:
    """Measurements that are kept, and remembered."""

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        """Read what is there; a file of something else is set aside under another name.

        A last line that a kill cut off is dropped: it is measured again.
        """
        self._path = path
        self._known: dict[Key, Told] = {}
        self.kept_away: Path | None = None
        rows = list(_rows(path))
        if path.exists() and path.stat().st_size and (not rows or rows[0].get("identity") != dict(identity)):
            self.kept_away = _free_name(path)
            path.replace(self.kept_away)
            rows = []
        if not rows:
            path.write_text("", encoding="utf-8")
            self._append({"identity": dict(identity)})
            return
        for row in rows[1:]:
            self._known[_key(row)] = Told(time_s=row["time_s"], problem=row.get("problem"))
        _end_last_line(path)

    def __len__(self) -> int:
        return len(self._known)

    def find(self, ask: Ask) -> Told | None:
        """What was measured already; None when it was not."""
        return self._known.get((ask.tokens, astuple(ask.config), ask.effort))

    def add(self, ask: Ask, told: Told, **more: Any) -> None:
        """Keep a measurement: it is on the disk when this returns."""
        row = {
            "tokens": ask.tokens,
            "config": ask.config.as_engine(),
            "effort": ask.effort,
            "time_s": told.time_s,
            "problem": told.problem,
            **more,
        }
        self._append(row)
        self._known[_key(row)] = told

    def _append(self, row: Mapping[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _free_name(path: Path) -> Path:
    """Beside the path, where nothing lies yet: what is set aside must not replace what was set aside before."""
    number = 1
    while (found := path.with_suffix(f".others-{number}{path.suffix}")).exists():
        number += 1
    return found


def _key(row: Mapping[str, Any]) -> Key:
    return int(row["tokens"]), astuple(Config.of(row["config"])), str(row["effort"])


def _rows(path: Path) -> list[dict[str, Any]]:
    """Whole lines; the first damaged one ends what is believed."""
    found: list[dict[str, Any]] = []
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            break
        if not isinstance(row, dict):
            break
        found.append(row)
    return found


def _end_last_line(path: Path) -> None:
    """Cut off what follows the last whole line, so that the next one begins on its own."""
    content = path.read_bytes()
    whole = 0
    for line in content.splitlines(keepends=True):
        try:
            json.loads(line)
        except ValueError:
            break
        if not line.endswith(b"\n"):
            break
        whole += len(line)
    if whole < len(content):
        with path.open("rb+") as file:
            file.truncate(whole)
