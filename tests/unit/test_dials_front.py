"""Throughput against latency."""

from __future__ import annotations

import pytest

from assay.plan.dial_front import Outcome, front, outcomes
from assay.plan.dial_runs import series_of
from assay.render.dials_view import front_chart
from tests.unit.dials_world import drive, hill, start


def one(label: str, throughput: float, latency_s: float, *, is_baseline: bool = False) -> Outcome:
    return Outcome(label=label, throughput=throughput, latency_s=latency_s, num_runs=1, is_baseline=is_baseline)


FOUND = [
    one("baseline", 100, 0.02, is_baseline=True),
    one("quick", 90, 0.01),
    one("large <batch>", 300, 0.05),
    one("beaten", 80, 0.03),
    one("same", 100, 0.02),
]


def test_the_front_holds_what_nothing_beats_on_both_sides():
    assert [o.label for o in front(FOUND)] == ["quick", "baseline", "large <batch>"]
    assert front([]) == []


def test_every_arm_of_a_search_counts_once_with_all_its_runs():
    state, _ = drive(start(), hill)
    found = outcomes(state, series_of("dial"), "output_tokens_per_s", "tpot_p50_s")
    assert found[0].is_baseline
    assert sum(o.num_runs for o in found) == len(state.runs)
    assert sorted(run for o in found for run in o.runs) == sorted(run.intent.run_id for run in state.runs)


def test_the_sides_may_not_be_mixed_up():
    with pytest.raises(ValueError, match="want a throughput and a latency"):
        outcomes(start(), "main", "ttft_p50_s", "output_tokens_per_s")


def test_the_chart_shows_every_setting_and_names_it_safely():
    chart = front_chart(FOUND, "throughput against latency", "tok/s", "TPOT p50")
    assert chart.count("<circle") == len(FOUND)
    assert "large &lt;batch&gt;" in chart
    assert front_chart([], "nothing", "tok/s", "TPOT p50") == ""
