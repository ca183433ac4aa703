"""NVIDIA Nsight Systems' trace as its `nsys export --type sqlite` writes it.

Source of the tables: Nsight Systems' exporter documentation (SQLite schema): CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY and
_MEMSET with `start`, `end` (nanoseconds) and `deviceId`; names in StringIds.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import numpy as np

from assay.errors import UsageError
from assay.formats.trace_spans import Kernels, summary
from assay.records.attribution import TraceFacts

TABLES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": None,
    "CUPTI_ACTIVITY_KIND_MEMCPY": "memcpy",
    "CUPTI_ACTIVITY_KIND_MEMSET": "memset",
}
"""Table, and the name of its activities; kernels have names of their own."""
NAME_COLUMNS = ("shortName", "demangledName", "mangledName")
MOST_ROWS = 20_000_000
LARGEST_NS = 1 << 62
DAMAGED = "export it again: nsys export --type sqlite --force-overwrite true FILE.nsys-rep"


def read_nsys(path: Path) -> TraceFacts:
    """Where the devices' time went.

    Raises:
        UsageError: it is damaged, another database, too large, or without device activity.
    """
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            kernels = _kernels(connection, path)
            name = _device_name(connection)
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:  # messages may quote damaged bytes
        raise UsageError(f"{path}: the database is damaged or cut short: {error}", hint=DAMAGED) from error
    return summary(kernels, "nsys", str(path), device_name=name)


def _kernels(connection: sqlite3.Connection, path: Path) -> Kernels:
    present = _tables(connection)
    if not present & TABLES.keys():
        raise UsageError(
            f"{path}: this database holds no CUDA activity ({', '.join(sorted(TABLES))})",
            hint="record it with `nsys profile --trace cuda`, then export it as sqlite",
        )
    numbers: dict[object, int] = {}
    rows: list[tuple[int, int, int, int]] = []
    for table, fixed in TABLES.items():
        if table in present:
            rows += _rows(connection, path, table, fixed, numbers)
    strings = _strings(connection) if "StringIds" in present else {}
    names = [strings.get(key, f"kernel {key}") if isinstance(key, int) else str(key) for key in numbers]
    array = np.array(rows, np.int64).reshape(-1, 4)
    return Kernels(array[:, 0], array[:, 1], array[:, 2], array[:, 3], names)


def _rows(
    connection: sqlite3.Connection, path: Path, table: str, fixed: str | None, numbers: dict[object, int]
) -> list[tuple[int, int, int, int]]:
    columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    if not {"start", "end"} <= columns:
        raise UsageError(f"{path}: {table} has no columns start and end", hint=DAMAGED)
    named = next((name for name in NAME_COLUMNS if name in columns), None) if fixed is None else None
    wanted = f"start, end, {'deviceId' if 'deviceId' in columns else '0'}, {named or 'NULL'}"
    query = f"SELECT {wanted} FROM {table} LIMIT {MOST_ROWS + 1}"  # noqa: S608 - names of our own tables
    found = []
    for begin, end, device, key in connection.execute(query):
        good = all(isinstance(value, int) and 0 <= value < LARGEST_NS for value in (begin, end, device))
        if not good:
            raise UsageError(f"{path}: {table}: start, end, deviceId = {begin!r}, {end!r}, {device!r}", hint=DAMAGED)
        label = fixed or (key if isinstance(key, int | str) else "kernel")
        found.append((device, begin, end, numbers.setdefault(label, len(numbers))))
    if len(found) > MOST_ROWS:
        raise UsageError(f"{path}: more than {MOST_ROWS:,} kernels", hint="record fewer steps")
    return found


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _strings(connection: sqlite3.Connection) -> dict[int, str]:
    return {key: str(value) for key, value in connection.execute("SELECT id, value FROM StringIds")}


def _device_name(connection: sqlite3.Connection) -> str:
    """Of the first GPU; an empty text where the export has no such table."""
    try:
        row = connection.execute("SELECT name FROM TARGET_INFO_GPU LIMIT 1").fetchone()
    except sqlite3.Error:
        return ""
    return str(row[0]) if row and row[0] else ""
