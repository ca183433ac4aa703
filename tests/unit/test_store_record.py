"""The journal: appending, reading back, refusing to change, and saying clearly why it cannot write."""

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Table, create_engine, func, insert, select

from assay.errors import RecordError, UsageError
from assay.records.event import GENESIS, EventKind, event_hash
from assay.store.reader import read_events
from assay.store.record import SqliteRecord, SqlRecord
from assay.store.schema import EVENTS, JOURNAL
from assay.store.verify import verify

KIND = EventKind.CALIBRATED
NOBODY = 65534


def new_record(folder, **options) -> SqliteRecord:
    ticks = count(1_700_000_000_000_000_000)
    return SqliteRecord(folder / "assay.db", create=True, clock_ns=lambda: next(ticks), **options)


@contextmanager
def without_privileges():
    """Root ignores file modes; as `nobody` they count."""
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if was_root:
            os.seteuid(0)


@pytest.fixture
def open_folder():
    """A folder that other users can reach (pytest's own is private)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_events_come_back_as_appended_each_hashed_over_the_one_before(tmp_path):
    record = new_record(tmp_path)
    first = record.append(KIND, {"b": [1, 2.5, None, True], "a": "ü\ud800\x00"})
    second = record.append(KIND, {})
    assert record.events() == [first, second]
    assert [event.seq for event in record.events()] == [1, 2]
    assert (first.previous_hash, second.previous_hash) == (GENESIS, first.hash)
    assert second.hash == event_hash(2, second.at_ns, KIND, {}, first.hash)
    assert first.payload == {"b": [1, 2.5, None, True], "a": "ü\ud800\x00"}


def test_the_light_reader_and_a_reopened_record_see_the_same_events(tmp_path):
    record = new_record(tmp_path)
    events = [record.append(KIND, {"n": n}) for n in range(4)]
    with SqliteRecord(tmp_path / "assay.db") as reopened, reopened.lock():
        assert reopened.events() == events
        events.append(reopened.append(KIND, {"n": 4}))
        assert read_events(tmp_path / "assay.db") == events
    assert read_events(tmp_path / "assay.db", after=3) == record.events_after(3) == events[3:]
    assert record.events_after(5) == []


def test_between_appends_the_record_is_one_file(tmp_path):
    new_record(tmp_path).append(KIND, {})
    assert [path.name for path in tmp_path.iterdir()] == ["assay.db"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.dictionaries(st.text(max_size=5), json_values, max_size=3), min_size=1, max_size=4))
def test_any_json_payload_survives_exactly(payloads):
    with tempfile.TemporaryDirectory() as folder:
        record = new_record(Path(folder))
        for payload in payloads:
            record.append(KIND, payload)
        back = [event.payload for event in record.events()]
    assert json.dumps(back) == json.dumps([json.loads(json.dumps(item, sort_keys=True)) for item in payloads])


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"x": float("nan")}, "JSON"),
        ({"x": [1.0, float("inf")]}, "JSON"),
        ({"x": {"y": (1, 2)}}, r"payload\.x\.y"),
        ({"x": [{"y": {1: "one"}}]}, r"payload\.x\[0\]\.y"),
        ({"x": {1, 2}}, "set"),
        ({"x": Path("here")}, "Path"),
    ],
)
def test_a_payload_that_json_would_change_is_refused_and_nothing_is_written(tmp_path, payload, said):
    record = new_record(tmp_path)
    with pytest.raises(RecordError, match=said) as refusal:
        record.append(KIND, payload)
    assert refusal.value.hint
    assert record.events() == []


def test_secrets_are_masked_before_hashing(tmp_path):
    record = new_record(tmp_path)
    event = record.append(KIND, {"env": {"HF_TOKEN": "hunter2"}, "argv": ["serve", "--api-key", "hunter2"]})
    assert event.payload == {"env": {"HF_TOKEN": "[redacted]"}, "argv": ["serve", "--api-key", "[redacted]"]}
    assert record.events() == [event]
    assert b"hunter2" not in (tmp_path / "assay.db").read_bytes()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = '{}' WHERE seq = 1",
        "DELETE FROM events WHERE seq = 2",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT seq, at_ns, kind, '{}', previous_hash, hash FROM events WHERE seq = 1",
        "INSERT INTO events SELECT seq + 5, at_ns, kind, payload, hash, hash FROM events WHERE seq = 2",
        "INSERT INTO events SELECT seq + 1, at_ns, kind, payload, previous_hash, hash FROM events WHERE seq = 2",
    ],
)
def test_the_database_itself_refuses_every_change_but_the_next_event(tmp_path, statement):
    record = new_record(tmp_path)
    before = [record.append(KIND, {"n": n}) for n in range(2)]
    with (
        closing(sqlite3.connect(record.path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(statement)
    assert record.events() == before


def test_a_second_writer_is_refused_and_told_the_pid_of_the_first(tmp_path):
    new_record(tmp_path)
    script = (
        "import sys; from pathlib import Path; from assay.store.record import SqliteRecord\n"
        "with SqliteRecord(Path(sys.argv[1])).lock():\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "assay.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        record = SqliteRecord(tmp_path / "assay.db")
        with pytest.raises(UsageError, match=f"process {holder.pid} ") as refusal, record.lock():
            pass
        assert str(holder.pid) in refusal.value.hint
        holder.kill()
        holder.wait()
        with record.lock():  # the system dropped the lock of the dead
            assert (tmp_path / "assay.lock").read_text() == f"{os.getpid()}\n"


def test_a_lock_is_free_again_after_an_error_in_its_block(tmp_path):
    record = new_record(tmp_path)
    with pytest.raises(ZeroDivisionError), record.lock():
        raise ZeroDivisionError
    with record.lock():
        pass


def test_a_database_locked_by_another_process_is_named_as_that(tmp_path):
    record = new_record(tmp_path, busy_timeout_s=0.05)
    record.append(KIND, {})
    with closing(sqlite3.connect(record.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RecordError, match="another process") as refusal:
            record.append(KIND, {})
        other.execute("ROLLBACK")
    assert refusal.value.hint
    assert record.append(KIND, {}).seq == 2


def test_a_missing_record_is_an_error_and_is_not_made_by_looking(tmp_path):
    for look in (SqliteRecord, read_events):
        with pytest.raises(RecordError, match="no record here") as refusal:
            look(tmp_path / "assay.db")
        assert "assay plan" in refusal.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keep", [0, 50, 4096, 8192, -4096])
def test_a_truncated_file_is_a_record_error(tmp_path, keep):
    record = new_record(tmp_path)
    for n in range(40):
        record.append(KIND, {"n": n, "text": "x" * 500})
    content = record.path.read_bytes()
    assert len(content) > 5 * 4096
    record.path.write_bytes(content[:keep])
    for look in (
        lambda: SqliteRecord(record.path).events(),
        lambda: read_events(record.path),
        lambda: verify(tmp_path),
    ):
        with pytest.raises(RecordError) as refusal:
            look()
        assert "assay.db" in refusal.value.message
        assert refusal.value.hint


def test_a_file_that_is_no_database_is_a_record_error(tmp_path):
    (tmp_path / "assay.db").write_bytes(b"hello, this is text " * 100)
    for create in (False, True):
        with pytest.raises(RecordError, match="not a database"):
            SqliteRecord(tmp_path / "assay.db", create=create)


def test_a_creation_that_was_killed_before_the_journal_existed_can_be_repeated(tmp_path):
    (tmp_path / "assay.db").touch()
    with pytest.raises(RecordError, match="no journal"):
        SqliteRecord(tmp_path / "assay.db")
    assert SqliteRecord(tmp_path / "assay.db", create=True).append(KIND, {}).seq == 1


FILL = """
import resource, signal, sys
from pathlib import Path
from assay.errors import RecordError
from assay.records.event import EventKind
from assay.store.record import SqliteRecord
record = SqliteRecord(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    while True:
        print(record.append(EventKind.CALIBRATED, {"text": "x" * 20_000}).seq, flush=True)
except RecordError as error:
    print(error.exit_code, error.message, "|", error.hint)
"""


def test_a_full_disk_is_a_record_error_and_leaves_the_events_written_before_it(tmp_path):
    """The limit on a file's size fails writes where a full disk does: half-way through one."""
    record = new_record(tmp_path)
    command = [sys.executable, "-c", FILL, str(record.path), "200000"]
    *acknowledged, message = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert acknowledged
    assert message.startswith("6 ")
    assert "full" in message
    assert "free some disk space" in message
    assert [event.seq for event in record.events()] == [int(seq) for seq in acknowledged]
    assert record.append(KIND, {}).seq == len(acknowledged) + 1
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY  # the child's limit stayed there


def test_a_read_only_folder_can_be_read_and_verified_but_not_written(open_folder):
    record = new_record(open_folder)
    events = [record.append(KIND, {"n": 1})]
    before = record.path.read_bytes()
    record.path.chmod(0o444)
    open_folder.chmod(0o555)
    with without_privileges():
        assert record.events() == read_events(record.path) == events
        assert verify(open_folder).num_events == 1
        with pytest.raises(RecordError) as refusal:
            record.append(KIND, {"n": 2})
        with pytest.raises(RecordError) as no_lock, record.lock():
            pass
    assert "writable" in refusal.value.hint
    assert "writable" in no_lock.value.hint
    assert [path.name for path in open_folder.iterdir()] == ["assay.db"]
    assert record.path.read_bytes() == before


def test_a_record_cannot_be_made_in_a_read_only_folder_or_below_a_file(open_folder):
    (open_folder / "file").touch()
    open_folder.chmod(0o555)
    with without_privileges():
        for folder in (open_folder, open_folder / "new", open_folder / "file"):
            with pytest.raises(RecordError) as refusal:
                new_record(folder)
            assert refusal.value.hint


def test_another_dialect_needs_only_transactions(tmp_path):
    """What SQLite adds lives in its dialect; the journal itself is plain SQLAlchemy."""
    engine = create_engine(f"sqlite:///{tmp_path / 'plain.db'}")

    class Plain:
        writing = staticmethod(engine.begin)
        reading = staticmethod(engine.begin)

    JOURNAL.create_all(engine)
    record = SqlRecord(Plain())
    event = record.append(KIND, {"n": 1})
    assert record.events() == [event]
    engine.dispose()


def test_two_records_on_one_file_continue_one_chain(tmp_path):
    one, two = new_record(tmp_path), SqliteRecord(tmp_path / "assay.db")
    events = [writer.append(KIND, {"n": n}) for n, writer in enumerate([one, two, two, one])]
    assert [event.seq for event in events] == [1, 2, 3, 4]
    assert [event.previous_hash for event in events[1:]] == [event.hash for event in events[:-1]]


def test_an_event_that_cannot_be_read_is_named(tmp_path):
    record = new_record(tmp_path)
    event = record.append(KIND, {})
    table: Table = EVENTS
    with record.dialect.writing() as connection:
        assert connection.scalar(select(func.count()).select_from(table)) == 1
        row = {
            "seq": 2,
            "at_ns": 1,
            "kind": "unheard-of",
            "payload": "{}",
            "previous_hash": event.hash,
            "hash": "0" * 64,
        }
        connection.execute(insert(table), row)
    with pytest.raises(RecordError, match=r"event 2 \(unheard-of\)"):
        record.events()
