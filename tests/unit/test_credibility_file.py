"""The person's file of scores: whole or as it was, theirs to switch off, and never overwritten when not understood."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from assay.records.scoring import PredictionScore
from assay.store import credibility_file
from assay.store.credibility_file import KEPT, credibility_path, remember, remembered
from tests.unit.test_credibility import scored


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("ASSAY_CREDIBILITY", raising=False)
    return tmp_path / "state"


def named(name: str, campaign: str = "one") -> PredictionScore:
    return scored(name, (0.1, 0.4), 0.2).model_copy(update={"campaign": campaign})


def test_scores_come_back_as_they_were_kept(state_folder: Path) -> None:
    scores = [named("a"), named("b")]

    assert remembered() == []
    assert remember(scores) is None
    assert remembered() == scores
    assert [path.name for path in (state_folder / "assay").iterdir() if path.suffix != ".lock"] == ["credibility.json"]


def test_without_xdg_it_lies_in_the_state_folder_of_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))

    assert credibility_path() == tmp_path / ".local" / "state" / "assay" / "credibility.json"


def test_a_campaign_that_is_scored_again_replaces_its_scores_and_others_stay() -> None:
    remember([named("a", "one"), named("a", "two")])
    again = named("a", "one").model_copy(update={"predicted": (0.2, 0.4)})
    remember([again])

    assert remembered() == [named("a", "two"), again]


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no", "false"])
def test_switched_off_nothing_is_read_or_written(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    remember([named("a")])
    before = credibility_path().read_bytes()
    monkeypatch.setenv("ASSAY_CREDIBILITY", word)

    assert remembered() == []
    assert remember([named("b")]) == f"ASSAY_CREDIBILITY={word}"
    assert credibility_path().read_bytes() == before


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2, "scores": []}', '{"format": 1, "scores": [{"new": 1}]}'])
def test_a_file_that_is_not_understood_is_left_alone(text: str) -> None:
    credibility_path().parent.mkdir(parents=True)
    credibility_path().write_text(text)

    assert remembered() == []
    assert "move it away" in str(remember([named("a")]))
    assert credibility_path().read_text() == text


def test_a_folder_that_cannot_be_made_is_a_note_and_no_error(state_folder: Path) -> None:
    state_folder.write_text("a file in the way")

    assert "cannot be written" in str(remember([named("a")]))
    assert remembered() == []


def test_only_the_newest_scores_are_kept() -> None:
    one = named("a")
    remember([one.model_copy(update={"campaign": str(number)}) for number in range(KEPT)])
    remember([one.model_copy(update={"campaign": "newest"})])

    kept = remembered()
    assert len(kept) == KEPT
    assert (kept[0].campaign, kept[-1].campaign) == ("1", "newest")


def _write(number: int) -> None:
    assert remember([named(f"e{number}-{i}") for i in range(3)]) is None


def test_campaigns_that_end_together_lose_no_scores() -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert [writer.exitcode for writer in writers] == [0] * 4
    assert len(remembered()) == 12


def test_neither_paths_nor_prompts_nor_names_of_models_are_in_it() -> None:
    remember([named("a")])

    (kept,) = json.loads(credibility_path().read_text())["scores"]
    assert set(kept) == set(PredictionScore.model_fields)
    assert "m.gguf" not in credibility_path().read_text()
    assert credibility_file.FORMAT == 1
