"""The verb that reads a server's log and says why it failed: explain."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.records.failure import Explanation

STDIN = Path("-")
STDIN_NAME = "stdin"
WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""How a file begins that is not UTF-8, the longer mark first: one begins with the other."""
WIDE_NULS = 4
"""Of so many bytes of a wide text at least one is NUL: in UTF-16, every second one of what is written in ASCII."""
LONGEST_BYTES = 65_536
"""Of one line; what follows in the same line is read and dropped, so that a line without an end costs no memory."""


def explain(files: Sequence[Path], exit_code: int | None = None) -> Explanation:
    """Stage, cause, the line to quote, what to do, and what it implies for arms that were not tried.

    Args:
        files: the logs of one failure, for example stdout and stderr; `-` is standard input.
        exit_code: of the server, if known; negative or above 128: ended by that signal.

    Raises:
        UsageError: no file was named, or one cannot be read.
    """
    from assay.failures import Log
    from assay.failures import explain as classify

    if not files:
        raise UsageError("no log was named", hint="assay explain server.log, or - for standard input")
    for file in files:
        _refuse(file)
    try:
        return _without_secrets(classify([Log(_name(file), _lines(file)) for file in files], exit_code))
    except OSError as error:
        raise UsageError(f"{error.filename or 'a log'} cannot be read: {error.strerror}", hint=HINT) from error


def _without_secrets(found: Explanation) -> Explanation:
    """Logs hold the keys that a server was started with, and an explanation is made to be passed on."""
    from assay.records.failure import Explanation
    from assay.store.log_file import mask_values
    from assay.store.redact import redact, secret_values

    told = found.model_dump(mode="json")
    secrets = secret_values(told)

    def without(content: Any) -> Any:
        if isinstance(content, dict):
            return {name: without(item) for name, item in content.items()}
        if isinstance(content, list):
            return [without(item) for item in content]
        return redact(mask_values(content, secrets)) if isinstance(content, str) else content

    return Explanation.model_validate(without(told))


HINT = "name the file that the server's output went to"


def _refuse(file: Path) -> None:
    if file != STDIN and not file.exists():
        raise UsageError(f"{file} does not exist", hint=HINT)
    if file.is_dir():
        raise UsageError(f"{file} is a folder", hint="name the log in it")


def _name(file: Path) -> str:
    return STDIN_NAME if file == STDIN else str(file)


def _lines(file: Path) -> Iterator[str]:
    """The lines of a file, each decoded alone: a broken byte spoils one character, and the rest is read."""
    with _opened(file) as stream:
        first = stream.readline(LONGEST_BYTES)
        if encoding := _wide_encoding(first):
            yield from _wide_lines(first, stream, encoding)
            return
        for line in chain([first] if first else [], iter(lambda: stream.readline(LONGEST_BYTES), b"")):
            is_cut = len(line) == LONGEST_BYTES and not line.endswith(b"\n")
            yield line.decode("utf-8", errors="replace")
            while is_cut and (rest := stream.readline(LONGEST_BYTES)):
                is_cut = not rest.endswith(b"\n")


def _wide_encoding(first: bytes) -> str | None:
    """By the mark at the beginning; the NULs of wide Latin letters tell it from bytes that are no text at all."""
    mark, name = next((each for each in WIDE if first.startswith(each[0])), (b"", ""))
    body = first[len(mark) :]
    return name if mark and (WIDE_NULS * body.count(0) >= len(body) or body == b"\n") else None


def _wide_lines(first: bytes, stream: BinaryIO, encoding: str) -> Iterator[str]:
    """Of a file whose letters are wider than a byte (Windows shells redirect so): the newline's byte ends no line."""
    decoder, text = codecs.getincrementaldecoder(encoding)(errors="replace"), ""
    for part in chain([first], iter(lambda: stream.read(LONGEST_BYTES), b"")):
        *whole, text = (text + decoder.decode(part)).split("\n")
        text = text[:LONGEST_BYTES]
        yield from (f"{line[:LONGEST_BYTES]}\n" for line in whole)
    if text := text + decoder.decode(b"", final=True):
        yield text


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    if file == STDIN:
        yield sys.stdin.buffer
    else:
        with file.open("rb") as stream:
            yield stream
