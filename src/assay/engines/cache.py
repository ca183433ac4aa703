"""Assay's cache folder: things that can be made again, keyed by what they were made from."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

KEPT = 50
"""Entries of one file; the oldest go first."""


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/assay`, or `~/.cache/assay`; made when absent."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assay"
    root.mkdir(parents=True, exist_ok=True)
    return root


def file_stamp(path: Path) -> str:
    """Changes when the file does: its path, size and modification time."""
    status = path.stat()
    return f"{path.resolve()}:{status.st_size}:{status.st_mtime_ns}"


def remembered(name: str, stamp: str) -> Any | None:
    """What was remembered under this stamp; None when nothing is, or it cannot be read."""
    try:
        content = json.loads((cache_folder() / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content.get(stamp) if isinstance(content, dict) else None


def remember(name: str, stamp: str, value: Any) -> None:
    """Remember a value; a cache that cannot be written is no error."""
    try:
        path = cache_folder() / name
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            target = Path(scratch) / name
            target.write_text(json.dumps({**_newest(path), stamp: value}), encoding="utf-8")
            target.replace(path)
    except OSError:
        return


def _newest(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(list(content.items())[-KEPT:]) if isinstance(content, dict) else {}
