"""The bytes of a log: what is no file is refused, what gzip packed is unpacked, what is no text is told."""

from __future__ import annotations

import gzip
import io
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from assay.errors import UsageError

STDIN = Path("-")
HINT = "name the file that the server's output went to"
GZIP = b"\x1f\x8b"
PACKED = {
    b"\x28\xb5\x2f\xfd": "zstd -dc",
    b"\xfd7zXZ\x00": "xz -dc",
    b"BZh": "bzip2 -dc",
    b"PK\x03\x04": "unzip -p",
    b"\x04\x22\x4d\x18": "lz4 -dc",
}
"""How such files begin, and what unpacks them. Source: the formats' own specifications (magic numbers)."""
BROKEN = (EOFError, zlib.error, gzip.BadGzipFile)
"""What gzip raises on a file that was cut or damaged."""
_OF_SHELL = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Pipes that a shell opened for this command: `<(kubectl logs ...)`."""
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\r\b\f\x1b"))
_SHARE = 20
"""Text has at most one control code in so many bytes; in programs and weights one of ten and more is one."""
_ENOUGH_BYTES = 64


def refuse(file: Path) -> None:
    """Refuse what cannot be read to an end.

    Raises:
        UsageError: it is not there, a folder, a device, or a pipe that nobody may ever write to.
    """
    if file == STDIN:
        return
    try:
        mode = file.stat().st_mode
    except FileNotFoundError as error:
        raise UsageError(f"{file} does not exist", hint=HINT) from error
    if stat.S_ISDIR(mode):
        raise UsageError(f"{file} is a folder", hint="name the log in it")
    if not stat.S_ISREG(mode) and not (stat.S_ISFIFO(mode) and str(file).startswith(_OF_SHELL)):
        raise UsageError(f"{file} is no regular file", hint="to read a stream: COMMAND | assay explain -")


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """The bytes, unpacked.

    Raises:
        UsageError: they are packed by another program than gzip.
    """
    if file == STDIN:
        yield _unpacked(sys.stdin.buffer, "standard input")
    else:
        with file.open("rb") as stream:
            yield _unpacked(stream, str(file))


def is_no_text(first: bytes) -> bool:
    """Whether bytes are a program, weights or an archive; NULs at the beginning are a log that was cut while open."""
    body = first.lstrip(b"\0")
    return len(body) >= _ENOUGH_BYTES and _SHARE * (len(body) - len(body.translate(None, _CONTROLS))) > len(body)


def _unpacked(stream: BinaryIO, name: str) -> BinaryIO:
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", stream))
    begin = buffered.peek(8)
    if begin.startswith(GZIP):
        return cast("BinaryIO", gzip.GzipFile(fileobj=buffered))
    if how := next((each for mark, each in PACKED.items() if begin.startswith(mark)), None):
        raise UsageError(f"{name} is compressed", hint=f"unpack it: {how} {name} | assay explain -")
    return cast("BinaryIO", buffered)
