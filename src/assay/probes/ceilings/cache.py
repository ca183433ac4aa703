"""Measured ceilings, kept for the next time: one file a machine in Assay's cache folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from assay.records.ceilings import Ceilings, Measurement

FOLDER = "ceilings-2"
"""Another number when what is measured changes: 2 reads plain weights from a mapped file."""


def path(name: str) -> Path:
    """Where what was measured is kept under a name."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "assay" / FOLDER / f"{name}.json"


def keep(place: Path, text: str) -> None:
    """Whole or not at all; a cache that cannot be written is no error."""
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
            target = Path(scratch) / place.name
            target.write_text(text, encoding="utf-8")
            target.replace(place)


def remembered(fingerprint: str, library: str | None) -> Ceilings | None:
    """What was measured of this machine before, with these kernels; None when nothing was, or it cannot be read."""
    try:
        found = Ceilings.model_validate_json(path(fingerprint).read_bytes())
    except (OSError, ValidationError):
        return None
    return found if (found.fingerprint, found.library) == (fingerprint, library) else None


def remember(ceilings: Ceilings) -> None:
    """Keep them for the next time."""
    keep(path(ceilings.fingerprint), ceilings.model_dump_json())


def merged(known: Ceilings | None, fresh: Ceilings) -> Ceilings:
    """The fresh ones, and of the known ones what was not measured again, or was drowned by others this time."""
    by_key = {one.key: one for one in _all(known)}
    for one in fresh.measurements:
        if one.usable or one.key not in by_key or not by_key[one.key].usable:
            by_key[one.key] = one
    return fresh.model_copy(update={"measurements": list(by_key.values())})


def _all(known: Ceilings | None) -> Iterable[Measurement]:
    return known.measurements if known else []
