"""The journal of a campaign: hash-chained events in a database, written durably and never changed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, Self

from sqlalchemy import Connection, insert, select

from assay.records.event import GENESIS, Event, EventKind, event_hash
from assay.store.canonical import canonical_json
from assay.store.disk import disk_errors
from assay.store.lock import writer_lock
from assay.store.reader import BUSY_TIMEOUT_S, RawEvent, no_journal, parse, require_file
from assay.store.redact import redact
from assay.store.schema import EVENTS
from assay.store.sqlite import SqliteDialect

_LAST = select(EVENTS.c.seq, EVENTS.c.hash).order_by(EVENTS.c.seq.desc()).limit(1)


class Dialect(Protocol):
    """What the record needs of a database beyond SQL; both raise RecordError in place of the driver's errors."""

    def writing(self) -> AbstractContextManager[Connection]:
        """Hold one exclusive transaction, durable when the block ends without an error."""

    def reading(self) -> AbstractContextManager[Connection]:
        """Hold one consistent view."""


class SqlRecord:
    """The record on any database that SQLAlchemy speaks to."""

    def __init__(self, dialect: Dialect, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self.dialect = dialect
        self._clock_ns = clock_ns

    def append(self, kind: EventKind, payload: dict[str, Any]) -> Event:
        """Write one event, secrets masked; returns after it is on disk.

        Raises:
            RecordError: the payload is not exactly JSON, or it could not be written; nothing half-written remains.
        """
        canonical_json(payload)
        text = canonical_json(redact(payload))
        masked = json.loads(text)
        with self.dialect.writing() as connection:
            last = connection.execute(_LAST).first()
            seq, previous_hash = (last.seq + 1, last.hash) if last else (1, GENESIS)
            at_ns = self._clock_ns()
            digest = event_hash(seq, at_ns, kind, masked, previous_hash)
            row = RawEvent(seq, at_ns, kind.value, text, previous_hash, digest)
            connection.execute(insert(EVENTS), row._asdict())
        return Event(seq=seq, at_ns=at_ns, kind=kind, payload=masked, previous_hash=previous_hash, hash=digest)

    def events(self) -> list[Event]:
        """All events in order.

        Raises:
            RecordError: the database or one of its events cannot be read.
        """
        return self.events_after(0)

    def events_after(self, seq: int) -> list[Event]:
        """Events with a number above `seq`, in order: what a follower has not seen yet."""
        query = select(EVENTS).where(EVENTS.c.seq > seq).order_by(EVENTS.c.seq)
        with self.dialect.reading() as connection:
            rows = connection.execute(query).all()
        return [parse(RawEvent(*row)) for row in rows]


class SqliteRecord(SqlRecord):
    """The record in the campaign folder: `assay.db`. Usable as a context manager; nothing stays open in between."""

    def __init__(
        self,
        path: Path,
        create: bool = False,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ) -> None:
        """Open a record, or make one.

        Args:
            path: the database file.
            create: make the file and the journal when they are absent.
            clock_ns: wall clock of the events.
            busy_timeout_s: how long to wait for another process's write.

        Raises:
            RecordError: there is no record, it is damaged, or it cannot be made here.
        """
        dialect = SqliteDialect(path, busy_timeout_s)
        super().__init__(dialect, clock_ns)
        self.path = path
        if not create:
            require_file(path)
        if not path.exists():
            dialect.create()
        elif not dialect.has_journal():
            if not create:
                raise no_journal(path)
            dialect.create()  # an earlier creation was killed between making the file and filling it

    def lock(self) -> AbstractContextManager[None]:
        """Be the campaign's only writer while the block runs.

        Raises:
            UsageError: another process is; its id is named.
        """
        return writer_lock(self.path.parent)

    def remove(self) -> None:
        """Undo the making of a record: for the one that made it and holds its lock, before anything was measured."""
        with disk_errors(self.path, "remove"):
            for suffix in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close: a connection lives as long as one append or one read."""
