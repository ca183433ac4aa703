"""Measured ceilings, kept for the next time: one file a machine in Assay's cache folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay.records.ceilings import Ceilings, Measurement

FOLDER = "ceilings-2"
"""Another number when what is measured changes: 2 reads plain weights from a mapped file."""

CUT_SHORT = frozenset({"no time was left for it", "the program ended before it"})
"""What a program says of a part that time ran out for (`gpu_program`)."""
MOST_TRIES = 2
"""Calls after which a record that time cuts short again and again is taken as it is."""


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


def cut_parts(record: Mapping[str, Any]) -> list[str]:
    """Parts of a program's record that time ran out for, while it is worth trying them once more."""
    if int(record.get("tries", 1)) >= MOST_TRIES:
        return []
    return [part for part, why in (record.get("problems") or {}).items() if str(why) in CUT_SHORT]


def joined(known: Mapping[str, Any], fresh: Mapping[str, Any] | None) -> dict[str, Any]:
    """A record that was cut short and what one more call measured (None: nothing); the fresh where there are both."""
    tries = int(known.get("tries", 1)) + 1
    if fresh is None:
        return {**known, "tries": tries}
    curves = {_link(one): one for record in (known, fresh) for one in record.get("curves", [])}
    before = known.get("problems") or {}
    open_parts = {
        part: why for part, why in (fresh.get("problems") or {}).items() if str(why) not in CUT_SHORT or part in before
    }
    return {
        **fresh,
        "facts": {**known.get("facts", {}), **fresh.get("facts", {})},
        "curves": list(curves.values()),
        "readings": [*known.get("readings", []), *fresh.get("readings", [])],
        "problems": open_parts,
        "tries": tries,
    }


def _link(curve: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a curve is of."""
    return curve["collective"], curve["world"], curve.get("algorithm")


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
