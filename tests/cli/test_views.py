"""Looking at a campaign and handing it over: for people and for programs."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from assay import api
from assay.api.inspect import missing_path
from assay.cli import run_command
from tests.cli.records import CANDIDATES, EVENTS_HALFWAY, assay, write_campaign

Capture = pytest.CaptureFixture[str]


def document(capsys: Capture, *words: str) -> Any:
    assert run_command([*words, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def words_of(capsys: Capture, *words: str) -> str:
    assert run_command(words) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_status_of_a_finished_campaign_tells_its_headline(finished: Path, capsys: Capture) -> None:
    status = document(capsys, "status", "-f", str(finished))

    assert (status["name"], status["finished"], status["remaining_s"]) == ("a-campaign", True, 0)
    assert status["folder"] == str(finished)
    assert status["stack"] == ["quicker"]
    assert status["headline"]["confirmed"]
    assert {name: verdict["kind"] for name, verdict in status["verdicts"].items()} == {
        "quicker": "adopted",
        "pointless": status["verdicts"]["pointless"]["kind"],
        "broken": "blocked",
    }
    assert status["verdicts"]["pointless"]["kind"] in {"no-effect", "undecided"}


def test_status_of_a_campaign_in_progress_says_how_much_is_left(halfway: Path, capsys: Capture) -> None:
    status = document(capsys, "status", "-f", str(halfway))

    assert not status["finished"]
    assert status["headline"] is None
    assert status["remaining_s"] > 0
    assert 1 <= status["runs"] <= EVENTS_HALFWAY // 3


def test_status_in_words_names_campaign_stack_and_gain(finished: Path, capsys: Capture) -> None:
    text = " ".join(words_of(capsys, "status", "-f", str(finished)).split())

    assert all(word in text for word in ("a-campaign", "quicker", "finished", "confirmed on fresh runs"))


def test_todo_has_every_hypothesis_with_its_verdict(finished: Path, capsys: Capture) -> None:
    items = document(capsys, "todo", "-f", str(finished))

    assert sorted(item["id"] for item in items) == sorted(CANDIDATES)
    assert {item["status"] for item in items} <= {"completed", "cancelled"}
    assert all(item["verdict"]["reason"] for item in items)


def test_todo_in_words_has_a_line_for_each(halfway: Path, capsys: Capture) -> None:
    text = words_of(capsys, "todo", "-f", str(halfway))

    assert all(name in text for name in CANDIDATES)
    assert "pending" in text


def test_next_says_what_and_only_when_asked_why(halfway: Path, capsys: Capture) -> None:
    step = document(capsys, "next", "-f", str(halfway))
    short = words_of(capsys, "next", "-f", str(halfway))
    long = " ".join(words_of(capsys, "next", "-f", str(halfway), "--why").split())

    assert short == f"{step['text']}\n"
    assert step["why"]
    assert step["why"] not in short
    assert step["text"] in long
    assert step["why"] in long


def test_asking_for_the_next_step_changes_nothing(halfway: Path, capsys: Capture) -> None:
    before = (halfway / "assay.db").read_bytes()

    first = document(capsys, "next", "-f", str(halfway))
    second = document(capsys, "next", "-f", str(halfway))

    assert first == second
    assert (halfway / "assay.db").read_bytes() == before


def test_report_writes_two_files_and_prints_where(finished: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "a [bold] campaign with a name that is longer than a terminal's line, which must not be cut"
    shutil.copytree(finished, folder)

    lines = words_of(capsys, "report", "-f", str(folder)).splitlines()

    assert lines == [str(folder / "report" / "index.html"), str(folder / "report" / "report.md")]
    assert all("quicker" in Path(line).read_text(encoding="utf-8") for line in lines)
    assert document(capsys, "report", "-f", str(folder)) == dict(zip(("html", "markdown"), lines, strict=True))


def test_export_prints_the_stack_and_nothing_else(finished: Path, capsys: Capture) -> None:
    shell = words_of(capsys, "export", "-f", str(finished))

    assert shell.startswith("server ")
    assert "--quicker" in shell
    assert "--pointless" not in shell
    assert shell.endswith("\n")
    assert not shell.endswith("\n\n")


def test_export_warns_of_a_model_that_is_not_on_this_machine(finished: Path, tmp_path: Path) -> None:
    there, gone = tmp_path / "there.gguf", tmp_path / "gone.gguf"
    there.touch()
    state = api.status(finished)
    assert state.headline is not None

    def of(path: Path | str) -> str | None:
        return missing_path(
            state.model_copy(update={"model": state.model.model_copy(update={"path": str(path)})}), None
        )

    assert (of(there), of("owner/a-name-of-a-hub"), of(gone)) == (None, None, str(gone))


@pytest.mark.parametrize("kind", ["compose", "kubernetes"])
def test_export_speaks_other_languages(finished: Path, capsys: Capture, kind: str) -> None:
    assert "--quicker" in words_of(capsys, "export", "-f", str(finished), "--format", kind)


def test_export_as_json_is_the_same_by_either_option(finished: Path, capsys: Capture) -> None:
    by_format = json.loads(words_of(capsys, "export", "-f", str(finished), "--format", "json"))

    assert document(capsys, "export", "-f", str(finished)) == by_format
    assert "--quicker" in json.dumps(by_format)


@pytest.mark.parametrize(
    ("budget", "why"), [({"soak_s": 0.0}, "no soak was asked for"), ({"soak_s": 1e7}, "not soaked: no time: the")]
)
def test_export_says_that_no_soak_shows_what_it_ships_to_be_stable(
    tmp_path: Path, capsys: Capture, budget: dict[str, Any], why: str
) -> None:
    folder = write_campaign(tmp_path / "campaign", **budget)
    told = f"NOT SHOWN TO BE STABLE: {why}"

    assert words_of(capsys, "export", "-f", str(folder)).startswith(f"# {told}")
    assert document(capsys, "export", "-f", str(folder))["not_shown_stable"].startswith(told)


def test_export_of_what_was_soaked_says_nothing_of_it(finished: Path, capsys: Capture) -> None:
    assert "not_shown_stable" not in document(capsys, "export", "-f", str(finished))


def test_export_refuses_two_formats_at_once(finished: Path, capsys: Capture) -> None:
    assert run_command(["export", "-f", str(finished), "--json", "--format", "shell"]) == 2
    assert "contradict" in json.loads(capsys.readouterr().out)["error"]


def test_export_of_an_unfinished_campaign_says_to_carry_on(halfway: Path, capsys: Capture) -> None:
    assert run_command(["export", "-f", str(halfway)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "assay run" in captured.err.split("hint: ")[1]


def test_verify_takes_the_folder_either_way(finished: Path, capsys: Capture) -> None:
    by_argument = document(capsys, "verify", str(finished))

    assert by_argument == document(capsys, "verify", "--folder", str(finished))
    assert by_argument["ok"]
    assert by_argument["num_runs"] > 0
    assert "the record holds" in words_of(capsys, "verify", str(finished))


@pytest.fixture
def tampered(finished: Path, tmp_path: Path) -> Path:
    """One flag of one recorded run, changed behind Assay's back."""
    folder = tmp_path / "tampered"
    shutil.copytree(finished, folder)
    change = "UPDATE events SET payload = replace(payload, 'a-campaign', 'b-campaign') WHERE seq = 1"
    with closing(sqlite3.connect(folder / "assay.db")) as database, database:
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {trigger}")
        database.execute(change)
    return folder


def test_a_changed_record_fails_verification_and_says_where(tampered: Path, capsys: Capture) -> None:
    assert run_command(["verify", str(tampered)]) == 1
    captured = capsys.readouterr()

    assert "event 1" in captured.out
    assert captured.err.startswith("error: the record does not prove itself: ")
    assert "\n\nhint: " in captured.err


def test_a_changed_record_as_json_is_one_document_and_still_fails(tampered: Path, capsys: Capture) -> None:
    assert run_command(["verify", str(tampered), "--json"]) == 1
    captured = capsys.readouterr()

    found = json.loads(captured.out)
    assert captured.err == ""
    assert not found["ok"]
    assert any("event 1" in problem for problem in found["problems"])


def test_a_real_process_writes_data_to_stdout_only_and_no_colour_to_a_pipe(finished: Path) -> None:
    shown = assay("status", "--folder", str(finished))

    assert (shown.returncode, shown.stderr) == (0, "")
    assert "a-campaign" in shown.stdout
    assert "\x1b" not in shown.stdout


def test_the_folder_is_the_current_one_unless_said_otherwise(finished: Path) -> None:
    assert json.loads(assay("status", "--json", cwd=finished).stdout)["folder"] == str(finished)


def test_version_names_what_a_report_of_a_defect_needs(capsys: Capture) -> None:
    versions = document(capsys, "version")

    assert set(versions) == {"assay", "python", "platform", "packages"}
    assert versions["packages"]["pydantic"]
    assert "pytest" not in versions["packages"]
    assert words_of(capsys, "version").startswith(f"assay {versions['assay']}\n")
    assert words_of(capsys, "--version").split() == ["assay,", "version", versions["assay"]]
