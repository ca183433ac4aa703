"""An estimate as it is shown: terminal at two widths, page, charts, and the sums of a steady closed loop."""

from __future__ import annotations

import re
from html import unescape

import pytest
from rich.console import Console, RenderableType

from assay.records.estimate import Range
from assay.render import estimate_rows as rows
from assay.render import estimate_words as words
from assay.render.estimate_charts import estimate_charts, off_the_chart
from assay.render.estimate_page import estimate_html
from assay.render.estimate_view import estimate_view
from assay.render.svg_roofline import LogScale, roofline, speed
from assay.roofline.serving import held, load_at_context, load_of_requests, prompts_point
from tests.unit import estimate_records as made

REPORT = made.report()
PAGE = unescape(estimate_html(REPORT))


def shown(view: RenderableType, width: int) -> str:
    console = Console(width=width, highlight=False, markup=False, emoji=False, no_color=True)
    with console.capture() as capture:
        console.print(view)
    return capture.get()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Range(low=41.2, mid=48, high=57.9), "41..58"),
        (Range(low=1390.0, mid=2000, high=3100), "1,400..3,100"),
        (Range(low=41.2, mid=41.5, high=42.9), "41.2..42.9"),
        (Range(low=0.0, mid=0.1, high=0.25), "0..0.250"),
        (Range(low=7.0, mid=7.0, high=7.0), "7.00"),
    ],
)
def test_a_range_is_told_with_the_digits_it_has(value: Range, said: str) -> None:
    assert words.range_words(value) == said


def test_units_fit_the_size() -> None:
    assert words.time_range_words(made.spread(0.1)) == "67..150 ms"
    assert words.time_range_words(made.spread(10)) == "6.7..15 s"
    assert [words.size_words(size) for size in (89_856, 57.1e9, 1.7e12)] == ["89,856 B", "57.1 GB", "1.70 TB"]
    assert [words.parameter_words(count) for count in (743.9e9, 124e6, 1.02e12)] == ["744 B", "124 M", "1.02 T"]
    assert words.rate_words(1.792e12, "bytes/s") == "1,792 GB/s"
    assert words.rate_words(45e9, "flop/s") == "45.0 GFLOP/s"
    assert words.basis_words(["measured", "assumed", "spec"]) == "assumed"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("every", [False, True])
def test_every_line_fits_the_terminal_and_nothing_needs_colour(width: int, every: bool) -> None:
    text = shown(estimate_view(REPORT, every=every), width)

    assert "\x1b" not in text
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width


def test_the_terminal_says_what_runs_where_the_time_goes_and_what_would_help() -> None:
    text = " ".join(shown(estimate_view(REPORT), 80).split())

    assert "744 B parameters, 40.1 B active without embedding and head (8 of 256 experts)" in text
    assert "the cache holds 314,304 tokens: 245 requests of 1,280" in text
    assert "2,048 requests of 1,280 tokens need 2.6 M tokens of cache; 314,304 fit: 245 run, the rest wait" in text
    assert text.index("all_reduce") < text.index("routed_experts.gate_up") < text.index("2 smaller")
    assert text.index("+35% Expert parallelism EP8") < text.index("+6% Persistent kernels")
    assert "less: L2 pinning <1%; cannot act here: MSCCL++ all-reduce. Why: --all" in text
    assert text.endswith("tokens spread evenly over experts")


def test_why_something_cannot_act_is_told_on_demand() -> None:
    reason = "messages of 3.0 MB are above its 1 MiB"

    assert reason not in shown(estimate_view(REPORT), 120)
    assert reason in shown(estimate_view(REPORT, every=True), 120)


def test_shares_of_the_operations_and_of_the_host_are_the_whole_step() -> None:
    for phase in ("decode", "prefill"):
        assert sum(row.share for row in rows.op_rows(REPORT.point, phase=phase)) == pytest.approx(1.0)


def test_a_dense_model_says_nothing_of_experts_and_a_context_nothing_of_prompts() -> None:
    report = made.report((1, 64), load_at_context(4096))
    dense = report.model_copy(update={"model": report.model.model_copy(update={"num_experts": 0})})
    text = shown(estimate_view(dense), 120)

    assert "active" not in text
    assert "routing" not in text
    assert "with prompts" not in text
    assert "decode at 4,096 tokens in the cache of each sequence" in text


def test_the_page_names_every_operation_source_and_reason_and_refers_to_nothing_outside() -> None:
    for op in REPORT.point.decode.ops[:5]:
        assert op.name in PAGE
    for mechanism in REPORT.point.mechanisms:
        assert mechanism.title in PAGE
        assert mechanism.reason in PAGE
    assert "a elsewhere source, 2026-03" in PAGE
    assert not re.search(r"(src|href)=\"(?!#)|url\(|@import", PAGE)
    targets = set(re.findall(r'href="#([^"]+)"', PAGE))
    assert targets <= set(re.findall(r'id="([^"]+)"', PAGE))


def test_the_roofline_shows_what_does_arithmetic_and_names_what_does_none() -> None:
    chart = estimate_charts(REPORT)["roofline"]

    assert 'role="group" aria-label="roofline of one Card 6000' in chart
    assert "routed_experts.gate_up in decode" in chart
    assert "routed_experts.gate_up in prefill" in chart
    assert "memory 1,800 GB/s, spec" in chart
    assert "memory 1,500 GB/s, elsewhere" in chart
    assert "all_reduce" not in chart
    assert off_the_chart(REPORT) == ["all_reduce"]


def test_a_chart_without_points_is_no_chart() -> None:
    assert roofline([], [], [], "nothing") == ""
    assert speed([(1, 1, 2, 3, 4)], "one point", "x", "y", "z") == ""


def test_a_logarithmic_axis_has_decades_and_keeps_what_lies_outside_at_its_ends() -> None:
    scale = LogScale(low=1.0, high=1000.0, start=0.0, end=300.0)

    assert scale.ticks() == [1, 10, 100, 1000]
    assert [scale(value) for value in (0.01, 1, 10, 1e6)] == pytest.approx([0, 0, 100, 300])


def test_what_the_cache_does_not_hold_waits_by_littles_law() -> None:
    point = REPORT.points[-1]

    assert (point.asked, point.running) == (2048, 245)
    assert point.output_tokens_per_s is not None
    assert point.queue_s is not None
    requests_per_s = point.output_tokens_per_s.mid / 256
    assert point.queue_s.mid == pytest.approx((2048 - 245) / requests_per_s)


def test_prompts_in_between_cost_what_they_take() -> None:
    point = REPORT.points[1]

    assert point.prompts is not None
    assert point.output_tokens_per_s is not None
    per_step = 64 / 256
    cycle = point.decode.time_s.mid + per_step * point.prompts.time_s.mid / point.prompts.point.sequences
    assert point.output_tokens_per_s.mid == pytest.approx(64 / cycle)
    assert point.prompt_share == pytest.approx(1 - point.decode.time_s.mid / cycle)


def test_requests_that_fit_are_not_held_back() -> None:
    assert held(made.memory(), load_of_requests(1024, 256), 245) == (245, "")
    assert held(made.memory(), load_of_requests(1024, 256), 246)[0] == 245


def test_a_time_of_a_token_counts_the_prompts_of_others_but_not_those_of_its_own_step() -> None:
    point = REPORT.points[1]

    assert point.prompts is not None
    assert (point.running, point.prompts.point.sequences) == (64, 8)
    others = (64 - 8) / 256 * point.prompts.time_s.mid / 8
    assert point.tpot_s.mid == pytest.approx(point.decode.time_s.mid + others)


def test_prompts_come_as_many_as_run_and_never_beyond_a_step() -> None:
    load = load_of_requests(1024, 256)

    assert [prompts_point(load, running).sequences for running in (1, 4, 512)] == [1, 4, 8]  # type: ignore[union-attr]
    assert prompts_point(load_of_requests(100_000, 10), 512).sequences == 1  # type: ignore[union-attr]
    assert prompts_point(load_at_context(0), 1) is None


def test_a_larger_batch_is_said_to_need_more_requests_in_flight() -> None:
    """At a fixed number of streams it is worth nothing, whatever the cache would hold."""
    other = REPORT.point.mechanisms[0]
    batch = other.model_copy(update={"id": "max-concurrency", "title": "Larger batch"})

    assert words.mechanism_title(batch) == "Larger batch (needs more requests in flight)"
    assert words.mechanism_title(other) == other.title
