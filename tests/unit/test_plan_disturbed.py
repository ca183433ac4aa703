"""A busy machine: runs whose gates failed are counted apart, and a campaign that measured nothing says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.api.assess import assess
from assay.api.inspect import status
from assay.api.plan import plan
from assay.campaign.loop import stop_where_nothing_counts
from assay.errors import AssayError, EngineError, MeasurementError, UsageError
from assay.plan.remaining import remaining_s
from assay.plan.scores import readable
from assay.plan.steps import Done, GiveUp
from assay.plan.todo import todo
from assay.records.run import RunStatus
from assay.records.spec import Budget, MetricName, Objective
from assay.store.record import SqliteRecord
from tests.unit.simulated_world import Journal, World, drive, hypothesis, small_spec, start, trouble_for

BUSY = World(trouble=trouble_for(None, RunStatus.INVALID))
QUIET = World(effects={"good": 0.3})


def campaign(total_s: float) -> Journal:
    budget = Budget(
        total_s=total_s, calibration_brackets=2, max_brackets=3, composition_brackets=3, confirmation_brackets=2
    )
    return start([hypothesis("good")], small_spec(budget=budget))


def test_sessions_on_a_busy_machine_leave_the_budget_to_the_one_on_a_quiet_machine() -> None:
    journal = campaign(300)
    for _ in range(12):
        step = drive(journal, BUSY)
        assert isinstance(step, GiveUp)
        assert "`assay run` again (300 s of the budget are left" in step.hint
    assert (journal.state.invalid_s, journal.state.charged_s) == (360, 0)

    assert isinstance(drive(journal, QUIET), Done)
    assert journal.state.stack == ["good"]
    assert journal.state.spent_s == journal.state.charged_s + 360


def test_a_session_whose_runs_do_not_count_stops_after_as_long_as_the_budget() -> None:
    journal = campaign(25)
    drive(journal, BUSY)

    stop_where_nothing_counts(journal.state, first_run=1)
    with pytest.raises(MeasurementError, match="took 30 s in this session, as long as the whole budget"):
        stop_where_nothing_counts(journal.state, first_run=0)


def test_whoever_has_spent_the_budget_is_not_told_to_run_again() -> None:
    journal = campaign(40)
    step = drive(journal, World(trouble=trouble_for(None, RunStatus.OK, RunStatus.OK, RunStatus.INVALID)))

    assert isinstance(step, GiveUp)
    assert "budget.total_s is spent" in step.hint
    assert "in a new folder" in step.hint
    assert "`assay run` again" not in step.hint


def test_while_it_calibrates_time_is_left_whatever_is_spent() -> None:
    journal = campaign(1)
    drive(journal, World(trouble=trouble_for(None, None, None, RunStatus.INVALID)))

    assert journal.state.charged_s > 1
    assert remaining_s(journal.state) >= 10


def test_a_campaign_that_measured_no_candidate_does_not_say_that_none_was_adopted() -> None:
    journal = campaign(1)

    assert isinstance(drive(journal, QUIET), Done)
    assert journal.state.headline is not None
    assert journal.state.headline.sentence.startswith("Not measured: the budget ended before any candidate;")
    assert [item.status for item in todo(journal.state)] == ["cancelled"]


def test_candidates_that_were_only_disturbed_are_not_measured_either() -> None:
    journal = campaign(1e6)

    drive(journal, World(trouble=trouble_for("good", RunStatus.INVALID)))

    assert journal.state.headline is not None
    assert journal.state.headline.sentence.startswith("Not measured: no run of any candidate passed its gates;")


def test_one_measured_candidate_makes_it_an_answer() -> None:
    journal = campaign(1e6)

    drive(journal, World(effects={"good": -0.3}))

    assert journal.state.headline is not None
    assert journal.state.headline.sentence.startswith("Nothing was adopted: ")


def test_what_the_plan_knows_to_be_blocked_is_shown_as_blocked_before_any_run() -> None:
    journal = start([hypothesis("good"), hypothesis("gone", 2, status="blocked")])

    told = {
        item.id: (item.status, item.verdict and (item.verdict.kind, item.verdict.cause)) for item in todo(journal.state)
    }

    assert told == {"good": ("pending", None), "gone": ("cancelled", ("blocked", "plan"))}


@pytest.mark.parametrize(
    ("metric", "told"),
    [("output_tokens_per_s", "output tokens/s"), ("requests_per_s", "requests/s"), ("tpot_p95_s", "TPOT p95")],
)
def test_a_sentence_names_the_metric_as_people_do(metric: MetricName, told: str) -> None:
    spec = small_spec(objective=Objective(metric=metric))

    assert readable(f"it: +5% in {metric}, confirmed.", spec) == f"it: +5% in {told}, confirmed."


QUESTION = '[target]\nengine = "llamacpp"\nmodel = "{folder}/m.gguf"\nexecutable = "{folder}/no-such-server"\n'


def test_a_plan_that_fails_leaves_no_record_that_other_commands_would_read(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text(QUESTION.format(folder=tmp_path))

    with pytest.raises(EngineError):
        plan(tmp_path)

    assert not (tmp_path / "assay.db").exists()


def test_an_empty_record_is_no_campaign_yet(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text(QUESTION.format(folder=tmp_path))
    with SqliteRecord(tmp_path / "assay.db", create=True):
        pass

    with pytest.raises(UsageError, match="holds no record"):
        status(tmp_path)
    assert assess(tmp_path).record is None
    with pytest.raises(AssayError):
        plan(tmp_path)
    assert not (tmp_path / "assay.db").exists()


def test_a_plan_that_fails_over_a_campaign_keeps_its_record(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text(
        '[target]\nmodel = "embedded"\nexecutable = "embedded"\n[policy]\nbuiltin_catalogue = false\n'
    )
    plan(tmp_path)
    (tmp_path / "assay.toml").write_text(
        '[target]\nmodel = "embedded"\nexecutable = "embedded"\n[budget]\ntotal_s = 7\n'
    )

    with pytest.raises(UsageError, match="changed after the campaign was created"):
        plan(tmp_path)
    assert status(tmp_path).planned
