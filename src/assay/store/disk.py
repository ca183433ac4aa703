"""Operating-system errors on the campaign folder, said in words that name the next step."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.errors import RecordError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
HINT_FULL = "free some disk space, then run the same command again: it continues where it stopped"
HINT_FORBIDDEN = "make the campaign folder writable for this user, or copy it to a place that is"
HINT_UNREADABLE = "make it readable for this user (its permissions, or its owner), or read a copy that is"
HINT_OTHER = "look at the disk and the path, then run the same command again: it continues where it stopped"


def disk_error(error: OSError, path: Path, action: str) -> RecordError:
    """Translate an error of the file system.

    Args:
        error: what the system said.
        path: the file or folder that was wanted.
        action: "write", "read" or "lock".
    """
    target = f"{path}: cannot {action} it: {error.strerror or error}"
    if error.errno in FULL:
        return RecordError(f"{target}; the disk is full or a size limit is reached", hint=HINT_FULL)
    if error.errno in FORBIDDEN:
        return RecordError(target, hint=HINT_UNREADABLE if action == "read" else HINT_FORBIDDEN)
    return RecordError(target, hint=HINT_OTHER)


@contextmanager
def disk_errors(path: Path, action: str) -> Iterator[None]:
    """Turn every OSError of the block into a RecordError about `path`."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, path, action) from error
