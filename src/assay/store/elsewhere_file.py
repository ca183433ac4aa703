"""`elsewhere.json` in a campaign's folder: that its documents were planned for another machine, and for which."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from assay.errors import RecordError, UsageError
from assay.records.elsewhere import Elsewhere
from assay.store.atomic import atomic_write
from assay.store.redact import redact

NAME = "elsewhere.json"


def write_elsewhere(folder: Path, elsewhere: Elsewhere) -> None:
    """Write it, whole or not at all; without secrets that the machine's file may hold.

    Raises:
        RecordError: it cannot be written there.
    """
    document = elsewhere.model_dump(mode="json")
    document["snapshot"] = redact(document["snapshot"])
    try:
        atomic_write(folder / NAME, (json.dumps(document, indent=1) + "\n").encode())
    except OSError as error:
        raise RecordError(
            f"cannot write {folder / NAME}: {error.strerror}", hint="name a folder that can be written"
        ) from error


def read_elsewhere(folder: Path) -> Elsewhere | None:
    """Read it back; None where the folder was not planned for another machine.

    Raises:
        UsageError: it is there and cannot be read.
    """
    path = folder / NAME
    try:
        return Elsewhere.model_validate_json(path.read_bytes()) if path.exists() else None
    except (OSError, ValidationError) as error:
        raise UsageError(
            f"{path}: {_why(error)}",
            hint="it says for which machine this folder was planned: name that again, as assay plan --on BOX, and it "
            "is written anew; documents that are there stay, as if you had edited them",
        ) from error


def drop_unreadable(folder: Path) -> None:
    """Take the file away where it cannot be read: what it said is told again."""
    try:
        read_elsewhere(folder)
    except UsageError:
        remove_elsewhere(folder)


def _why(error: OSError | ValidationError) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    first = error.errors()[0]
    place = ".".join(str(step) for step in first["loc"])
    return f"{place} is missing or wrong in it" if place else "this is not JSON; it was cut or edited"


def remove_elsewhere(folder: Path) -> None:
    """The folder has arrived, or is planned anew."""
    (folder / NAME).unlink(missing_ok=True)
