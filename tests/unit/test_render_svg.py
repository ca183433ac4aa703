"""Charts: everything inside its frame, nothing on top of anything else, nothing invented."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assay.render import svg
from assay.render.svg_canvas import LETTER, NARROW, fit, rounded
from assay.render.svg_rows import LABEL_RIGHT, PLOT_LEFT, PLOT_RIGHT

PERCENT = st.floats(-99, 1000, allow_nan=False)


def places(chart: str, tag: str, kind: str) -> list[tuple[float, float]]:
    """Where text of a kind stands."""
    found = re.findall(rf'<{tag} class="{kind}" x="([\d.-]+)" y="([\d.-]+)"', chart)
    return [(float(x), float(y)) for x, y in found]


@settings(derandomize=True)
@given(st.lists(st.tuples(PERCENT, PERCENT, PERCENT).map(sorted), min_size=1, max_size=25))
def test_every_interval_is_drawn_inside_the_plot(bounds: list[list[float]]) -> None:
    rows = [svg.Row(label=f"o{i}", low=a, middle=b, high=c, band=(a, b)) for i, (a, b, c) in enumerate(bounds)]
    chart = svg.intervals(rows, "effects", min_effect=5)
    for value in re.findall(r'(?:x1|x2|cx)="([\d.-]+)"', chart):
        assert PLOT_LEFT - 0.1 <= float(value) <= PLOT_RIGHT + 0.1
    assert chart.count('class="point"') == len(rows)


def test_on_a_narrow_canvas_names_stand_above_what_is_drawn_and_nothing_leaves_the_frame() -> None:
    name, width = "a-name-that-is-much-longer-than-any-label-can-be-shown", NARROW.width
    dots = [svg.Dot(x=x, y=80 + x, kind="baseline", title=f"r{x}") for x in range(40)]
    charts = [
        svg.intervals(
            [svg.Row(label=name, low=-90, middle=5, high=900), svg.Row(label="b", note="no")], "t", canvas=NARROW
        ),
        svg.waterfall(
            [svg.Bar(label=name, start=0, end=100, kind="total", words="86.1 output tokens/s")], "t", canvas=NARROW
        ),
        svg.runs(
            dots, "t", "tokens/s", breaks=[(m, "pause of 9 h 00 min left out") for m in (3, 5, 38)], canvas=NARROW
        ),
        svg.cumulative([(name, "stack", [float(i) for i in range(99)])], "t", "ms", canvas=NARROW),
    ]
    for chart in charts:
        assert f'class="narrow" viewBox="0 0 {width:.0f} ' in chart
        assert all(0 <= float(x) <= width for x in re.findall(r'\b(?:x|x1|x2|cx)="([\d.-]+)"', chart))
        for x, anchor, words in re.findall(r'<text[^>]* x="([\d.]+)"[^>]*anchor="(start|end)">([^<]*)', chart):
            left = float(x) - (LETTER * len(words) if anchor == "end" else 0)
            assert -1 <= left <= left + LETTER * len(words) <= width + 1, words
    [label], [point] = places(charts[0], "text", "label")[:1], re.findall(r'cy="([\d.]+)"', charts[0])
    assert label[1] < float(point)


def test_twenty_five_rows_with_long_names_do_not_touch() -> None:
    name = "a-name-that-is-much-longer-than-any-label-can-be-shown"
    rows = [svg.Row(label=f"{name}-{i}", low=-1, middle=0, high=1) for i in range(25)]
    chart = svg.intervals(rows, "effects")
    heights = [y for _, y in places(chart, "text", "label")]
    assert len(heights) == 25
    assert all(later - earlier >= 16 for earlier, later in pairwise(heights))
    labels = re.findall(r'class="label"[^>]*>([^<]*)', chart)
    assert all(len(label) * LETTER <= LABEL_RIGHT for label in labels)
    assert f"<title>{name}-7</title>" in chart


def test_one_wide_interval_does_not_squeeze_the_others_and_is_marked_as_going_on() -> None:
    rows = [
        svg.Row(label="wide", low=-90, middle=5, high=900),
        svg.Row(label="narrow", low=4, middle=8, high=12),
    ]
    chart = svg.intervals(rows, "effects", min_effect=5)
    assert chart.count("<polyline") == 2
    narrow = re.findall(r'<line class="whisker" x1="([\d.]+)"[^>]*x2="([\d.]+)"', chart)[1]
    assert float(narrow[1]) - float(narrow[0]) > 50


def test_a_row_without_a_measurement_has_words_and_no_point() -> None:
    chart = svg.intervals([svg.Row(label="a", note="blocked: oom"), svg.Row(label="b", low=1, middle=2, high=3)], "t")
    assert chart.count('class="point"') == 1
    assert "blocked: oom" in chart


def test_the_waterfall_starts_each_change_where_the_one_before_ended() -> None:
    bars = [
        svg.Bar(label="baseline", start=0, end=100, kind="total", words="86.1"),
        svg.Bar(label="+ a", start=100, end=130, kind="gain", words="+30%"),
        svg.Bar(label="confirmed", start=0, end=125, kind="confirmed", words="+25%", low=115, high=135),
    ]
    chart = svg.waterfall(bars, "t")
    boxes = re.findall(r'<rect class="bar (\w+)" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', chart)
    ends = {kind: (float(x), float(x) + float(width)) for kind, x, width in boxes}
    assert ends["total"][1] == pytest.approx(ends["gain"][0], abs=0.11)
    assert ends["confirmed"][0] == ends["total"][0]
    assert 'class="whisker over"' in chart


def test_a_pause_is_marked_where_it_was_cut_out() -> None:
    dots = [svg.Dot(x=x, y=80 + x, kind="baseline", title=f"r{x}", target=f"run-{x}") for x in range(4)]
    chart = svg.runs(dots, "t", "tokens/s", breaks=[(1.5, "pause of 9 h 00 min left out")])
    assert "pause of 9 h 00 min left out" in chart
    assert chart.count('class="break"') == 1
    assert '<a href="#run-2">' in chart


def test_a_distribution_of_many_requests_stays_small_and_ends_at_the_top() -> None:
    chart = svg.cumulative([("baseline", "baseline", [float(i) for i in range(20_000)])], "t", "ms")
    assert len(chart) < 12_000
    points = re.search(r'points="([^"]*)"', chart)
    assert points is not None
    heights = [float(point.split(",")[1]) for point in points[1].split()]
    assert heights == sorted(heights, reverse=True)
    assert "median 10,000 ms, n = 20,000" in chart


def test_no_chart_is_drawn_of_nothing() -> None:
    assert svg.intervals([], "t") == svg.waterfall([], "t") == svg.runs([], "t", "u") == ""


@settings(derandomize=True)
@example(0.0, 5e-324)
@example(86.1, 86.1)
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_an_axis_holds_its_values_and_has_a_few_round_ticks(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    scale = rounded(low, high, 0, 100)
    rounding = 1e-9 * max(abs(low), abs(high), 1)
    assert scale.low <= low + rounding
    assert scale.high >= high - rounding
    assert 2 <= len(scale.ticks()) <= 12


def test_words_that_fit_stay_whole() -> None:
    assert fit("short", 100) == "short"
    assert fit("a-very-long-name", 50).endswith("\N{HORIZONTAL ELLIPSIS}")
