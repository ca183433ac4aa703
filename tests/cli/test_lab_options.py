"""`assay characterize` as the lab: no option is ignored without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.cli import run_command


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--layout", "tp8", "--tokens", "64"], "--layout, --tokens: only with --moe MODEL or --what-if MODEL"),
        (["--moe", "glm-5", "--on", "h200", "--step", "12"], "--step: not with --moe"),
        (["--what-if", "glm-5", "--routing", "zipf:1"], "--routing: not with --what-if"),
        (["--moe", "glm-5", "--on", "h200", "--run", "x"], "--run: not with --moe"),
        (["--what-if", "glm-5", "--on", "h200"], "--on: not with --what-if"),
        (["--model", "llama-3.1-8b", "--on", "h200", "--routing", "zipf:1"], "llama-3.1-8b has no experts"),
        (["--on", "cpu", "--routing", "zipf:1"], "--routing: an estimate of processors"),
    ],
)
def test_an_option_that_the_question_does_not_listen_to_is_refused(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["characterize", *words]) == 2
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_floors_by_data_sheet_are_shown_and_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["characterize", "--moe", "glm-5", "--on", "h200", "--layout", "tp8", "--tokens", "64"]) == 0
    assert "256 experts, hidden 6144, width 256" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
