"""kill -9 at random moments: every acknowledged event is there afterwards, and the chain holds."""

import random
import subprocess
import sys
import time

import pytest

from assay.store.reader import read_raw
from assay.store.record import SqliteRecord
from assay.store.verify import chain_problems

APPEND_FOREVER = """
import sys
from pathlib import Path
from assay.records.event import EventKind
from assay.store.record import SqliteRecord
record = SqliteRecord(Path(sys.argv[1]), create=True)
with record.lock():
    while True:
        print(record.append(EventKind.CALIBRATED, {"text": "x" * 3_000}).seq, flush=True)
"""
KILLS = 20
LONGEST_WAIT_S = 0.006
"""About the time of one append: the kill lands anywhere within it, or in the next one."""


@pytest.mark.slow
def test_a_record_killed_at_random_moments_keeps_every_acknowledged_event_and_its_chain(tmp_path):
    database = tmp_path / "assay.db"
    moments = random.Random(20)
    acknowledged = 0
    for _ in range(KILLS):
        acknowledged = killed_writer(database, moments.randint(0, 12), moments.uniform(0, LONGEST_WAIT_S), acknowledged)
        rows = read_raw(database)
        assert chain_problems(rows) == []
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        assert acknowledged <= len(rows) <= acknowledged + 1
        acknowledged = len(rows)
    assert acknowledged > KILLS
    with SqliteRecord(database) as record, record.lock():
        assert len(record.events()) == acknowledged


def killed_writer(database, num_acknowledged: int, wait_s: float, before: int) -> int:
    """Let a process append, kill it after so many acknowledgements and a moment; the last number it acknowledged."""
    command = [sys.executable, "-c", APPEND_FOREVER, str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        last = int(writer.stdout.readline())
        assert last == before + 1
        for _ in range(num_acknowledged):
            last = int(writer.stdout.readline())
        time.sleep(wait_s)  # the injected fault's moment, nothing is waited for
        writer.kill()
        rest = writer.stdout.read().splitlines(keepends=True)
        return max([last, *(int(line) for line in rest if line.endswith("\n"))])
