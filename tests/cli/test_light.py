"""Light: what a command does not use, it does not import. (How long it takes: `benchmarks/lightness.py`.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.records import modules_loaded_by

HEAVY = {"pydantic", "sqlalchemy", "numpy", "scipy", "rich", "pyarrow", "jinja2", "psutil", "frontmatter", "tomlkit"}


@pytest.mark.parametrize("words", [["-c", "import assay"], ["-m", "assay", "--help"], ["-m", "assay", "version"]])
def test_nothing_heavy_is_imported(words: list[str]) -> None:
    loaded = modules_loaded_by(words)

    assert "assay" in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize("command", ["demo", "init", "run", "status", "export"])
def test_the_help_of_a_command_imports_nothing_heavy(command: str) -> None:
    assert not modules_loaded_by(["-m", "assay", command, "--help"]) & HEAVY


def test_status_of_a_finished_campaign_imports_no_numerics_and_no_database_layer(finished: Path) -> None:
    loaded = modules_loaded_by(["-m", "assay", "status", "--folder", str(finished)])

    assert loaded & HEAVY == {"pydantic", "rich"}


def test_status_of_a_campaign_in_progress_counts_what_is_left_without_numerics(halfway: Path) -> None:
    loaded = modules_loaded_by(["-m", "assay", "status", "--folder", str(halfway)])

    assert loaded & HEAVY == {"pydantic", "rich"}
