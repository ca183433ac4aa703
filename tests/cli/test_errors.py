"""Errors: what happened, what to do next, and the exit code."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from assay import errors
from assay.cli import run_command
from assay.cli.failure import Interrupted, explain, fail_check
from tests.cli.records import assay, told

Capture = pytest.CaptureFixture[str]
LOOKING = ["status", "todo", "next", "report", "export", "verify"]


@pytest.mark.parametrize("command", [*LOOKING, "plan", "run"])
def test_a_folder_without_a_campaign_is_a_usage_error_with_the_next_command(
    tmp_path: Path, capsys: Capture, command: str
) -> None:
    assert run_command([command, "--folder", str(tmp_path)]) == 2
    captured = capsys.readouterr()

    assert captured.out == ""
    assert re.fullmatch(r"error: .+\n\nhint: .+\n", captured.err)
    assert str(tmp_path) in captured.err
    assert not (tmp_path / "assay.db").exists()


@pytest.mark.parametrize("command", LOOKING)
def test_with_json_an_error_is_one_document_on_stdout(tmp_path: Path, capsys: Capture, command: str) -> None:
    assert run_command([command, "--folder", str(tmp_path), "--json"]) == 2
    captured = capsys.readouterr()

    assert captured.err == ""
    document = told(captured.out)
    assert document["exit_code"] == 2
    assert str(tmp_path) in str(document["error"])


@pytest.mark.parametrize("command", ["status", "verify"])
def test_a_damaged_database_is_an_error_of_the_record(tmp_path: Path, capsys: Capture, command: str) -> None:
    (tmp_path / "assay.db").write_bytes(b"this is no database" * 100)

    assert run_command([command, "--folder", str(tmp_path)]) == 6
    assert "assay.db" in capsys.readouterr().err


def test_an_unknown_key_in_the_spec_is_named(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "assay.toml").write_text("[workload]\nconcurency = 4\n", encoding="utf-8")

    assert run_command(["run", "--folder", str(tmp_path)]) == 2
    assert "concurency" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["staus"], "did you mean `assay status`?"),
        (["xyzzy"], "`assay --help` lists the commands"),
        (["status", "--jsn"], "see `assay status --help`"),
        (["run", "--max-runs", "0"], "see `assay run --help`"),
        (["export", "--format", "yaml"], "see `assay export --help`"),
        (["--no-such-option"], "see `assay --help`"),
        (["status", "--folder", __file__], "see `assay status --help`"),
    ],
)
def test_a_command_line_that_is_wrong_exits_2_and_points_to_the_help(
    capsys: Capture, words: list[str], said: str
) -> None:
    assert run_command(words) == 2
    captured = capsys.readouterr()

    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.endswith(f"hint: {said}\n")


def test_a_command_line_that_is_wrong_is_json_when_json_was_asked_for(capsys: Capture) -> None:
    assert run_command(["staus", "--json"]) == 2
    assert told(capsys.readouterr().out)["hint"] == "did you mean `assay status`?"


def test_every_error_class_keeps_its_exit_code() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    raisable = [one for one in classes if issubclass(one, errors.AssayError)]

    assert len(raisable) == 7
    for one in raisable:
        trouble = explain(one("what", hint="next"))
        assert (trouble.message, trouble.hint, trouble.exit_code) == ("what", "next", one.exit_code)


def test_an_interrupted_campaign_names_the_command_that_goes_on() -> None:
    trouble = explain(Interrupted("assay run --folder 'my campaign'"))

    assert trouble.exit_code == 130
    assert "nothing recorded is lost" in trouble.message
    assert trouble.hint == "`assay run --folder 'my campaign'` goes on where this stopped"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_ctrl_c_anywhere_else_exits_130(error: BaseException) -> None:
    assert explain(error).exit_code == 130


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_a_place_that_cannot_be_written_is_no_defect(number: int) -> None:
    trouble = explain(OSError(number, os.strerror(number), "/some/place"))

    assert trouble.exit_code == 6
    assert "/some/place" in trouble.message
    assert os.strerror(number) in trouble.message


def test_an_error_nobody_foresaw_keeps_its_traceback_in_a_file_and_says_how_to_report_it() -> None:
    def fail() -> None:
        raise ZeroDivisionError("by nothing")

    with pytest.raises(ZeroDivisionError) as caught:
        fail()
    trouble = explain(caught.value)

    assert trouble.exit_code == 70
    assert "ZeroDivisionError: by nothing" in trouble.message
    assert "\n" not in trouble.message
    found = re.search(r"(/\S+\.txt)", trouble.hint or "")
    assert found
    kept = Path(found[1])
    assert 'raise ZeroDivisionError("by nothing")' in kept.read_text(encoding="utf-8")
    kept.unlink()
    assert "assay version" in (trouble.hint or "")


def test_a_failed_check_is_told_to_people_and_left_to_the_answer_for_programs() -> None:
    with pytest.raises(errors.CheckFailed):
        fail_check("no", hint="look", as_json=False)
    with pytest.raises(click.exceptions.Exit) as leave:
        fail_check("no", hint="look", as_json=True)
    assert leave.value.exit_code == 1


@pytest.mark.parametrize("words", [["todo", "--json"], ["status"], ["--help"]])
def test_a_reader_that_went_away_is_met_with_silence(finished: Path, words: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)

    ended = subprocess.run(
        [sys.executable, "-m", "assay", *words],
        stdout=write_end, stderr=subprocess.PIPE, text=True, cwd=finished, timeout=60, check=False,
    )  # fmt: skip
    os.close(write_end)

    assert (ended.returncode, ended.stderr) == (141, "")


def test_a_real_process_exits_with_the_code_and_says_it_on_stderr(tmp_path: Path) -> None:
    ended = assay("status", cwd=tmp_path)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: ")
    assert json.loads(assay("status", "--json", cwd=tmp_path).stdout)["exit_code"] == 2
