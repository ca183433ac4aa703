"""Programs on the GPU as processes: what they write is read as it comes, and kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.api.gpu_process import run_program
from assay.errors import MeasurementError

PROGRAM = """
import json, pathlib, sys
asked = json.loads(pathlib.Path(sys.argv[1]).read_text())
with pathlib.Path(sys.argv[2]).open("a") as file:
    file.write(json.dumps({"kind": "point", "value": asked["value"]}) + "\\n" + '{"kind": "cut o')
if asked["value"] == 0:
    if asked.get("journal"):
        pathlib.Path(sys.argv[1]).with_name("journal").touch()
    sys.exit("PyTorch sees no CUDA device here")
if asked["value"] < 0:
    sys.exit("there is no such value")
"""


@pytest.fixture(autouse=True)
def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "measuring.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_a_second_run_keeps_what_the_first_one_measured(tmp_path: Path) -> None:
    heard: list[object] = []
    for value in (1, 2, 3):
        ran = run_program("measuring", {"value": value}, tmp_path, limit_s=60, watch=heard.append)
        assert (ran.rows, ran.problem) == ([{"kind": "point", "value": value}], None)
    assert heard == [{"kind": "point", "value": value} for value in (1, 2, 3)]
    kept = [(tmp_path / f"results{name}.jsonl").read_text().splitlines()[0] for name in (".1", ".2", "")]
    assert kept == [f'{{"kind": "point", "value": {value}}}' for value in (1, 2, 3)]


def test_a_program_that_dies_leaves_its_lines_and_its_last_words(tmp_path: Path) -> None:
    ran = run_program("measuring", {"value": -1}, tmp_path, limit_s=60)
    assert ran.rows == [{"kind": "point", "value": -1}]
    assert ran.problem == "it ended with 1: there is no such value"


def test_where_there_is_nothing_to_measure_on_no_folder_is_left_behind(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="nothing was measured: PyTorch sees no CUDA device"):
        run_program("measuring", {"value": 0}, tmp_path / "assay-tuned" / "of-a-model", limit_s=60)
    assert not (tmp_path / "assay-tuned").exists()


def test_what_somebody_put_beside_it_stays_and_does_not_hide_why_nothing_was_measured(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="nothing was measured: PyTorch sees no CUDA device"):
        run_program("measuring", {"value": 0, "journal": True}, tmp_path / "assay-tuned", limit_s=60)
    assert [path.name for path in (tmp_path / "assay-tuned").iterdir()] == ["journal"]
