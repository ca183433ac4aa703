"""Files that are either whole or absent."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

TEMPORARY_PREFIX = ".partial-"
"""Begins the name of a file that is still being written; what a kill leaves behind is recognized by it."""


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file through a temporary one beside it: fsync, rename, fsync of the folder.

    Raises:
        OSError: it could not be written; the previous file, if any, is as it was.
    """
    descriptor, name = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: a file's own fsync does not cover its name."""
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    """The process's mask, readable only by setting it: mkstemp makes files private, and colleagues read these."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
