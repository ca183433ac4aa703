"""The verb that reads a server's log and says why it failed: explain."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.records.failure import Explanation

STDIN = Path("-")
STDIN_NAME = "stdin"
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
        while line := stream.readline(LONGEST_BYTES):
            is_cut = len(line) == LONGEST_BYTES and not line.endswith(b"\n")
            yield line.decode("utf-8", errors="replace")
            while is_cut and (rest := stream.readline(LONGEST_BYTES)):
                is_cut = not rest.endswith(b"\n")


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    if file == STDIN:
        yield sys.stdin.buffer
    else:
        with file.open("rb") as stream:
            yield stream
