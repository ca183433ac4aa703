"""A server's log before it becomes part of the record: what engines say of keys is masked.

The engine writes its log itself, and says what it was started with: vLLM its arguments, SGLang its whole configuration.
So the file is rewritten once its server is gone, before it is hashed. Lines without a sign of a secret are copied as
they are, byte for byte.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from assay.store.atomic import TEMPORARY_PREFIX
from assay.store.disk import disk_errors
from assay.store.redact import MASK, is_worth_a_look, redact

LONGEST_BYTES = 1 << 20
"""Of one piece: a log without line ends costs no memory."""


def mask_log(path: Path, secrets: Collection[str] = ()) -> bool:
    """Mask secrets in a log file; True: it held some.

    Args:
        path: of the log; nothing is done where there is none.
        secrets: values that are known to be secret, whatever stands around them.

    Raises:
        RecordError: it cannot be read or written.
    """
    if not path.is_file() or not _holds_some(path, secrets):
        return False
    with disk_errors(path, "write"):
        handle, name = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as masked:
                masked.writelines(_masked(piece, secrets) for piece in _pieces(path))
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    return True


def mask_values(text: str, secrets: Collection[str]) -> str:
    """A text without the given values."""
    for value in secrets:
        text = text.replace(value, MASK)
    return text


def _holds_some(path: Path, secrets: Collection[str]) -> bool:
    return any(_masked(piece, secrets) != piece for piece in _pieces(path))


def _masked(piece: bytes, secrets: Collection[str]) -> bytes:
    text = piece.decode("utf-8", errors="surrogateescape")
    masked = mask_values(text, secrets)
    if is_worth_a_look(masked):
        masked = redact(masked)
    return piece if masked == text else masked.encode("utf-8", errors="surrogateescape")


def _pieces(path: Path) -> Iterator[bytes]:
    with disk_errors(path, "read"), path.open("rb") as log:
        while piece := log.readline(LONGEST_BYTES):
            yield piece
