"""One writer per campaign folder: a lock that the operating system drops when its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.errors import UsageError
from assay.store.disk import disk_errors

LOCK_NAME = "assay.lock"


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Be the only `assay run` on this folder while the block runs.

    The file stays: removing it would let two processes lock two files of the same name.

    Raises:
        UsageError: another process holds the lock; names it.
        RecordError: the lock file cannot be made here.
    """
    path = folder / LOCK_NAME
    with disk_errors(path, "lock"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _acquire(descriptor, folder)
        with disk_errors(path, "write"):
            _write_holder(descriptor, f"{os.getpid()}\n")
        yield
        _write_holder(descriptor, "")
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Whether a process holds the writer lock of this folder right now."""
    try:
        descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _acquire(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        who = f"process {holder}" if holder else "another process"
        raise UsageError(
            f"{folder}: {who} is already running this campaign",
            hint=f"wait for it (`assay status`), or stop it: `kill {holder or 'PID'}`; both keep what is recorded",
        ) from None


def _write_holder(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
