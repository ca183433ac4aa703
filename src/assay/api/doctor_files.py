"""A file that a launch command names, read where it is on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import UsageError

_MAX_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """What became of it."""

    path: Path | str
    text: str | None = None
    reason: str = ""
    """Why it was not read."""
    is_no_text: bool = False
    """It is here, and nobody could read it as text."""


def text_of(name: str) -> FileText:
    """Read a regular file; whatever keeps it from being read is a reason, no error."""
    from assay.models.paths import user_path

    try:
        path = user_path(name)
    except UsageError as error:
        return FileText(path=name, reason=f"cannot be looked up ({error.message})")
    try:
        if not path.is_file():  # a pipe would be waited for
            return FileText(path=path, reason="is no regular file" if path.exists() else "is not here")
        with path.open(encoding="utf-8") as file:
            text = file.read(_MAX_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        return FileText(path=path, reason=f"is no UTF-8 text (byte {error.start})", is_no_text=True)
    except (OSError, ValueError) as error:  # a path with a null byte is a ValueError
        return FileText(path=path, reason=f"cannot be read: {error}")
    if len(text) > _MAX_CHARACTERS:
        return FileText(path=path, reason=f"is longer than {_MAX_CHARACTERS:,} characters")
    return FileText(path=path, text=text)


def yaml_loader() -> Any:
    """The safe one of libyaml, which reads five times as fast, where it is there."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def yaml_problem(error: Exception) -> str:
    """What a YAML parser stumbled over, on one line."""
    problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark is not None else ""
    return where + " ".join(str(problem or error).split())[:200]
