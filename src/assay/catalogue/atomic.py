"""Writing a file so that a reader sees the old text or the new one, never a part."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from assay.errors import RecordError


def write_atomically(path: Path, text: str) -> None:
    """Write a text file by way of a neighbour that replaces it; the permissions of an existing file are kept.

    Raises:
        RecordError: it cannot be written; what was there stays there, and no neighbour is left behind.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with scratch.open("w", encoding="utf-8", newline="") as target:
            target.write(text)
            target.flush()
            os.fsync(target.fileno())
        if path.exists():
            scratch.chmod(stat.S_IMODE(path.stat().st_mode))
        scratch.replace(path)
    except OSError as error:
        raise RecordError(
            f"cannot write {path}: {error}", hint="free disk space, or copy the campaign elsewhere"
        ) from error
    finally:
        _forget(scratch)


def _forget(scratch: Path) -> None:
    try:
        scratch.unlink(missing_ok=True)
    except OSError:
        return  # a folder that cannot be written cannot hold a scratch file either
