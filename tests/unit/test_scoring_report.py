"""What the report says of predictions, from records with known scores."""

from __future__ import annotations

import math
import re

import pytest

from assay.records.state import CampaignState
from assay.render import svg
from assay.render.report import report_html, report_markdown
from assay.render.scoring_chart import calibration_rows
from assay.render.scoring_facts import scoring
from assay.testing.sample_state import sample_state, sample_variants
from tests.unit.simulated_world import hypothesis, start
from tests.unit.test_credibility import entry, judged


def tried(factor: float, count: int = 8, *, sd: float = 0.02, left: int = 0) -> CampaignState:
    """A campaign in which every entry brought this share of what was predicted of it."""
    ranges = [(0.1 + 0.05 * i, 0.3 + 0.05 * i) for i in range(count + left)]
    entries = [entry(f"e{i}", i + 1, r, mechanism_id="batch") for i, r in enumerate(ranges)]
    state = start(entries).state
    for i, (low, high) in enumerate(ranges[:count]):
        state = judged(state, f"e{i}", factor * (math.log1p(low) + math.log1p(high)) / 2, sd)
    return state


def sentences(state: CampaignState) -> str:
    return " ".join(scoring(state).sentences)


def details(state: CampaignState) -> str:
    return " ".join(scoring(state).details)


def test_a_catalogue_that_promised_twice_as_much_is_called_too_optimistic_by_nearly_two() -> None:
    words = sentences(tried(0.5))

    assert re.search(r"too optimistic by x(1\.[7-9]|2\.0) on this class of machines \(simulated, llamacpp", words)
    assert "from 8 effects" in words
    assert "By mechanism, where it is clear: batch x0.5" in words


def test_a_catalogue_that_promised_too_little_is_called_too_cautious() -> None:
    assert "too cautious by x1." in sentences(tried(1.6))


def test_a_catalogue_of_which_nothing_came_is_not_told_as_a_huge_factor() -> None:
    words = sentences(tried(0.0, count=24))

    assert "Next to nothing of what the catalogue promised came" in words
    assert "by x" not in words


def test_a_bias_that_cannot_be_told_from_chance_is_not_told() -> None:
    for state in (tried(0.9, count=1), tried(1.0), tried(0.5, sd=1.0)):
        words = sentences(state)
        assert "cannot be told" in words
        assert "optimistic" not in words


def test_where_only_controls_were_measured_nothing_is_said_of_the_catalogues_promises() -> None:
    control = entry("c", 1, (-0.5, -0.2), expectation="control: should be worse")

    assert "Nothing that promised a gain was measured" in sentences(judged(start([control]).state, "c", -0.4))


def test_hits_are_held_against_what_was_to_be_expected_and_scores_against_knowing_nothing() -> None:
    words = details(tried(1.0, sd=0.001))

    assert "8 of 8 predicted ranges meet the measured interval." in sentences(tried(1.0))
    assert "8 of 8 estimates lie inside their range; 6.4 are to be expected of ranges that hold 80%" in words
    own, naive = (float(text) for text in re.findall(r"(?:score|have got) (\d\.\d\d)[ .]", words)[:2])
    assert own < naive
    assert "8 of 8 changes that were tried could be used here" in words


def test_what_could_not_be_used_is_told_with_the_chance_it_had() -> None:
    state = judged(start([entry("a", 1, (0.0, 0.2))]).state, "a", None)
    (row,) = scoring(state).rows

    assert (row.usable, row.measured, row.range_met) == ("no (80%)", "\N{EM DASH}", "\N{EM DASH}")
    assert "0 of 1 changes that were tried could be used here" in details(state)
    assert "Brier score of 0.64" in details(state)


def test_before_the_first_verdict_there_is_nothing_to_say() -> None:
    state = start([hypothesis("a")]).state

    assert scoring(state).rows == scoring(state).left == []
    assert svg.intervals(calibration_rows(state), "title") == ""
    assert "No predicted range can be scored yet" in report_html(state, launch_commands={}, latencies=None)
    assert "No prediction can be scored yet" in report_markdown(state, launch_commands={})


def test_what_is_left_is_listed_with_its_corrected_range_and_framed_in_the_plot() -> None:
    state = tried(0.3, left=2)
    rows = scoring(state).left
    chart = svg.intervals(calibration_rows(state), "title")

    assert [row.hypothesis for row in rows] == ["e9", "e8"]
    assert all(row.predicted != row.corrected for row in rows)
    assert chart.count('class="corrected"') == 2
    assert "What is left, in the order of expected gain" in report_html(state, launch_commands={}, latencies=None)


def test_the_plot_has_a_row_for_every_measured_prediction_the_highest_first() -> None:
    chart = svg.intervals(calibration_rows(tried(0.5, count=5)), "title")
    labels = re.findall(r'class="label"[^>]*>(e\d)<', chart)

    assert labels == ["e4", "e3", "e2", "e1", "e0"]
    assert chart.count('class="predicted"') == 5
    assert "title" in chart


@pytest.mark.parametrize("name", sample_variants())
def test_every_verdict_of_the_sample_has_a_row_in_html_and_markdown(name: str) -> None:
    state = sample_variants()[name]
    html, markdown = report_html(state, launch_commands={}, latencies=None), report_markdown(state, launch_commands={})
    found = scoring(state)

    for row in found.rows:
        assert f"| {row.hypothesis} | {row.predicted} | {row.measured} |" in markdown
    if found.rows:
        assert {row.hypothesis for row in found.rows} == set(state.verdicts)
        assert "Every score, and how it is reckoned" in html
        assert found.sentences[0] in markdown


def test_a_simulated_campaigns_calibration_plot_says_so() -> None:
    html = report_html(sample_state(), launch_commands={}, latencies=None, simulated=True)
    section = html[html.index('<h2 id="predictions"') : html.index('<h2 id="latency"')]

    assert section.count("SIMULATED") >= 3
