"""How a campaign ends at the terminal: the verdicts, the gain, the reasons, the command, the report, the limits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click
import pytest

from assay import api
from assay.cli.conclusion import conclude, quick_limits
from assay.errors import MeasurementError
from assay.render.report import report_html, report_markdown
from tests.cli.records import write_campaign

Capture = pytest.CaptureFixture[str]


def test_a_finished_campaign_ends_with_everything_one_needs(finished: Path, capsys: Capture) -> None:
    state = api.status(finished)

    conclude(finished, state, limits=[], as_json=False)

    text = capsys.readouterr().out
    order = ["headline", "Not adopted, and why:", "bad-value: at arguments", "Launch command to ship:", "report: "]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert all(name in text[: places[0]] for name in ("quicker", "pointless", "broken"))
    assert "confirmed on fresh runs" in " ".join(text.replace("│", " ").split())
    assert "--quicker" in text[places[3] :]
    assert "cannot claim" not in text
    assert text.endswith(f"report: {finished / 'report' / 'index.html'}\n")


def test_an_unconfirmed_stack_is_not_offered_for_shipping(finished: Path, capsys: Capture) -> None:
    state = api.status(finished)
    assert state.headline
    doubtful = state.model_copy(update={"headline": state.headline.model_copy(update={"confirmed": False})})

    conclude(finished, doubtful, limits=[], as_json=False)

    text = capsys.readouterr().out
    assert "NOT confirmed" in text
    assert "Launch command to ship" not in text


def test_of_somebody_elses_server_there_is_nothing_to_ship(finished: Path, capsys: Capture) -> None:
    state = api.status(finished)
    target = state.spec.target.model_copy(update={"url": "http://127.0.0.1:1"})
    theirs = state.model_copy(update={"spec": state.spec.model_copy(update={"target": target})})

    conclude(finished, theirs, limits=[], as_json=False)

    text = capsys.readouterr().out
    assert "The command that measures it again:" in text
    assert "Launch command to ship" not in text
    assert "measures it again" in report_html(theirs, launch_commands={"baseline": "assay bench"}, latencies=None)
    assert "measures it again" in report_markdown(theirs, launch_commands={"baseline": "assay bench"})


def test_an_unfinished_campaign_offers_no_command(halfway: Path, capsys: Capture) -> None:
    conclude(halfway, api.status(halfway), limits=[], as_json=False)

    text = capsys.readouterr().out
    assert "not finished" in text
    assert "Launch command" not in text


def test_a_campaign_that_measured_no_candidate_ends_with_the_exit_code_of_no_valid_measurement(
    tmp_path: Path, capsys: Capture
) -> None:
    folder = write_campaign(tmp_path / "campaign", total_s=1.0)
    state = api.status(folder)

    with pytest.raises(MeasurementError, match="no candidate was measured: the budget ended") as failed:
        conclude(folder, state, limits=[], as_json=False)
    assert failed.value.exit_code == 5
    assert "(the baseline: nothing was measured)" in capsys.readouterr().out

    with pytest.raises(click.exceptions.Exit) as ended:
        conclude(folder, state, limits=[], as_json=True)
    assert ended.value.exit_code == 5
    assert json.loads(capsys.readouterr().out)["headline"]["sentence"].startswith("Not measured")


def test_quick_says_which_claims_it_cannot_make(finished: Path, capsys: Capture) -> None:
    state = api.status(finished)
    limits = quick_limits(state)
    assert state.calibration

    conclude(finished, state, limits=limits, as_json=False)

    said = capsys.readouterr().out.split("What this campaign cannot claim:\n")[1]
    assert all(f"- {limit}\n" in said for limit in limits)
    assert f"{100 * state.calibration.min_detectable_effect:.0f}%" in said
    assert "ended undecided, at no more than 3 brackets each" in said


def test_quick_without_a_calibration_says_so(halfway: Path) -> None:
    assert any("not calibrated" in limit for limit in quick_limits(api.status(halfway)))


def test_for_programs_the_end_is_one_document(finished: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    conclude(folder, api.status(folder), limits=["nothing at all"], as_json=True)

    found = json.loads(capsys.readouterr().out)
    assert found["finished"]
    assert found["stack"] == ["quicker"]
    assert found["headline"]["confirmed"]
    assert found["launch_command"] == api.export(folder)
    assert found["report"] == str(folder / "report" / "index.html")
    assert found["cannot_claim"] == ["nothing at all"]
    assert set(found["verdicts"]) == {"quicker", "pointless", "broken"}
