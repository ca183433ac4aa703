"""A whole small campaign on the real embedded engine, with every kind of outcome that needs no statistics."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from assay import api
from assay.errors import UsageError
from assay.render.progress import QuietProgress
from tests.contract.campaigns import (
    assert_verified,
    completed,
    make_campaign,
    servers_of,
    start_assay,
    tiny_spec,
)

pytestmark = pytest.mark.slow


def test_a_flag_the_build_does_not_have_is_blocked_without_a_run(finished: Path) -> None:
    state = api.status(finished)
    verdict = state.verdicts["no-such-flag"]
    assert (verdict.kind, verdict.cause) == ("blocked", "plan")
    assert "--flag-that-never-was" in verdict.reason
    assert not [run for run in state.runs if run.intent.candidate == "no-such-flag"]


def test_a_server_that_does_not_start_is_blocked_with_the_line_that_says_why(finished: Path) -> None:
    verdict = api.status(finished).verdicts["cannot-start"]
    assert verdict.kind == "blocked"
    assert verdict.line
    assert verdict.effect is None


def test_a_flag_that_changes_the_answers_is_refused_however_fast_it_is(finished: Path) -> None:
    verdict = api.status(finished).verdicts["wrong"]
    assert verdict.kind == "wrong-output"
    assert "next tokens differ" in verdict.reason


def test_a_null_flag_is_not_adopted(finished: Path) -> None:
    state = api.status(finished)
    assert state.verdicts["null-poll"].kind == "undecided"
    assert state.stack == []
    assert state.headline is not None
    assert "Nothing was adopted" in state.headline.sentence


def test_the_record_proves_itself_and_no_server_is_left(finished: Path) -> None:
    assert_verified(finished)
    assert servers_of(finished) == []


def test_every_ended_run_has_its_log_and_its_command(finished: Path) -> None:
    for run in api.status(finished).runs:
        folder = finished / "runs" / run.intent.run_id
        command = json.loads((folder / "command.json").read_text())
        assert "--host" in command["argv"]
        assert "127.0.0.1" in command["argv"]
        assert (folder / "server.log").stat().st_size > 0


def test_the_verdict_is_written_into_the_improvement_document(finished: Path) -> None:
    document = next((finished / "improvements").glob("*-null-poll.md")).read_text()
    assert "undecided" in document


def test_running_a_finished_campaign_again_changes_nothing(finished: Path) -> None:
    before = api.status(finished)
    with QuietProgress() as progress:
        api.run(finished, progress)
    assert api.status(finished) == before


def test_the_report_and_the_launch_command_are_there(finished: Path) -> None:
    html = (finished / "report" / "index.html").read_text()
    assert "cannot-start" in html
    command = api.export(finished, "shell")
    assert "--parallel" in command
    assert "127.0.0.1" in command


def test_thresholds_cannot_be_moved_after_measuring(finished: Path) -> None:
    spec = finished / "assay.toml"
    text = spec.read_text()
    spec.write_text(text.replace("min_effect = 0.0001", "min_effect = 0.5"))
    try:
        with pytest.raises(UsageError, match="changed after the campaign was created"):
            api.plan(finished)
    finally:
        spec.write_text(text)


def test_ctrl_c_ends_the_server_and_the_next_run_goes_on(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "interrupted", tiny_spec(), {"null-poll": '{ "--poll" = 50 }'})
    process = start_assay(folder, "run")
    while not any(log.stat().st_size for log in folder.glob("runs/*/server.log")):
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=0.1)
    assert servers_of(folder)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr.decode()
    assert servers_of(folder) == []
    assert_verified(folder)
    assert completed(folder) == []
    with QuietProgress() as progress:
        api.run(folder, progress, max_runs=2)
    interrupted, *made = api.status(folder).runs
    assert interrupted.outcome is not None
    assert interrupted.outcome.status == "abandoned"
    assert len(made) == 2
    assert made[0].intent.seed == interrupted.intent.seed
    assert completed(folder)
