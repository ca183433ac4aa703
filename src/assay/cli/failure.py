"""What an error is told as: a message with the values, the next step, and an exit code."""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NoReturn

import click

from assay.cli.output import say
from assay.errors import AssayError, CheckFailed, RecordError

DEFECT = 70
"""Exit code of an error that Assay did not foresee (EX_SOFTWARE of sysexits.h)."""
INTERRUPTED = 130
BROKEN_PIPE = 141
"""What a shell reports of a program that SIGPIPE ended: 128 + 13."""
CANNOT_WRITE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.EEXIST}


class Interrupted(AssayError):  # noqa: N818 - somebody's wish, not a malfunction
    """Ctrl-C or SIGTERM, with the command that goes on."""

    exit_code: ClassVar[int] = INTERRUPTED

    def __init__(self, command: str) -> None:
        super().__init__("interrupted; nothing recorded is lost", hint=f"`{command}` goes on where this stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What is said of an error, whoever raised it."""

    message: str
    hint: str | None
    exit_code: int


def explain(error: BaseException) -> Trouble:
    """Put any error into words; of one that nobody foresaw, keep the traceback in a file."""
    match error:
        case AssayError():
            return Trouble(message=error.message, hint=error.hint, exit_code=error.exit_code)
        case click.ClickException():
            context = getattr(error, "ctx", None)
            hint = f"see `{context.command_path if context else 'assay'} --help`"
            return Trouble(message=error.format_message(), hint=hint, exit_code=error.exit_code)
        case KeyboardInterrupt() | click.Abort():
            hint = "the same command can be given again"
            return Trouble(message="interrupted; nothing recorded is lost", hint=hint, exit_code=INTERRUPTED)
        case OSError() if error.errno in CANNOT_WRITE and error.filename:
            hint = "name a folder that you can write, with free space, with --folder"
            message = f"cannot write {error.filename}: {error.strerror}"
            return Trouble(message=message, hint=hint, exit_code=RecordError.exit_code)
        case _:
            message = f"{type(error).__name__}: {error}; Assay did not foresee this: it is a defect of ours"
            hint = f"report it with {_keep(error)} and the output of `assay version`; `assay verify` shows that the "
            return Trouble(message=message, hint=hint + "record is whole", exit_code=DEFECT)


def tell(trouble: Trouble, *, as_json: bool) -> None:
    """Say it: as JSON on stdout for programs, as words on stderr for people."""
    if as_json:
        told = {"error": trouble.message, "hint": trouble.hint, "exit_code": trouble.exit_code}
        click.echo(json.dumps(told, indent=2))
        return
    say(f"error: {trouble.message}" + (f"\n\nhint: {trouble.hint}" if trouble.hint else ""))


def fail_check(message: str, *, hint: str, as_json: bool) -> NoReturn:
    """End with exit code 1 after the findings were shown.

    Raises:
        CheckFailed: for people.
        click.exceptions.Exit: for programs.
    """
    fail_after_shown(CheckFailed(message, hint=hint), as_json=as_json)


def fail_after_shown(error: AssayError, *, as_json: bool) -> NoReturn:
    """End with an error's exit code after the findings: as JSON they are the answer, and stay the only document.

    Raises:
        AssayError: this one, for people.
        click.exceptions.Exit: for programs.
    """
    if as_json:
        raise click.exceptions.Exit(error.exit_code)
    raise error


def _keep(error: BaseException) -> str:
    """Write the traceback to a file (it holds code lines, no values) and return the file's path."""
    import tempfile
    import traceback

    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", prefix="assay-defect-", suffix=".txt", delete=False
        ) as file:
            file.write(text)
    except OSError:  # no room for a file: stderr is what is left
        say(text)
        return "the traceback above"
    return str(Path(file.name))
