"""The tables for people who speak SQL."""

import sqlite3
from contextlib import closing

import pytest

from assay.errors import RecordError
from assay.plan.fold import fold
from assay.store.projections import rebuild
from tests.unit.test_store_verify import write_campaign


def query(record, sql: str) -> list[tuple]:
    with closing(sqlite3.connect(record.path)) as connection:
        return connection.execute(sql).fetchall()


def test_the_tables_hold_what_the_events_say(tmp_path):
    record = write_campaign(tmp_path)
    rebuild(record, fold(record.events()))
    runs = "SELECT run_id, purpose, series, candidate, status, output_tokens_per_s, ttft_p50_s, duration_s FROM runs"
    assert query(record, runs) == [
        ("r0001", "screen", "screen", "threads", "ok", 11.5, 0.125, 9.0),
        ("r0002", "screen", "screen", "threads", "failed", None, None, 9.0),
        ("r0003", "screen", "screen", "threads", None, None, None, None),
    ]
    assert query(record, "SELECT candidate, kind, log_ratio, low, high, n, prediction_held, reason FROM verdicts") == [
        ("threads", "adopted", 0.1, 0.05, 0.15, 4, 1, "+10%")
    ]
    assert query(record, 'SELECT run_id, "index", start_s, output_tokens FROM windows') == [
        ("r0001", 0, 1.0, 11),
        ("r0001", 1, 2.0, 12),
    ]


def test_rebuilding_replaces_what_was_there_and_leaves_the_events(tmp_path):
    record = write_campaign(tmp_path)
    events = record.events()
    rebuild(record, fold(events))
    with closing(sqlite3.connect(record.path)) as connection:
        connection.execute("DELETE FROM windows")
        connection.execute("UPDATE runs SET status = 'ok', reason = 'forged'")
        connection.commit()
    rebuild(record, fold(events))
    assert query(record, "SELECT count(*) FROM windows") == [(2,)]
    assert query(record, "SELECT count(*) FROM runs WHERE reason = 'forged'") == [(0,)]
    assert record.events() == events


def test_a_rebuild_that_fails_leaves_the_old_tables(tmp_path):
    record = write_campaign(tmp_path)
    state = fold(record.events())
    rebuild(record, state)
    doubled = state.model_copy(update={"runs": [*state.runs, *state.runs]})
    with pytest.raises(RecordError):
        rebuild(record, doubled)
    assert query(record, "SELECT count(*) FROM runs") == [(3,)]
