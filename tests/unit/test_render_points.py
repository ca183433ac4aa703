"""A campaign over several operating points says at every place what its numbers are over."""

from __future__ import annotations

import pytest

from assay.campaign.gates import describe, failed_gates
from assay.records.run import Gate
from assay.records.spec import LoadPoint, Workload
from assay.records.state import CampaignState
from assay.render.report import report_html, report_markdown
from assay.render.stack_facts import operating_points
from assay.testing.sample_state import sample_state
from tests.unit.simulated_world import World, drive, hypothesis, small_spec, start

WORKLOAD = Workload(
    weight=3,
    points=[LoadPoint(name="c64", concurrency=64), LoadPoint(name="shown", concurrency=2, weight=0)],
)


@pytest.fixture(scope="module")
def finished() -> CampaignState:
    journal = start([hypothesis("good")], small_spec(workload=WORKLOAD))
    drive(journal, World(effects={"good": 0.3}, at_points={"c64": {"good": 0.1}}, run_sd=0.005))
    return journal.state


def test_every_operating_point_stands_in_the_question_with_its_weight(finished: CampaignState) -> None:
    main = WORKLOAD.concurrency
    said = f"main, {main} in flight: weight 3 of 4; c64, 64 in flight: weight 1 of 4; shown, 2 in flight: shown, not"
    assert f"| operating points | {said} judged" in report_markdown(finished, launch_commands={})
    assert f"<dt>operating points</dt><dd>{said} judged" in report_html(finished, launch_commands={}, latencies=None)


def test_the_confirmation_is_split_by_operating_point_with_each_ones_own_effect(finished: CampaignState) -> None:
    main, c64, _ = operating_points(finished)

    assert main.effect is not None
    assert c64.effect is not None
    assert main.effect.log_ratio == pytest.approx(0.3, abs=0.03)
    assert c64.effect.log_ratio == pytest.approx(0.1, abs=0.03)
    row = f"| c64, 64 in flight | weight 1 of 4 | {c64.confirmed_baseline} | {c64.confirmed_stack} | +"
    assert row in report_markdown(finished, launch_commands={})
    assert c64.confirmed_stack in report_html(finished, launch_commands={}, latencies=None)


def test_the_headline_says_that_its_medians_are_of_one_point_and_its_effect_of_all(finished: CampaignState) -> None:
    main = WORKLOAD.concurrency
    told = report_markdown(finished, launch_commands={}).split("## The question")[0]
    assert f"at main ({main} in flight) alone" in told
    assert "The effect is the weighted mean of the log ratios at 3 operating points" in told


def test_with_one_operating_point_nothing_is_said_of_points() -> None:
    assert operating_points(sample_state()) == []
    assert "operating point" not in report_markdown(sample_state(), launch_commands={})


def test_a_disturbed_machine_is_named_before_what_it_may_have_caused() -> None:
    few = Gate(name="enough-requests", passed=False, evidence="0 requests completed", remedy="longer windows")
    loud = Gate(name="machine-quiet", passed=False, evidence="other processes used 3.1 cores", remedy="stop them")
    good = Gate(name="no-errors", passed=True, evidence="none")

    assert [describe(gate) for gate in failed_gates([few, good, loud])] == [
        "machine-quiet: other processes used 3.1 cores (stop them)",
        "enough-requests: 0 requests completed (longer windows)",
    ]
