"""The models that Assay knows by name: config.json files written from published numbers."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.models.json_file import read_object

FOLDER = Path(__file__).parent.parent / "data" / "models"
NEAR = 5


@cache
def names() -> dict[str, Path]:
    """Every name and alias, in lower case, with its file."""
    found: dict[str, Path] = {}
    for path in sorted(FOLDER.glob("*.json")):
        for name in (path.stem, *read_object(path).get("_aliases", [])):
            found[name.lower()] = path
    return found


def published(path: Path) -> dict[str, Any]:
    """What the publisher says of a model of ours: parameters, active_parameters, source, note."""
    told = read_object(path).get("_published")
    return told if isinstance(told, dict) else {}


def find(name: str) -> Path:
    """The file of a model.

    Raises:
        UsageError: the name is not known; near ones are listed.
    """
    known = names()
    wanted = name.lower()
    if wanted not in known:
        wanted = wanted.rpartition("/")[2]
    if wanted in known:
        return known[wanted]
    near = get_close_matches(wanted, known, n=NEAR, cutoff=0.5) or sorted(
        other for other in known if wanted and wanted in other
    )
    told = f"near it are {', '.join(near[:NEAR])}" if near else "`assay estimate --list` shows them"
    raise UsageError(
        f"{name[:80]!r} is no file and no model that Assay knows",
        hint=f"{told}; or name a folder with config.json, or a GGUF file",
    )
