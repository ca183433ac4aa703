"""Devices as data: one TOML file a device, one fact a row; and boxes by name, `8xRTX-PRO-6000`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay.errors import UsageError
from assay.probes.fact_rows import read_fact
from assay.records.device import Box, Device, Fact, LinkCurve, LinkPoint

DATA = Path(__file__).parent.parent / "data" / "devices"
HINT = "src/assay/data/devices of the installed package holds examples: one [[facts]] table a fact"
KEYS = frozenset({"id", "name", "kind", "aliases", "link", "facts", "curves"})
MAX_DEVICES = 1024
"""More than this in one box is a typing error."""
_COUNTED = re.compile(r"^\s*(?P<count>\d+)\s*(?:x|X|\u00d7|\*)\s*(?P<name>\S.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What one file says: a device, and the curves measured between several of it."""

    device: Device
    curves: tuple[LinkCurve, ...] = ()


def load_devices(extra: Path | None = None) -> dict[str, Device]:
    """Every known device by its id.

    Args:
        extra: a folder of more files; one with a built-in id replaces the built-in device.

    Raises:
        UsageError: the folder is missing, or a file is broken.
    """
    return {key: known.device for key, known in _known(extra).items()}


def box(text: str, extra: Path | None = None) -> Box:
    """The box that a text names: `8xRTX-PRO-6000`, `8 x h200`, `2xH100-SXM`, `h200` (one).

    Case, spaces and punctuation do not matter; a name is an id, an alias, or the device's full name.

    Raises:
        UsageError: no such device, or an impossible count.
    """
    count, name = _split(text)
    known = _known(extra)
    found = known.get(_spellings(known).get(_plain(name), ""))
    if found is None:
        raise UsageError(f"no device is called {name!r}", hint=_suggestion(name, known))
    curves = [curve for curve in found.curves if curve.world <= count]
    return Box(device=found.device, count=count, curves=curves)


def _split(text: str) -> tuple[int, str]:
    counted = _COUNTED.match(text)
    count, name = (int(counted["count"]), counted["name"].strip()) if counted else (1, text.strip())
    if not name:
        raise UsageError("a box has a device: there is none in an empty text", hint="such as 8xRTX-PRO-6000 or h200")
    if not 1 <= count <= MAX_DEVICES:
        raise UsageError(f"{text!r} asks for {count} devices", hint=f"1 to {MAX_DEVICES}, such as 8x{name}")
    return count, name


def _plain(name: str) -> str:
    """A name as it is compared: letters and digits only, no maker."""
    return re.sub(r"[^a-z0-9]", "", name.lower()).removeprefix("nvidia").removeprefix("amd")


def _spellings(known: dict[str, Known]) -> dict[str, str]:
    """Every spelling, as it is compared, to the id."""
    found: dict[str, str] = {}
    for key, one in known.items():
        for name in (key, one.device.name, *one.device.aliases):
            found.setdefault(_plain(name), key)
    return found


def _suggestion(name: str, known: dict[str, Known]) -> str:
    spellings = _spellings(known)
    asked = _plain(name)
    near = get_close_matches(asked, list(spellings), n=3, cutoff=0.5)
    near += [plain for plain in spellings if len(asked) > 2 and (asked in plain or plain in asked)]  # noqa: PLR2004
    ids = list(dict.fromkeys(spellings[plain] for plain in near))[:4]
    if ids:
        return f"did you mean {' or '.join(ids)}? Known: {', '.join(sorted(known))}"
    if asked == "cpu":
        return "`assay characterize --model MODEL --on cpu` measures this machine's processors and estimates with them"
    return f"known: {', '.join(sorted(known))}; --devices FOLDER adds those of its TOML files"


def _known(extra: Path | None) -> dict[str, Known]:
    if extra is None:
        return _built_in()
    if not extra.is_dir():
        raise UsageError(f"there is no folder of devices {extra}", hint="name a folder with <id>.toml files")
    return {**_built_in(), **dict(_read_folder(extra))}


@lru_cache(maxsize=1)
def _built_in() -> dict[str, Known]:
    return dict(_read_folder(DATA))


def _read_folder(folder: Path) -> Iterator[tuple[str, Known]]:
    for path in sorted(folder.glob("*.toml")):
        known = read(path)
        yield known.device.id, known


def read(path: Path) -> Known:
    """One file.

    Raises:
        UsageError: it is no TOML, lacks a key, has one that means nothing, or holds a value of the wrong kind or unit.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint=HINT) from error
    unknown = [key for key in content if key not in KEYS]
    if unknown:
        raise UsageError(f"{path}: {unknown[0]} is no key of a device", hint=f"the keys are {', '.join(sorted(KEYS))}")
    try:
        curves = tuple(_curve(row) for row in content.pop("curves", []))
        facts = _facts(path, content.pop("facts", []))
        return Known(device=Device.model_validate({**content, "facts": facts}), curves=curves)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{path}: {place}: {first['msg']}", hint=HINT) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: a [[facts]] or [[curves]] row is malformed: {error!r}", hint=HINT) from error


def _facts(path: Path, rows: list[dict[str, Any]]) -> dict[str, list[Fact]]:
    facts: dict[str, list[Fact]] = {}
    for row in rows:
        rest = {key: value for key, value in row.items() if key != "name"}
        facts.setdefault(row["name"], []).append(read_fact(path, row["name"], rest, HINT))
    return facts


def _curve(row: dict[str, Any]) -> LinkCurve:
    points = [LinkPoint(message_bytes=size, time_s=time) for size, time in row.get("points", [])]
    ascending = sorted(points, key=lambda point: point.message_bytes)
    return LinkCurve.model_validate({**row, "points": ascending})
