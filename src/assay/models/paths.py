"""Paths that a person wrote: in a command, in assay.toml, at a question.

>>> user_path("models/tiny.gguf").as_posix()
'models/tiny.gguf'
"""

from __future__ import annotations

from pathlib import Path

from assay.errors import UsageError


def user_path(text: str) -> Path:
    """The path, with the home folder in place of `~` and of `~somebody`.

    Raises:
        UsageError: nobody of that name has a home folder on this machine.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        owner = text.partition("/")[0]
        raise UsageError(
            f"{text}: nobody on this machine has the home folder {owner}", hint="write the path out, from / on"
        ) from error
