"""A dial that was searched shows its settings in the report; a simulated campaign says so wherever it is asked."""

from __future__ import annotations

import pytest

from assay.plan.forecast import describe_next
from assay.plan.steps import MakeRun
from assay.plan.todo import todo
from assay.records.run import Arm, Purpose, RunIntent
from assay.records.state import CampaignState
from assay.render.report import report_html
from assay.render.report_charts import fronts
from tests.unit.simulated_world import World, drive, hypothesis, perform, start


def searched() -> CampaignState:
    """Three settings of one dial, and the baseline, were run."""
    settings = {"batch 4": -0.1, "batch 8": 0.1, "batch 16": 0.2}
    journal = start([hypothesis("batch"), hypothesis("plain", 2)])
    for number, label in enumerate([None, *settings]):
        arm = Arm(label=label or "baseline", flags={}, deltas=[label] if label else [])
        intent = RunIntent(
            run_id=f"s{number}", purpose=Purpose.SEARCH, series="dial:batch", candidate=label, arm=arm, seed=1,
            attempt=1, why="searching",
        )  # fmt: skip
        perform(journal, MakeRun(intent=intent), World(effects=settings))
    return journal.state


def test_every_setting_of_a_searched_dial_is_a_dot_of_its_own_chart() -> None:
    drawn = fronts(searched(), "")

    assert list(drawn) == ["batch"]
    assert all(f"{label}: " in drawn["batch"] for label in ("baseline", "batch 4", "batch 8", "batch 16"))
    assert drawn["batch"] in report_html(searched(), launch_commands={"baseline": "server"}, latencies=None)


def test_without_a_search_the_report_has_no_such_section() -> None:
    journal = start([hypothesis("plain")])
    drive(journal, World())

    assert fronts(journal.state, "") == {}
    assert 'id="dials"' not in report_html(journal.state, launch_commands={"baseline": "server"}, latencies=None)


@pytest.mark.parametrize(("engine", "simulated"), [("rehearsal", True), ("llamacpp", False)])
def test_what_is_told_of_a_campaign_says_whether_it_is_simulated(engine: str, simulated: bool) -> None:
    state = searched()
    state = state.model_copy(update={"build": state.build.model_copy(update={"engine": engine})})

    assert state.is_simulated is simulated
    assert describe_next(state).simulated is simulated
    assert all(item.simulated is simulated for item in todo(state))
