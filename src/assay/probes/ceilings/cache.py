"""Measured ceilings, kept for the next time: one file a machine in Assay's cache folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from assay.records.ceilings import Ceilings, Measurement

FOLDER = "ceilings"


def remembered(fingerprint: str, library: str | None) -> Ceilings | None:
    """What was measured of this machine before, with these kernels; None when nothing was, or it cannot be read."""
    try:
        found = Ceilings.model_validate_json(_path(fingerprint).read_bytes())
    except (OSError, ValidationError):
        return None
    return found if (found.fingerprint, found.library) == (fingerprint, library) else None


def remember(ceilings: Ceilings) -> None:
    """Keep them, whole or not at all; a cache that cannot be written is no error."""
    path = _path(ceilings.fingerprint)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            target = Path(scratch) / path.name
            target.write_text(ceilings.model_dump_json(), encoding="utf-8")
            target.replace(path)


def merged(known: Ceilings | None, fresh: Ceilings) -> Ceilings:
    """The fresh ones, and of the known ones what was not measured again."""
    by_key = {one.key: one for one in _all(known)} | {one.key: one for one in fresh.measurements}
    return fresh.model_copy(update={"measurements": list(by_key.values())})


def _all(known: Ceilings | None) -> Iterable[Measurement]:
    return known.measurements if known else []


def _path(fingerprint: str) -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "assay" / FOLDER / f"{fingerprint}.json"
