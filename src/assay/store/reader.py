"""The record read without SQLAlchemy: `assay status` should not pay for an import it does not need.

Also the one place where a SQLite record is opened for reading, and where SQLite's errors are put into words.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pydantic import ValidationError

from assay.errors import RecordError
from assay.records.event import Event
from assay.store.disk import HINT_FORBIDDEN, HINT_FULL, HINT_OTHER
from assay.store.lock import is_locked

BUSY_TIMEOUT_S = 10.0

# As bytes, because one damaged text would otherwise fail the whole query without naming its event.
_QUERY = "SELECT seq, at_ns, kind, CAST(payload AS BLOB), previous_hash, hash FROM events WHERE seq > ? ORDER BY seq"
_BEFORE_THE_FIRST = -(2**63)
_HINT_DAMAGED = "keep the file as it is and restore the folder from a copy; files under runs/ are not affected"
_EXPLANATIONS = {
    "SQLITE_FULL": ("the disk is full", HINT_FULL),
    "SQLITE_IOERR": ("the disk did not take or give the data (full, a size limit, or broken)", HINT_FULL),
    "SQLITE_READONLY": ("it cannot be written here", HINT_FORBIDDEN),
    "SQLITE_PERM": ("it cannot be opened by this user", HINT_FORBIDDEN),
    "SQLITE_CANTOPEN": ("it, or a file beside it, cannot be opened", HINT_FORBIDDEN),
    "SQLITE_BUSY": ("another process holds it locked", "let that process finish, then run the same command again"),
    "SQLITE_LOCKED": ("another connection holds it locked", "let it finish, then run the same command again"),
    "SQLITE_CORRUPT": ("the file is damaged", _HINT_DAMAGED),
    "SQLITE_NOTADB": ("the file is not a database", _HINT_DAMAGED),
    "SQLITE_CONSTRAINT": ("the journal refuses the change", "events can only be appended; run `assay verify`"),
}


class RawEvent(NamedTuple):
    """A row of the journal as it lies on disk, before any belief in it."""

    seq: int
    at_ns: int
    kind: str
    payload: str
    previous_hash: str
    hash: str


def read_events(path: Path, after: int = 0) -> list[Event]:
    """Read the events of a record, in order, from the one after number `after`.

    Raises:
        RecordError: there is no record, or it or one of its events cannot be read.
    """
    return [parse(row) for row in _rows(path, after)]


def read_raw(path: Path) -> list[RawEvent]:
    """Read every row of a record as it is; bytes that are no text become replacement characters.

    Raises:
        RecordError: there is no record, or its file is damaged.
    """
    return _rows(path, _BEFORE_THE_FIRST)


def parse(row: RawEvent) -> Event:
    """Make an event of a row.

    Raises:
        RecordError: the row is not an event; names it.
    """
    try:
        return Event.model_validate({**row._asdict(), "payload": json.loads(row.payload)})
    except (ValidationError, ValueError) as error:
        raise RecordError(
            f"event {row.seq} ({row.kind}) cannot be read: {error}", hint="run `assay verify` to see what is damaged"
        ) from error


def connect_to_read(path: Path, busy_timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """Open a record read-only; as an immutable file when nobody can be writing.

    A database in WAL mode wants files beside it even for reading. An immutable one does not: that is what lets a record
    be read from a read-only folder, and keeps a git checkout clean.
    """
    log = path.with_name(path.name + "-wal")
    in_use = (log.exists() and log.stat().st_size > 0) or is_locked(path.parent)
    return connect(path, "mode=ro" if in_use else "mode=ro&immutable=1", busy_timeout_s)


def connect(path: Path, mode: str, busy_timeout_s: float) -> sqlite3.Connection:
    """Open a database file in a SQLite URI mode; transactions are begun by whoever uses it."""
    address = f"file:{quote(os.fspath(path.absolute()))}?{mode}"
    return sqlite3.connect(address, uri=True, timeout=busy_timeout_s, isolation_level=None)


def explain(error: BaseException, path: Path, action: str) -> RecordError:
    """Say what a database error means for the record, and what to do about it."""
    name = getattr(error, "sqlite_errorname", None) or ""
    for prefix, (meaning, hint) in _EXPLANATIONS.items():
        if name.startswith(prefix):
            return RecordError(f"{path}: cannot {action} the record: {meaning} ({error})", hint=hint)
    return RecordError(f"{path}: cannot {action} the record: {error}", hint=HINT_OTHER)


def require_file(path: Path) -> None:
    """Refuse a path at which there is no file.

    Raises:
        RecordError: there is none.
    """
    if not path.is_file():
        raise RecordError(f"{path}: there is no record here", hint="start a campaign with `assay plan` or `assay demo`")


def no_journal(path: Path) -> RecordError:
    """The error for a database without an events table."""
    return RecordError(
        f"{path}: the file holds no journal: it was emptied, or its creation was interrupted",
        hint="restore it from a copy; for a campaign that never ran, remove the file and run `assay plan`",
    )


def _rows(path: Path, after: int) -> list[RawEvent]:
    require_file(path)
    try:
        with closing(connect_to_read(path)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone():
                raise no_journal(path)
            rows = connection.execute(_QUERY, (after,)).fetchall()
    except sqlite3.Error as error:
        raise explain(error, path, "read") from error
    return [
        RawEvent(seq, at, kind, bytes(payload or b"").decode(errors="replace"), *hashes)
        for seq, at, kind, payload, *hashes in rows
    ]
