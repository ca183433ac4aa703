"""A workload's file: read once, hashed as it passes; errors say where, what was found and what was expected."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from assay.errors import UsageError

MAX_TOKENS = 10_000_000
"""No length above this is believed."""
MAX_S = 1e12
"""No instant beyond this is believed (thirty thousand years): differences stay exact to a tenth of a millisecond."""
SHOWN = 60
"""Characters of a wrong value that an error shows."""


class HashedFile:
    """A file that is read once, from front to end."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Of all that was read."""
        return self._digest.hexdigest()

    def lines(self) -> Iterator[tuple[int, str]]:
        """Its lines but the blank ones, numbered from 1, without their ends.

        Raises:
            UsageError: it cannot be read, or is not UTF-8.
        """
        try:
            with Path(self.path).open("rb") as stream:
                for number, line in enumerate(stream, 1):
                    self._digest.update(line)
                    text = self._decoded(line, number)
                    if text.strip():
                        yield number, text.rstrip("\r\n")
        except (OSError, ValueError) as error:
            raise unreadable(self.path, error) from error

    def content(self) -> str:
        """All of it.

        Raises:
            UsageError: it cannot be read, or is not UTF-8.
        """
        try:
            content = Path(self.path).read_bytes()
        except (OSError, ValueError) as error:
            raise unreadable(self.path, error) from error
        self._digest.update(content)
        return self._decoded(content, 1)

    def _decoded(self, content: bytes, number: int) -> str:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = number + content.count(b"\n", 0, error.start)
            raise UsageError(
                f"{self.path}, line {line}: found the byte 0x{content[error.start]:02x}, expected UTF-8 text",
                hint="convert the file to UTF-8; is it compressed, or not a text file?",
            ) from error
        return text.removeprefix("\ufeff") if number == 1 else text


def check_not_empty(path: str, num_requests: int, skipped: Mapping[str, int], expected: str) -> None:
    """Refuse a file that holds nothing to send.

    Raises:
        UsageError: this is one.
    """
    if not num_requests:
        why = "; ".join(f"{number} left out: {reason}" for reason, number in skipped.items())
        raise UsageError(
            f"{path}: found no request that could be sent{f' ({why})' if why else ''}, expected one at least",
            hint=f"a good one is {expected}",
        )


def malformed(path: str, place: str, found: str, expected: str, example: str) -> UsageError:
    """The error of a file that does not hold what it should."""
    return UsageError(f"{path}, {place}: found {found}, expected {expected}", hint=f"a good one is {example}")


def unreadable(path: str, error: Exception) -> UsageError:
    """The error of a file that cannot be read at all."""
    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    return UsageError(f"{path!r} cannot be read: {reason}", hint="check the path and its permissions")


def shown(value: Any) -> str:
    """A wrong value, short enough for a message."""
    if isinstance(value, dict):
        return f"an object of {len(value)} keys"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, float) and not math.isfinite(value):
        return "a number too large"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
