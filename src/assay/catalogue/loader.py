"""Reading the catalogue: folders of entries, one TOML file an optimization."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.catalogue.entry_file import Entry, EntryFile, read_entry
from assay.errors import UsageError

__all__ = ["Entry", "EntryFile", "builtin_folder", "load", "load_files", "null_folder"]

DATA = Path(__file__).parent.parent / "data"


def builtin_folder() -> Path:
    """Assay's own entries."""
    return DATA / "optimizations"


def null_folder() -> Path:
    """Flags set to their defaults: a sound judge adopts none of them."""
    return DATA / "optimizations_null"


def load(folders: Sequence[Path], engine: str) -> list[Entry]:
    """Read every entry that speaks of an engine.

    Raises:
        UsageError: an entry is broken, or two have the same id (`override = true` in the later one allows that).
    """
    return [one.engines[engine] for one in load_files(folders) if engine in one.engines]


def load_files(folders: Sequence[Path]) -> list[EntryFile]:
    """Read every entry, for every engine.

    Raises:
        UsageError: as `load`.
    """
    found: dict[str, EntryFile] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"there is no catalogue folder {folder}", hint="check policy.catalogue in assay.toml")
        for path in sorted(folder.glob("*.toml")):
            entry = read_entry(path)
            known = found.get(entry.id)
            if known and not entry.override:
                raise UsageError(
                    f"{path} and {known.path} both define {entry.id!r}",
                    hint="rename one, or set `override = true` in yours",
                )
            found[entry.id] = entry
    return list(found.values())
