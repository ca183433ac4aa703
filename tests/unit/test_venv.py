"""Python engines are found by program, environment or interpreter, and asked without being imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from assay.engines.venv import locate, package
from assay.errors import EngineError

MODULE = ["-m", "vllm.entrypoints.cli.main"]


def executable(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_a_folder_of_an_environment_gives_its_program_and_its_python(tmp_path: Path) -> None:
    program, python = executable(tmp_path / "bin" / "vllm"), executable(tmp_path / "bin" / "python")
    found = locate(str(tmp_path), "vllm", MODULE)
    assert (found.argv, found.python, found.source) == ([program], python, "target.executable")


def test_a_python_without_the_program_starts_the_module(tmp_path: Path) -> None:
    python = executable(tmp_path / "bin" / "python3")
    assert locate(python, "vllm", MODULE).argv == [python, *MODULE]
    assert locate(str(tmp_path), "vllm", MODULE).argv == [python, *MODULE]


def test_the_program_in_path_is_taken_when_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = executable(tmp_path / "vllm")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = locate(None, "vllm", MODULE)
    assert (found.argv, found.source) == ([program], "PATH")


@pytest.mark.parametrize("named", [None, "/no/such/place", "."])
def test_what_is_not_there_is_said_with_what_to_do(
    named: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EngineError) as raised:
        locate(named, "vllm", MODULE)
    assert raised.value.hint


def test_a_package_says_its_version_and_folder() -> None:
    found = package(sys.executable, "pydantic")
    assert found.version[0].isdigit()
    assert found.folder is not None
    assert (found.folder / "__init__.py").is_file()


def test_a_package_that_is_not_there_is_an_engine_error() -> None:
    with pytest.raises(EngineError, match="no package no_such_engine"):
        package(sys.executable, "no_such_engine")
