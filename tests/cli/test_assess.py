"""`assay assess`: on this machine, and on one that comes in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.cli import run_command
from assay.store.machine_file import write_machine
from tests.cli.records import assay
from tests.unit.machines import box, gpu_changed, one_h200

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    path = tmp_path / "one.json"
    write_machine(path, one_h200())
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.json"
    write_machine(path, gpu_changed(box(), 4, ecc={"uncorrected": 2}, pcie={"width": 8}))
    return path


def document(capsys: Capture, *words: str, code: int = 0) -> Any:
    assert run_command([*words, "--json"]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_this_machine_is_saved_and_read_back_as_the_same_one(tmp_path: Path, capsys: Capture) -> None:
    saved = tmp_path / "here.json"

    here = document(capsys, "assess", "--folder", str(tmp_path), "--save", str(saved))
    again = document(capsys, "assess", "--machine", str(saved))

    assert here["snapshot"]["disks"]
    assert here["build"]["flags"]
    assert again["snapshot"] == here["snapshot"]
    assert again["findings"] == here["findings"]
    assert again["fingerprint"] == here["fingerprint"]
    assert (again["build"], again["machine_file"], again["blocked"]) == (None, str(saved), False)


def test_a_healthy_machine_in_a_file_needs_no_engine_here(healthy: Path, capsys: Capture) -> None:
    assert run_command(["assess", "--machine", str(healthy)]) == 0
    captured = capsys.readouterr()

    assert "".join(captured.out.split()).startswith(f"machinein{healthy},")
    assert "NVIDIA H200" in captured.out
    assert "nothing found that would spoil a measurement" in captured.out
    assert "engine" not in captured.out
    assert captured.err == ""


def test_a_blocker_ends_with_1_and_is_listed_first(broken: Path, capsys: Capture) -> None:
    assert run_command(["assess", "--machine", str(broken)]) == 1
    captured = capsys.readouterr()

    assert captured.out.index("blocker: GPU memory has errors") < captured.out.index("warning: A PCIe link")
    assert captured.err.startswith("error: a campaign cannot run on that machine yet")
    assert "hint: " in captured.err


def test_a_blocker_as_json_is_one_document_and_still_ends_with_1(broken: Path, capsys: Capture) -> None:
    found = document(capsys, "assess", "--machine", str(broken), code=1)

    assert found["blocked"]
    rules = {finding["rule"]: finding["severity"] for finding in found["findings"]}
    assert rules == {"gpu-memory-errors": "blocker", "pcie-width": "warning"}


def test_a_file_that_is_no_machine_is_a_usage_error(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "x.json").write_text("{}")

    assert run_command(["assess", "--machine", str(tmp_path / "x.json")]) == 2
    assert "is not a machine" in capsys.readouterr().err


def test_a_saved_machine_is_not_saved_again(healthy: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run_command(["assess", "--machine", str(healthy), "--save", str(tmp_path / "b.json")]) == 2
    assert "contradict" in capsys.readouterr().err


def test_a_pipe_gets_no_colour_and_the_note_about_the_file_goes_to_stderr(tmp_path: Path) -> None:
    shown = assay("assess", "--save", "box.json", cwd=tmp_path)

    assert "\x1b" not in shown.stdout
    assert "wrote box.json" in shown.stderr
    assert (tmp_path / "box.json").exists()
