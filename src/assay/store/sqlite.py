"""What makes a SQLite file a durable, append-only record: pragmas, transactions, triggers.

Another database offers the same two things as `SqliteDialect`: `writing` and `reading`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, inspect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from assay.records.event import GENESIS
from assay.store.atomic import sync_folder
from assay.store.disk import disk_errors
from assay.store.reader import connect, connect_to_read, explain
from assay.store.schema import EVENTS, JOURNAL

TRIGGERS = (
    """CREATE TRIGGER IF NOT EXISTS events_are_never_changed BEFORE UPDATE ON events
       BEGIN SELECT RAISE(ABORT, 'events are append-only'); END""",
    """CREATE TRIGGER IF NOT EXISTS events_are_never_deleted BEFORE DELETE ON events
       BEGIN SELECT RAISE(ABORT, 'events are append-only'); END""",
    # INSERT OR REPLACE deletes without firing the trigger above, so an insert has to prove its place as well.
    f"""CREATE TRIGGER IF NOT EXISTS events_continue_the_chain BEFORE INSERT ON events
        WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM events)
          OR NEW.previous_hash <> coalesce((SELECT hash FROM events ORDER BY seq DESC LIMIT 1), '{GENESIS}')
        BEGIN SELECT RAISE(ABORT, 'events are append-only: this one does not continue the chain'); END""",  # noqa: S608 - a constant of ours
)


class SqliteDialect:
    """One database file. A connection is opened for each use, so that nothing stays open between runs.

    The last connection to close folds the write-ahead log into the file: between two appends the record is one
    file that can be copied. That costs a few more disk syncs, a few times per run.
    """

    def __init__(self, path: Path, busy_timeout_s: float) -> None:
        self.path = path
        self._busy_timeout_s = busy_timeout_s
        self._writer = _engine(self._connect_to_write, begin="BEGIN IMMEDIATE")
        self._reader = _engine(lambda: connect_to_read(path, busy_timeout_s), begin="BEGIN")

    def create(self) -> None:
        """Make the file, its journal and the triggers, all or nothing; harmless when they exist."""
        folder = self.path.parent
        with disk_errors(folder, "write"):
            folder.mkdir(parents=True, exist_ok=True)
        with self.writing() as connection:
            JOURNAL.create_all(connection)
            for trigger in TRIGGERS:
                connection.exec_driver_sql(trigger)
        with disk_errors(folder, "write"):
            sync_folder(folder)

    def has_journal(self) -> bool:
        """Whether the file holds an events table."""
        with self.reading() as connection:
            return inspect(connection).has_table(EVENTS.name)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Hold one transaction, the only writer meanwhile; on disk when the block ends without an error."""
        with self._explained("write"), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Hold one consistent view; the file is opened read-only."""
        with self._explained("read"), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def _explained(self, action: str) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise explain(getattr(error, "orig", None) or error, self.path, action) from error

    def _connect_to_write(self) -> sqlite3.Connection:
        connection = connect(self.path, "mode=rwc", self._busy_timeout_s)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _engine(creator: Callable[[], sqlite3.Connection], begin: str) -> Engine:
    engine = create_engine("sqlite+pysqlite://", creator=creator, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
