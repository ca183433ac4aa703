"""Machines as files: a snapshot that `assay assess --save` wrote, to be analysed at another desk."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from assay.errors import RecordError, UsageError
from assay.records.snapshot import MachineSnapshot
from assay.store.atomic import atomic_write
from assay.store.redact import redact


def write_machine(path: Path, snapshot: MachineSnapshot) -> None:
    """Write it, whole or not at all, without secrets.

    Raises:
        RecordError: it cannot be written there.
    """
    document = redact(snapshot.model_dump(mode="json"))
    try:
        atomic_write(path, (json.dumps(document, indent=2) + "\n").encode())
    except OSError as error:
        raise RecordError(
            f"cannot write {path}: {error.strerror}", hint="name a file in a folder that exists"
        ) from error


def read_machine(path: Path) -> MachineSnapshot:
    """Read one back.

    Raises:
        UsageError: there is no such file, or it is not a machine that this version of Assay can read.
    """
    try:
        return MachineSnapshot.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", hint="`assay assess --save FILE` writes one"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole file"
        found = f", found {first['input']}" if isinstance(first["input"], int | float) else ""
        raise UsageError(
            f"{path} is not a machine that this Assay can read: {where}: {first['msg']}{found}",
            hint="`assay assess --save FILE` writes one; a newer Assay may have written this one",
        ) from error
