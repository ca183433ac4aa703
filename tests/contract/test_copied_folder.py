"""A copy of a campaign folder leaves the original's server alone; the folder itself, moved or not, ends its orphan."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from assay import api, wiring
from assay.campaign.bench import RUN_TOKEN
from assay.campaign.gates import wait_for_quiet
from assay.campaign.loop import recover
from assay.plan.arms import baseline_arm
from assay.plan.fold import fold
from assay.process import Child, start
from assay.records.event import EventKind
from assay.records.run import Purpose, RunIntent
from assay.records.spec import Gates
from assay.render.progress import for_stream
from assay.store.record import SqliteRecord
from assay.store.spec_file import read_spec
from tests.contract.campaigns import make_campaign, tiny_spec


@pytest.fixture
def orphan() -> Iterator[list[Child]]:
    started: list[Child] = []
    yield started
    for child in started:
        child.end()


def left_open(folder: Path, *, old: bool = False) -> Child:
    """A run that began and has not ended, its server alive."""
    make_campaign(folder, tiny_spec(), {"null": '{ "--batch-size" = 512 }'})
    api.plan(folder)
    found = folder.stat()
    place = "" if old else f"{found.st_dev:x}-{found.st_ino:x}"
    with SqliteRecord(folder / "assay.db") as record, record.lock():
        state = fold(record.events())
        intent = RunIntent(
            run_id="r0001", purpose=Purpose.CALIBRATION, series="main", candidate=None,
            arm=baseline_arm(state.spec.target), seed=1, why="test", folder=place,
        )  # fmt: skip
        log = folder / "runs" / "r0001" / "server.log"
        log.parent.mkdir(parents=True)
        token = "-".join(part for part in (str(state.created_at_ns), place, "r0001") if part)
        child = start(["sleep", "60"], {RUN_TOKEN: token}, log)
        server = {"pid": child.pid, "create_time": child.create_time, "port": 1024, "argv": ["sleep", "60"]}
        record.append(EventKind.RUN_INTENDED, {"intent": intent.model_dump(mode="json")})
        record.append(EventKind.SERVER_STARTED, {"run_id": "r0001", "server": server})
    return child


def recovered(folder: Path) -> str:
    """What recovery says of the run."""
    with SqliteRecord(folder / "assay.db") as record, record.lock(), for_stream(plain=True) as progress:
        state = fold(record.events())
        target = read_spec(folder / "assay.toml", declared=state.spec).target
        with wiring.bench(folder, record, state, target, progress, "here") as bench:
            assert recover(bench) == ["r0001"]
            outcome = bench.state.runs[0].outcome
    assert outcome is not None
    return outcome.reason


@pytest.mark.parametrize("old", [False, True])
def test_a_copy_leaves_the_server_alone_and_says_which_it_is(tmp_path: Path, orphan: list[Child], *, old: bool) -> None:
    child = left_open(tmp_path / "original", old=old)
    orphan.append(child)
    shutil.copytree(tmp_path / "original", tmp_path / "copy")

    said = recovered(tmp_path / "copy")

    assert f"kill {child.pid}" in said
    assert child.exit_code() is None
    shutil.move(tmp_path / "original", tmp_path / "moved")
    assert "its server was ended" in recovered(tmp_path / "moved")
    assert not psutil.pid_exists(child.pid) or child.exit_code() is not None


class Busy:
    """A machine on which others never rest."""

    def snapshot(self, server_pid: int | None = None) -> dict[str, float | None]:
        del server_pid
        return {"foreign_cpu_cores": 2.0}


def test_patience_with_a_busy_machine_ends() -> None:
    slept: list[float] = []
    said: list[str] = []

    quiet = wait_for_quiet(Busy(), Gates(), said.append, patience_s=5, sleep=slept.append)  # type: ignore[arg-type]

    assert not quiet
    assert sum(slept) == 5
    assert "at most 5 s" in said[0]
