"""`assay init`: from options, from questions, and what it refuses."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from assay.cli import run_command

Capture = pytest.CaptureFixture[str]


def spec_in(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "assay.toml").read_text(encoding="utf-8"))


def refused(capsys: Capture, *words: str) -> str:
    assert run_command(["init", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert "\n\nhint: " in captured.err
    return captured.err


def test_a_model_file_becomes_an_absolute_path_and_options_land_in_the_file(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    options = ["--concurrency", "16", "--executable", "embedded", "--name", "night"]

    assert run_command(["init", "-f", str(tmp_path), "--model", str(tmp_path / "model.gguf"), *options]) == 0

    spec = spec_in(tmp_path)
    assert spec["name"] == "night"
    assert spec["target"]["model"] == str(tmp_path / "model.gguf")
    assert spec["target"]["executable"] == "embedded"
    assert spec["workload"]["concurrency"] == 16
    assert str(tmp_path / "assay.toml") in capsys.readouterr().out


def test_a_campaign_is_named_after_its_folder(tmp_path: Path) -> None:
    assert run_command(["init", "-f", str(tmp_path / "new" / "night-shift"), "--model", "embedded"]) == 0
    assert spec_in(tmp_path / "new" / "night-shift")["name"] == "night-shift"


def test_a_launch_command_gives_model_program_and_flags(tmp_path: Path) -> None:
    command = f"llama-server -m {tmp_path}/m.gguf -c 8192 --host 0.0.0.0 --log-file x -np 4"

    assert run_command(["init", "-f", str(tmp_path), "--command", command]) == 0

    target = spec_in(tmp_path)["target"]
    assert (target["model"], target["executable"]) == (f"{tmp_path}/m.gguf", "llama-server")
    assert 8192 in target["flags"].values()
    assert not {"--host", "--log-file"} & set(target["flags"])


def test_an_existing_question_is_never_overwritten(tmp_path: Path, capsys: Capture) -> None:
    assert run_command(["init", "-f", str(tmp_path), "--model", "embedded"]) == 0
    before = (tmp_path / "assay.toml").read_bytes()
    capsys.readouterr()

    assert "exists already" in refused(capsys, "-f", str(tmp_path), "--model", "embedded", "--concurrency", "2")
    assert (tmp_path / "assay.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--command", "server -m x.gguf", "--url", "http://127.0.0.1:1"], "--command and --url contradict"),
        (["--model", "embedded", "--api-key-env", "KEY"], "--api-key-env belongs to --url"),
        (["--url", "http://me:secret@127.0.0.1:1"], "http://me:[redacted]@127.0.0.1:1 cannot stand in assay.toml"),
        (["--command", "vllm"], "starts no server whose model is known"),
        (["--url", "http://127.0.0.1:1", "--concurrency", "4"], "--concurrency cannot be given with --url"),
        (["--command", "server -m x.gguf", "--executable", "other"], "--executable cannot be given with --command"),
        (["--command", "server -m 'x.gguf"], "No closing quotation"),
        (["--command", ""], "--command is empty"),
        (["--model", "not-there.gguf"], "there is no model file"),
        (["--url", "http://127.0.0.1:1"], "did not answer"),
        (["--concurrency", "0"], "--concurrency"),
        ([], "no model was given"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Path(os.devnull).open(encoding="utf-8"))  # noqa: SIM115 - as a cron job has it

    assert said in refused(capsys, "-f", str(tmp_path / "new"), *words)
    assert not (tmp_path / "new").exists()
    sys.stdin.close()


def test_at_a_terminal_it_asks_again_until_the_model_exists(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"not-there.gguf\nembedded\n24\n")

    asked = subprocess.run(
        [sys.executable, "-m", "assay", "init", "--folder", str(tmp_path)],
        stdin=theirs, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)

    assert asked.returncode == 0, asked.stderr
    assert "there is no model file" in asked.stderr
    assert asked.stdout.startswith(f"wrote {tmp_path}")
    assert spec_in(tmp_path)["target"]["model"] == "embedded"
    assert spec_in(tmp_path)["workload"]["concurrency"] == 24
