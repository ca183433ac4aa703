"""The folder of a comparison: what in it counts, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.api.compare_folder import Runs
from assay.errors import RecordError, UsageError
from assay.records.compare import CompareQuestion
from tests.unit.bench_records import result

SIDES = ["http://127.0.0.1:8000", "embedded --threads 2"]
ASKED = CompareQuestion()


def begun(folder: Path, *labels: str, cut: bool = False) -> None:
    """Runs made by an earlier process, the last of them cut if so."""
    runs = Runs(folder, SIDES, ASKED)
    for place, label in enumerate(labels, start=1):
        _, run = runs.begin(label)
        (run / "server.log").write_text("ready")
        if not (cut and place == len(labels)):
            (run / "result.json").write_text(result().model_dump_json())


def test_whole_runs_are_taken_in_their_order_and_the_next_one_has_a_number_of_its_own(tmp_path: Path):
    begun(tmp_path, "A", "B", "A", "B", cut=True)
    runs = Runs(tmp_path, SIDES, ASKED)

    assert runs.num_kept == 3
    assert [runs.take(label) for label in ("A", "B", "A")] == [result()] * 3
    assert runs.take("B") is None
    assert runs.begin("B") == (5, tmp_path / "005-B")
    assert (tmp_path / "004-B" / "server.log").read_text() == "ready"


def test_the_number_of_a_run_that_left_nothing_behind_is_not_used_again(tmp_path: Path):
    _, run = Runs(tmp_path, SIDES, ASKED).begin("A")
    run.rmdir()

    assert Runs(tmp_path, SIDES, ASKED).begin("A") == (2, tmp_path / "002-A")


def test_after_a_pause_the_reference_is_measured_first_and_is_expected_there_when_carried_on_again(tmp_path: Path):
    begun(tmp_path, "A", "B", "A")
    runs = Runs(tmp_path, SIDES, ASKED)
    for label in ("A", "B", "A"):
        runs.take(label)
    assert runs.wants_reference("A")
    _, again = runs.begin("A")
    (again / "result.json").write_text(result().model_dump_json())
    assert not runs.wants_reference("A")

    later = Runs(tmp_path, SIDES, ASKED)
    for label in ("A", "B", "A"):
        later.take(label)
    assert later.wants_reference("A")
    assert later.take("A") is not None


def test_whole_runs_of_another_question_are_not_mixed_in(tmp_path: Path):
    begun(tmp_path, "A")

    for sides, asked in ((SIDES, CompareQuestion(min_effect=0.1)), (SIDES[::-1], ASKED)):
        with pytest.raises(UsageError, match="1 whole run of a comparison that was asked otherwise"):
            Runs(tmp_path, sides, asked)


def test_without_a_whole_run_the_folder_is_free_for_any_question(tmp_path: Path):
    begun(tmp_path, "A", cut=True)

    assert Runs(tmp_path, SIDES, CompareQuestion(min_effect=0.1)).begin("A") == (2, tmp_path / "002-A")


def test_an_answer_is_not_overwritten_and_a_folder_of_something_else_is_left_alone(tmp_path: Path):
    begun(tmp_path / "ours", "A")
    (tmp_path / "ours" / "comparison.json").write_text("{}")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.tex").write_text("")

    with pytest.raises(UsageError, match="has its answer"):
        Runs(tmp_path / "ours", SIDES, ASKED)
    with pytest.raises(UsageError, match="is not empty"):
        Runs(tmp_path / "theirs", SIDES, ASKED)


def test_a_run_that_is_damaged_or_missing_is_named(tmp_path: Path):
    begun(tmp_path, "A", "B")
    (tmp_path / "001-A" / "result.json").write_text("{")
    with pytest.raises(RecordError, match=r"001-A/result.json cannot be read"):
        Runs(tmp_path, SIDES, ASKED).take("A")
    (tmp_path / "001-A" / "result.json").unlink()
    with pytest.raises(RecordError, match="002-B is a run of B where one of A was next"):
        Runs(tmp_path, SIDES, ASKED).take("A")
