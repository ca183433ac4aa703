"""What this process may have: open files, locked memory, shared memory."""

from __future__ import annotations

import os
import sys

from assay.records.snapshot import Limits

if sys.platform != "win32":
    import resource


def read_limits(shm: str = "/dev/shm") -> Limits:  # noqa: S108 - its size is read, nothing is written there
    """Read them now."""
    if sys.platform == "win32":
        return Limits(unknown=["open_files", "locked_bytes", "shm_bytes"])
    open_files, open_files_hard = map(_finite, resource.getrlimit(resource.RLIMIT_NOFILE))
    locked_bytes, _ = map(_finite, resource.getrlimit(resource.RLIMIT_MEMLOCK))
    size = _size(shm)
    return Limits(
        open_files=open_files,
        open_files_hard=open_files_hard,
        locked_bytes=locked_bytes,
        shm_bytes=size[0] if size else None,
        shm_free_bytes=size[1] if size else None,
        unknown=[] if size else ["shm_bytes"],
    )


def _finite(limit: int) -> int | None:
    return None if limit == resource.RLIM_INFINITY else limit


def _size(folder: str) -> tuple[int, int] | None:
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail
