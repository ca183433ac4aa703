"""The demo on the real engine: how it ends, and how it is ended."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.records import assay, told
from tests.contract.campaigns import servers_of

pytestmark = pytest.mark.slow
SHORTER = {
    "window_s = 1.5": "window_s = 0.3",
    "output_tokens = [16, 48]": "output_tokens = [4, 6]",
    "probes = 48": "probes = 8",
    "max_foreign_cores = 0.1": "max_foreign_cores = 64.0",
}
"""What a run costs is not asked here, nor whether the machine is quiet."""


def test_a_demo_told_to_stop_ends_as_with_ctrl_c_and_names_the_command_that_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "my demo"
    demo = subprocess.Popen(
        [sys.executable, "-m", "assay", "demo", "--quick", "--json", "--folder", str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert demo.stderr is not None
    assert demo.stderr.readline() == f"campaign folder: {folder}\n"
    first_step = next(line for line in demo.stderr if " left " in line)
    demo.send_signal(signal.SIGTERM)
    out, _ = demo.communicate(timeout=60)

    assert re.match(r"\[\d\d:\d\d\] about .+ left ", first_step)
    assert demo.returncode == 130
    error = told(out)
    assert error["exit_code"] == 130
    assert f"`assay demo --quick --folder '{folder}'` goes on" in str(error["hint"])
    assert json.loads(assay("verify", str(folder), "--json").stdout)["ok"]
    assert not servers_of(folder)


def test_a_run_that_is_told_to_stop_early_ends_well_and_says_that_it_is_not_finished(tmp_path: Path) -> None:
    assert assay("init", "--model", "embedded", "--executable", "embedded", cwd=tmp_path).returncode == 0
    text = (tmp_path / "assay.toml").read_text()
    for as_it_comes, short in SHORTER.items():
        assert as_it_comes in text
        text = text.replace(as_it_comes, short)
    (tmp_path / "assay.toml").write_text(text)

    ended = assay("run", "--max-runs", "1", "--json", cwd=tmp_path)

    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert (found["finished"], found["headline"], found["launch_command"]) == (False, None, None)
    assert Path(found["report"]).is_file()
    assert "left" in ended.stderr
    assert json.loads(assay("status", "--json", cwd=tmp_path).stdout)["runs"] == 1


def test_a_plan_says_what_it_passed_over_and_why(tmp_path: Path) -> None:
    assert assay("init", "--model", "embedded", "--executable", "embedded", cwd=tmp_path).returncode == 0
    planned = assay("plan", cwd=tmp_path)
    assert "do not apply here; why: assay todo --all" in planned.stderr

    found = json.loads(assay("todo", "--all", "--json", cwd=tmp_path).stdout)

    assert found["passed_over"]
    assert not {item["id"] for item in found["todo"]} & set(found["passed_over"])
    assert all(reason for reason in found["passed_over"].values())
    in_words = " ".join(assay("todo", "--all", cwd=tmp_path).stdout.split())
    assert "does not apply here" in in_words
