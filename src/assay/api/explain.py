"""The verb that reads a server's log and says why it failed: explain."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from assay.api.explain_files import BROKEN, HINT, STDIN, is_no_text, opened, refuse
from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.records.failure import Explanation

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
JUDGED_BYTES = 8192
"""Of the beginning, by which text is told from a program or weights."""
LONGEST_BYTES = 65_536
"""Of one line; what follows in the same line is read and dropped, so that a line without an end costs no memory."""


def explain(files: Sequence[Path], exit_code: int | None = None) -> Explanation:
    """Stage, cause, the line to quote, what to do, and what it implies for arms that were not tried.

    Args:
        files: the logs of one failure, for example stdout and stderr, plain or of gzip; `-` is standard input.
        exit_code: of the server, if known; negative or above 128: ended by that signal.

    Raises:
        UsageError: no file was named, one cannot be read, or none holds text.
    """
    from assay.failures import Log
    from assay.failures import explain as classify

    if not files:
        raise UsageError("no log was named", hint="assay explain server.log, or - for standard input")
    for file in files:
        refuse(file)
    cut: dict[str, str] = {}
    try:
        found = classify([Log(_name(file), _lines(file, cut)) for file in files], exit_code)
    except OSError as error:
        raise UsageError(f"{error.filename or 'a log'} cannot be read: {error.strerror}", hint=HINT) from error
    told = [f"{name} {why}" for name, why in cut.items()]
    if told and not found.num_lines:
        raise UsageError("; ".join(told), hint=HINT)
    return _without_secrets(found.model_copy(update={"notes": [*found.notes, *told]}))


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


def _name(file: Path) -> str:
    return STDIN_NAME if file == STDIN else str(file)


def _lines(file: Path, cut: dict[str, str]) -> Iterator[str]:
    """The lines of a file; why it ends before its end is added to `cut` by its name.

    Raises:
        UsageError: it holds no text, or is packed by another program than gzip.
    """
    with opened(file) as stream:
        try:
            yield from _lines_of(stream, _name(file))
        except BROKEN as error:
            cut[_name(file)] = f"is damaged or was cut, and was read up to there ({error})"


def _lines_of(stream: BinaryIO, name: str) -> Iterator[str]:
    """Each line is decoded alone: a broken byte spoils one character, and the rest is read."""
    begin: list[bytes] = []
    with suppress(*BROKEN):  # told when it is read on
        while sum(map(len, begin)) < JUDGED_BYTES and (line := stream.readline(LONGEST_BYTES)):
            begin.append(line)
    if encoding := _wide_encoding(begin[0] if begin else b""):
        yield from _wide_lines(b"".join(begin), stream, encoding)
        return
    if is_no_text(b"".join(begin)):
        raise UsageError(f"{name} is no text", hint=HINT)
    for line in chain(begin, iter(lambda: stream.readline(LONGEST_BYTES), b"")):
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
