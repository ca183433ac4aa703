"""Planning for a machine that is somewhere else, with an engine that is not installed here; and arriving there."""

from __future__ import annotations

from pathlib import Path
from shutil import copy

import pytest

from assay.api import status
from assay.api.plan_arrived import is_for
from assay.api.plan_budget import slow_start
from assay.api.plan_elsewhere import PlannedElsewhere, plan_elsewhere, planned_elsewhere
from assay.api.plan_elsewhere_target import Question
from assay.api.plan_explained import explained
from assay.catalogue.loader import builtin_folder
from assay.cli import run_command
from assay.errors import UsageError
from assay.probes.machine import MachineProbe
from assay.store.elsewhere_file import read_elsewhere
from assay.store.machine_file import write_machine
from tests.unit.machines import CALM, box, one_h200

STORY = (
    "python -m sglang.launch_server --model-path /models/GLM-5-NVFP4 --tp 8 --max-running-requests 2048"
    " --num-continuous-decode-steps 16 --mem-fraction-static 0.92"
)
FEW = ("mscclpp", "expert-parallel", "numa-binding", "piecewise-cuda-graph", "stream-interval")


def asked(folder: Path) -> Path:
    """A folder whose question is about few entries, so that little is read and written."""
    assert run_command(["init", "--folder", str(folder), "--engine-version", "0.5.9", "--command", STORY]) == 0
    (folder / "entries").mkdir()
    for name in FEW:
        copy(builtin_folder() / f"{name}.toml", folder / "entries")
    spec = folder / "assay.toml"
    text = spec.read_text()
    for key, value in (
        ("builtin_catalogue = true", "builtin_catalogue = false"),
        ("\ncatalogue = []", '\ncatalogue = ["entries"]'),
        ("output_tokens = [16, 48]", "output_tokens = [1024, 1024]"),
        ("input_tokens = [24, 64]", "input_tokens = [1024, 1024]"),
        ("concurrency = 8", "concurrency = 2048"),
    ):
        assert key in text
        text = text.replace(key, value)
    spec.write_text(text)
    return folder


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PlannedElsewhere]:
    folder = asked(tmp_path_factory.mktemp("laptop") / "glm5")
    return folder, plan_elsewhere(folder, Question(on="8xRTX-PRO-6000", version="0.5.9"))


def test_a_plan_for_another_machine_needs_neither_its_engine_nor_a_record(
    planned: tuple[Path, PlannedElsewhere],
) -> None:
    folder, found = planned

    ranges = {one.id: one.predicted for one in found.state.hypotheses}
    assert ranges.keys() == {"expert-parallel", "piecewise-cuda-graph", "stream-interval"}
    assert ranges["expert-parallel"][1] > 0.1
    assert ranges["piecewise-cuda-graph"] == (0.0, 0.0)
    assert "no message above 1 MiB" in found.state.passed_over["mscclpp"]
    assert not (folder / "assay.db").exists()
    again = planned_elsewhere(folder)
    assert again is not None
    assert again.state.hypotheses == found.state.hypotheses


def test_what_only_the_machine_can_tell_is_said_and_undecided(planned: tuple[Path, PlannedElsewhere]) -> None:
    _, found = planned

    told = explained(found.state, "numa-binding")
    assert told.reasoning.reason.startswith("cannot be decided: machine.numa_nodes")
    assert any(one.startswith("processors, memory, NUMA nodes") for one in told.plan.surroundings.missing)


def test_times_of_such_a_machine_that_the_question_has_no_room_for_are_told(
    planned: tuple[Path, PlannedElsewhere],
) -> None:
    _, found = planned

    loading = slow_start(found.state)
    assert loading is not None
    assert "start_timeout_s is 5 min 00 s, and a launch is expected to take 8 min 26 s" in loading
    assert any("An answer takes about" in one for one in found.state.reasoning.surroundings.sentences)


def test_each_document_says_for_whom_it_was_made_and_from_what(planned: tuple[Path, PlannedElsewhere]) -> None:
    folder, _ = planned
    text = next((folder / "improvements").glob("*-expert-parallel.md")).read_text()

    assert "> Made for another machine, 8x RTX PRO 6000" in text
    assert "the recorded flags of SGLang 0.5.9 (sglang 0.5.9 wheel" in text
    assert "python -m sglang.launch_server" in text
    assert "--ep-size 8" in text
    assert "--model-path /models/GLM-5-NVFP4" in text


def test_a_run_here_is_refused_with_the_way_to_take_the_folder_there(
    planned: tuple[Path, PlannedElsewhere], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = planned

    assert run_command(["run", "--folder", str(folder)]) == 2

    told = capsys.readouterr().err
    assert "was planned for another machine, 8x RTX PRO 6000" in told
    assert "copy the folder to that machine" in told
    assert not (folder / "assay.db").exists()
    assert run_command(["todo", "--folder", str(folder)]) == 2
    assert "`assay plan` shows that plan" in capsys.readouterr().err


def test_with_the_machines_file_its_own_facts_decide(tmp_path: Path) -> None:
    folder = asked(tmp_path / "glm5")

    write_machine(tmp_path / "box.json", box())

    found = plan_elsewhere(folder, Question(machine=tmp_path / "box.json", version="0.5.9"))

    assert found.state.machine == box().machine
    assert "cannot be decided" not in found.state.reasoning.entries["numa-binding"].reason


def test_planned_again_for_another_version_edited_documents_stay_and_removed_ones_stay_away(tmp_path: Path) -> None:
    folder = asked(tmp_path / "glm5")
    plan_elsewhere(folder, Question(on="8xRTX-PRO-6000", version="0.5.9"))
    edited = next((folder / "improvements").glob("*-expert-parallel.md"))
    edited.write_text(edited.read_text().replace("approved: false", "approved: true"))
    next((folder / "improvements").glob("*-stream-interval.md")).unlink()

    plan_elsewhere(folder, Question(version="0.5.8"))
    again = plan_elsewhere(folder, Question(version="0.5.10"))

    by_id = {one.id: one for one in again.state.hypotheses}
    assert by_id["expert-parallel"].approved
    assert "stream-interval" not in by_id
    assert "SGLang 0.5.9" in edited.read_text()
    other = next((folder / "improvements").glob("*-piecewise-cuda-graph.md")).read_text()
    assert "SGLang 0.5.10" in other

    edited.unlink()

    last = plan_elsewhere(folder, Question(version="0.5.9"))
    assert [one.id for one in last.state.hypotheses] == ["piecewise-cuda-graph"]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (Question(version="0.5.9"), "none is named"),
        (Question(on="8xRTX-PRO-6000", machine=Path("box.json")), "both name the machine"),
        (Question(on="8xRTX-PRO-6000", version="new"), "no version"),
        (Question(on="8xRTX-PRO-6000", version="0.5.9", model="no-such-model"), "shape of the model is not known"),
        (Question(on="8xNO-SUCH-GPU", version="0.5.9"), "no device is called"),
    ],
)
def test_a_target_that_cannot_be_known_from_here_is_refused(tmp_path: Path, question: Question, words: str) -> None:
    folder = asked(tmp_path / "glm5")

    with pytest.raises(UsageError, match=words):
        plan_elsewhere(folder, question)

    assert not (folder / "elsewhere.json").exists()


def test_the_machine_is_known_again_by_fingerprint_or_by_its_gpus(planned: tuple[Path, PlannedElsewhere]) -> None:
    folder, _ = planned
    named = read_elsewhere(folder)
    assert named is not None
    eight, one = box().machine, one_h200().machine
    told = named.model_copy(update={"snapshot": box(), "box": None})
    half = eight.model_copy(update={"gpus": eight.gpus[:4]})

    assert [is_for(named, machine) for machine in (eight, half, one, CALM.machine)] == [True, False, False, False]
    assert [is_for(told, machine) for machine in (eight, half)] == [True, False]


def test_on_its_machine_the_folder_is_planned_again_with_what_is_installed_and_keeps_what_a_person_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run_command(["init", "--folder", str(tmp_path / "c"), "--model", "embedded", "--executable", "embedded"]) == 0
    )
    spec = tmp_path / "c" / "assay.toml"
    spec.write_text(spec.read_text().replace("only = []", 'only = ["parallel-slots", "one-thread", "poll-busy"]'))
    write_machine(tmp_path / "here.json", MachineProbe().stock())
    plan_elsewhere(tmp_path / "c", Question(machine=tmp_path / "here.json", model="smollm2-135m"))
    improvements = tmp_path / "c" / "improvements"
    slots, dropped = next(improvements.glob("*-parallel-slots.md")), next(improvements.glob("*-poll-busy.md"))
    slots.write_text(slots.read_text().replace("approved: false", "approved: true"))
    dropped.unlink()
    capsys.readouterr()

    assert run_command(["plan", "--folder", str(tmp_path / "c")]) == 0

    assert "planned from elsewhere" in capsys.readouterr().err
    state = status(tmp_path / "c")
    assert {one.id: one.approved for one in state.hypotheses} == {"parallel-slots": True, "one-thread": False}
    assert "Made for another machine" in slots.read_text()
    assert "Made for another machine" not in next(improvements.glob("*-one-thread.md")).read_text()
    assert not (tmp_path / "c" / "elsewhere.json").exists()
    with pytest.raises(UsageError, match="holds a record"):
        plan_elsewhere(tmp_path / "c", Question(on="H200"))


def test_a_plan_takes_the_version_that_the_question_was_written_for(tmp_path: Path) -> None:
    folder = asked(tmp_path / "glm5")
    question = folder / "assay.toml"
    assert "--tensor-parallel-size = 8" in question.read_text()  # as 0.5.9 has it; later ones say --tp-size

    assert plan_elsewhere(folder, Question(on="8xRTX-PRO-6000")).elsewhere.engine == "SGLang 0.5.9"

    question.write_text(question.read_text().replace('"0.5.9"', '"0.5.10"'))
    assert plan_elsewhere(folder, Question(on="8xRTX-PRO-6000")).elsewhere.engine == "SGLang 0.5.10"


@pytest.mark.parametrize("spelling", ["--tensor-parallel-size", "--tp"])
def test_any_spelling_that_a_version_takes_is_one_flag(tmp_path: Path, spelling: str) -> None:
    folder = asked(tmp_path / "glm5")
    question = folder / "assay.toml"
    question.write_text(question.read_text().replace("--tensor-parallel-size", spelling))

    old = plan_elsewhere(folder, Question(on="8xRTX-PRO-6000", version="0.5.9"))
    assert old.state.spec.target.flags["--tensor-parallel-size"] == 8
    new = plan_elsewhere(folder, Question(on="8xRTX-PRO-6000", version="0.5.23"))
    assert new.state.spec.target.flags["--tp-size"] == 8
    assert new.state.spec.target.engine_version is None

    question.write_text(question.read_text().replace(f"\n{spelling} = 8", "\n--tp = 8\n--tp-size = 4"))
    with pytest.raises(UsageError, match="--tp and --tp-size are one flag"):
        plan_elsewhere(folder, Question(on="8xRTX-PRO-6000"))


def test_a_question_in_other_spellings_is_the_recorded_one_until_a_value_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "c"
    assert run_command(["init", "--folder", str(folder), "--model", "embedded", "--executable", "embedded"]) == 0
    spec = folder / "assay.toml"
    text = spec.read_text().replace("only = []", 'only = ["one-thread"]')
    spec.write_text(
        text.replace("[target.flags]", '[target.flags]\n"-np" = 4')
        .replace("# engine_version", "engine_version")
        .replace('engine_version = "0.5.9"', 'engine_version = "b9000"')
    )

    for _ in range(2):
        assert run_command(["plan", "--folder", str(folder)]) == 0
        assert status(folder).spec.target.flags == {"--parallel": 4}

    spec.write_text(spec.read_text().replace('"-np" = 4', '"-np" = 2'))
    capsys.readouterr()
    assert run_command(["plan", "--folder", str(folder)]) == 2
    assert "target.flags.--parallel = 2 (recorded: 4)" in capsys.readouterr().err


def test_a_note_of_the_machine_that_was_cut_is_told_in_words_and_written_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = asked(tmp_path / "glm5")
    plan_elsewhere(folder, Question(on="8xRTX-PRO-6000"))
    note = folder / "elsewhere.json"
    note.write_text(note.read_text()[:40])

    assert run_command(["plan", "--folder", str(folder)]) == 2
    told = capsys.readouterr().err
    assert "this is not JSON; it was cut or edited" in told
    assert "validation error" not in told
    assert run_command(["plan", "--folder", str(folder), "--on", "8xRTX-PRO-6000"]) == 0
    again = read_elsewhere(folder)
    assert again is not None
    assert set(again.documents.values()) == {"edited"}  # nobody knows any more
