"""Kill -9 at random moments: the record verifies, no server stays, and the campaign ends with the same runs."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.contract.campaigns import (
    assert_verified,
    completed,
    kills_wanted,
    make_whole_campaign,
    servers_of,
    start_assay,
)

pytestmark = pytest.mark.slow


def finish(folder: Path) -> None:
    process = start_assay(folder, "run")
    _, stderr = process.communicate(timeout=200)
    assert process.returncode == 0, stderr.decode()


def kill_at(folder: Path, delay_s: float) -> bool:
    """Start `assay run` and kill -9 it after a delay; False when it had ended before."""
    process = start_assay(folder, "run")
    try:
        process.communicate(timeout=delay_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        return True
    assert process.returncode == 0
    return False


def assert_no_server_stays(folder: Path) -> None:
    """The guardian ends the server of a killed Assay by itself, within seconds."""
    if not (folder / "assay.db").exists():
        return
    left = [psutil.Process(pid) for pid in servers_of(folder) if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(left, timeout=15)
    assert not alive, alive


def test_killed_at_random_moments_it_verifies_leaves_no_server_and_ends_with_the_same_runs(
    finished: Path, tmp_path: Path
) -> None:
    wanted = kills_wanted(2)
    rng = random.Random(20261130)
    expected = completed(finished)
    assert len(expected) >= 7

    kills, campaign = 0, 0
    while kills < wanted:
        campaign += 1
        folder = make_whole_campaign(tmp_path / f"killed-{campaign}")
        while kills < wanted and kill_at(folder, rng.uniform(0.2, 6.0)):
            kills += 1
            assert_no_server_stays(folder)
            if (folder / "assay.db").exists():
                assert_verified(folder)
        finish(folder)
        assert_verified(folder)
        assert servers_of(folder) == []
        assert completed(folder) == expected
        shutil.rmtree(folder)
