"""Reading what other people measured: one TOML file a source, each with one or more tables.

A table's points are written as `columns` and `rows`, or one by one as `points`; `every` holds what all of them share.
The keys are those of `assay.records.published.PublishedTable`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay.errors import UsageError
from assay.records.published import PublishedTable

DATA = Path(__file__).parent.parent / "data" / "published"


def load_published(extra: Path | None = None) -> dict[str, PublishedTable]:
    """Every table by its id: our data, and a file or folder of the caller's beside it.

    Raises:
        UsageError: a file cannot be read, a table is broken, or two have the same id.
    """
    found: dict[str, PublishedTable] = {}
    for path in [*sorted(DATA.glob("*.toml")), *_files(extra)]:
        for table in read_tables(path):
            if table.id in found:
                raise UsageError(f"{path}: the table {table.id!r} is there already", hint="give it another id")
            found[table.id] = table
    return found


def read_tables(path: Path) -> list[PublishedTable]:
    """The tables of one file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint=f"{DATA.name}/*.toml are examples") from error
    return [_table(path, dict(each)) for each in content.get("tables", [])]


def _table(path: Path, content: dict[str, Any]) -> PublishedTable:
    name = content.get("id", "a table without an id")
    try:
        return PublishedTable.model_validate(content | {"points": _points(path, content)})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{path}: {name}: {where}: {first['msg']}", hint="see records/published.py") from error


def _points(path: Path, content: dict[str, Any]) -> list[dict[str, Any]]:
    """Takes the three short forms out of the table."""
    shared = content.pop("every", {})
    columns, rows = content.pop("columns", []), content.pop("rows", [])
    for row in rows:
        if len(row) != len(columns):
            told = f"{path}: {content.get('id')}: row {row} has {len(row)} values for {len(columns)} columns"
            raise UsageError(told, hint="one value for each name in `columns`")
    written = [dict(zip(columns, row, strict=True)) for row in rows]
    return [shared | point for point in [*content.pop("points", []), *written]]


def _files(extra: Path | None) -> list[Path]:
    if extra is None:
        return []
    return sorted(extra.glob("*.toml")) if extra.is_dir() else [extra]
