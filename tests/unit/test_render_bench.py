"""Load tests as they are shown: whole at 80 columns, nothing said by colour alone, nothing invented, nothing hidden."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console, RenderableType

from assay.records.bench import Arrival, BenchResult, Comparison, SeriesPoint, SweepResult
from assay.render import text_plots
from assay.render.bench_charts import bench_charts, compare_charts, measured_windows, sweep_charts
from assay.render.bench_facts import load_facts
from assay.render.bench_live import LiveBench, PlainBench, QuietBench
from assay.render.bench_report import bench_html, compare_html, sweep_html
from assay.render.bench_view import bench_view, sweep_view
from assay.render.bench_words import arrival_words, slo_words, time_words, workload_words
from assay.render.compare_view import compare_view, undecidable
from assay.render.live_words import health_of
from tests.unit import bench_records as made
from tests.unit.test_render_progress import Clock
from tests.unit.test_render_report import Page

NO_FIRST_TOKEN = {"ttft_p50_s": None, "ttft_p99_s": None}
RESULTS: dict[str, BenchResult] = {
    "closed": made.result(), "open": made.open_loop(), "refused": made.refused(), "unmeasured": made.unmeasured(),
}  # fmt: skip
SWEEPS: dict[str, SweepResult] = {
    "with-knee": made.sweep(), "without-knee": made.sweep(knee=None), "two": made.sweep((1, 256), None),
    "nothing": SweepResult(points=[made.unmeasured()], knee=None, knee_reason="0 measured points"),
}  # fmt: skip
COMPARISONS: dict[str, Comparison] = {
    "three": made.comparison(),
    "nothing": made.comparison(values={}, effects={}, verdicts={}, sentences={}, invalid={"C": ["did not start"]}),
    "latency": made.comparison(metric="ttft_p99_s", higher_is_better=False),
}


def drawn(part: RenderableType, width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, no_color=True, highlight=False, markup=False, emoji=False).print(part)
    return stream.getvalue()


def wide(chart: str) -> str:
    """Of a chart that is drawn for two widths."""
    return chart.partition('<svg class="narrow"')[0]


def views() -> dict[str, RenderableType]:
    shown: dict[str, RenderableType] = {f"bench-{name}": bench_view(one) for name, one in RESULTS.items()}
    shown |= {f"sweep-{name}": sweep_view(one) for name, one in SWEEPS.items()}
    return shown | {f"compare-{name}": compare_view(one) for name, one in COMPARISONS.items()}


def pages() -> dict[str, str]:
    shown = {f"bench-{name}": bench_html(one) for name, one in RESULTS.items()}
    shown |= {f"sweep-{name}": sweep_html(one) for name, one in SWEEPS.items()}
    return shown | {f"compare-{name}": compare_html(one) for name, one in COMPARISONS.items()}


@pytest.mark.parametrize("width", [80, 130])
@pytest.mark.parametrize("name", views())
def test_no_line_is_longer_than_the_terminal_and_no_control_code_is_written(name: str, width: int) -> None:
    text = drawn(views()[name], width)

    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


def test_at_80_columns_each_percentile_stands_over_its_interval_with_unit_and_count() -> None:
    lines = drawn(bench_view(made.result())).splitlines()
    (place,) = [number for number, line in enumerate(lines) if line.startswith("TTFT")]

    assert re.search(r"TTFT +4\d\d +5\d\d +6\d\d +\N{EM DASH}", lines[place])
    assert re.match(r"ms, n 800 +\[3\d\d, 4\d\d\] +\[5\d\d, 5\d\d\] +\[\d+, \d+\]$", lines[place + 1].rstrip())


def test_where_there_is_room_the_interval_stands_beside_its_percentile() -> None:
    text = drawn(bench_view(made.result()), 130)

    assert re.search(r"TTFT, ms +4\d\d \[3\d\d, 4\d\d\].* 800$", text, re.MULTILINE)
    assert re.search(r"ITL per chunk, ms .* 102,360$", text, re.MULTILINE)


def test_the_summary_has_throughput_goodput_errors_load_lengths_and_the_client() -> None:
    text = " ".join(drawn(bench_view(made.result()), 200).split())

    for words in (
        "3,412 tokens/s (window by window: 3,398, 3,422, 3,415)",
        "10,236 tokens/s, prompts included",
        "24.0 requests/s, 90.0% of those completed, met TTFT <= 500 ms and TPOT <= 50 ms",
        "0 of 812 requests",
        "63.7 of 64 on average, 64 at most",
        "mean 256, p50 256, max 256 tokens",
        "2 processes, 0.45 cores, the busiest 30% of one; 20.9 CPU s per million tokens",
        "the kernel's receive timestamps; 0.4% of chunks share one with the chunk before",
        "98,000 tokens/s from the null server, 28.7 times what was measured (it can send 140,000)",
        "pass no-errors",
    ):
        assert words in text


def test_under_an_open_law_latency_from_the_intended_send_has_a_name_of_its_own() -> None:
    closed, opened = drawn(bench_view(made.result())), " ".join(drawn(bench_view(made.open_loop()), 200).split())

    assert "from intended" not in closed
    assert "TTFT from intended" in opened
    assert "E2E from intended" in opened
    assert "24.9 requests/s sent, 99.6% of 25.0 due; CV of the gaps 1.01" in opened


def test_only_a_closed_loop_is_called_one() -> None:
    trace = made.result(spec=made.result().spec.model_copy(update={"arrival": Arrival(kind="trace")}))

    assert "the server sets the pace" in drawn(bench_view(made.result()), 200)
    assert "the server sets the pace" not in drawn(bench_view(trace), 200)


def test_numbers_that_failed_a_gate_are_called_so_with_the_evidence_and_the_remedy_before_them() -> None:
    text = drawn(bench_view(made.refused()), 100)
    flat = " ".join(text.replace("│", " ").split())

    assert "NOT TO BE USED: 2 of 5 gates failed" in flat
    assert text.index("remedy: give it more processes") < text.index("TTFT")
    assert re.search(r"^ ?NOT TO BE USED +p50", text, re.MULTILINE)
    assert "FAIL client-not-saturated" in flat
    assert "3 of 812 requests: 2 http-503, 1 reset" in flat
    assert "http-503: overloaded" in flat


def test_what_is_not_to_be_used_is_also_struck_through() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=80, force_terminal=True, color_system="standard", legacy_windows=False)
    console.print(bench_view(made.refused()))

    assert re.search(r"\x1b\[[\d;]*9m3,412", stream.getvalue())


def test_a_test_that_measured_nothing_shows_no_number() -> None:
    text = drawn(bench_view(made.unmeasured()))

    assert "nothing could be measured" in text
    assert "tokens/s (" not in text
    assert "not calibrated on this machine" in text
    assert not re.search(r"\b(nan|inf|None)\b", text)


def test_a_sweep_has_a_row_a_load_the_knee_and_what_does_not_count() -> None:
    text = drawn(sweep_view(made.sweep()))

    assert re.search(r"^ ?64 .*knee", text, re.MULTILINE)
    assert re.search(r"^ ?256 .*NO", text, re.MULTILINE)
    assert "knee at 64 (◆): throughput over latency is greatest here" in " ".join(text.split())
    assert "256: NOT TO BE USED" in text
    assert "no knee found: go higher" in drawn(sweep_view(made.sweep(knee=None)))


def test_a_comparison_begins_with_what_can_be_quoted() -> None:
    text = drawn(compare_view(made.comparison()), 120)

    assert text.startswith("two threads gives 39.5% [+33.6, +45.6] more output tokens/s than one thread.")
    assert re.search(r"two threads +better +\+39\.5% \[\+33\.6, \+45\.6\] +4 +120 output tokens/s", text)
    assert "! C: client-not-saturated" in text
    assert "within ±5% is the same; 95% intervals, valid at every look" in " ".join(text.split())


def test_a_side_without_an_effect_is_undecidable() -> None:
    assert undecidable(COMPARISONS["three"]) == []
    assert undecidable(COMPARISONS["nothing"]) == ["two threads", "C"]
    assert "not measured" in drawn(compare_view(COMPARISONS["nothing"]))


def test_latencies_of_a_comparison_are_in_milliseconds_and_better_lower() -> None:
    text = drawn(compare_view(COMPARISONS["latency"]), 120)

    assert "ms TTFT p99, lower is better" in text
    assert "86,100 ms TTFT p99" in text


@pytest.mark.parametrize("name", pages())
def test_a_page_is_whole_and_self_contained_and_every_link_leads_somewhere(name: str) -> None:
    html = pages()[name]
    page = Page(html)

    assert (page.stack, page.wrong, page.outside) == ([], [], [])
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert not re.search(r"url\(|@import|<script|src=|\bnan\b|\bNone\b", html)
    assert html.startswith("<!doctype html>")


def test_the_page_of_a_load_test_has_its_numbers_charts_and_gates() -> None:
    page = Page(bench_html(made.open_loop()))

    assert (
        "3,412 output tokens/s; median TTFT 409 ms, median TPOT 18.2 ms. Load: poisson arrivals at 25/s." in page.text
    )
    assert "TTFT from intended, ms" in page.text
    assert bench_html(made.open_loop()).count("<svg") == 2 * 5
    assert "0 of 812 requests failed" in page.text


def test_the_page_of_a_refused_test_says_so_first_and_strikes_its_numbers() -> None:
    html = bench_html(made.refused())
    text = Page(html).text

    assert text.index("NOT TO BE USED: 2 of 5 gates failed") < text.index("What was asked")
    assert "Remedy: give it more processes (--processes), or another machine." in text
    assert '<span class="void">3,412 output tokens/s' in html
    assert html.count("<figcaption>NOT TO BE USED.") == 5
    assert '<span class="void">' not in bench_html(made.result())


def test_text_from_a_server_is_never_markup() -> None:
    hostile = made.refused().model_copy(update={"first_error": "<script>x</script>", "engine": "<b>[bold]e[/bold]"})

    assert "<script" not in bench_html(hostile)
    assert "[bold]e[/bold]" in drawn(bench_view(hostile), 120)


@pytest.mark.parametrize("name", RESULTS)
def test_charts_stay_in_their_frame(name: str) -> None:
    drawn_charts = [chart for both in bench_charts(RESULTS[name]).values() for chart in both.split("</svg>") if chart]
    for chart in drawn_charts:
        width = 358 if chart.startswith('<svg class="narrow"') else 760
        places = [float(x) for x in re.findall(r'\b(?:x|x1|x2|cx)="([\d.-]+)"', chart)]
        points = [
            float(point.split(",")[0]) for each in re.findall(r'points="([^"]*)"', chart) for point in each.split()
        ]
        assert all(0 <= x <= width for x in places + points)


def test_the_measured_windows_are_shaded_where_they_were() -> None:
    windows = measured_windows(made.result())

    assert windows == [(6.0, 16.0), (16.0, 26.0), (26.0, 36.0)]
    assert wide(bench_charts(made.result())["throughput"]).count('class="band"') == 3
    assert wide(bench_charts(made.result())["throughput"]).count('class="level"') == 3


def test_a_slow_start_does_not_press_the_measured_windows_flat() -> None:
    chart = bench_charts(made.result())["ttft"]
    heights = [float(y) for y in re.findall(r'class="tick"[^>]*text-anchor="end">([\d.]+)<', chart)]

    assert (made.series()[1].ttft_p99_s or 0) > 3.5
    assert max(heights) <= 2.5


def with_first_tokens(every: int, silent: range = range(0)) -> list[SeriesPoint]:
    """A load in whose every n-th stretch a first token came, except in the silent ones."""
    some = next(point for point in made.series() if point.ttft_p50_s)
    return [
        some.model_copy(update={"at_s": 0.25 * at} | ({} if at % every == 0 and at not in silent else NO_FIRST_TOKEN))
        for at in range(120)
    ]


def test_sparse_first_tokens_are_dots_on_one_line_and_not_dashes() -> None:
    chart = wide(bench_charts(made.result(series=with_first_tokens(every=4)))["ttft"])

    assert chart.count('<polyline class="line baseline"') == 1
    assert chart.count('class="median baseline"') == 30


def test_the_line_of_first_tokens_breaks_where_none_came_for_unusually_long() -> None:
    stalled = wide(bench_charts(made.result(series=with_first_tokens(every=4, silent=range(40, 80))))["ttft"])
    dense = wide(bench_charts(made.result(series=with_first_tokens(every=1)))["ttft"])

    assert stalled.count('<polyline class="line baseline"') == 2
    assert (dense.count('<polyline class="line baseline"'), dense.count('class="median baseline"')) == (1, 0)


def test_what_was_decided_for_the_user_stands_with_the_load() -> None:
    result = made.result(notes=["no model was named: base was taken"])

    assert "no model was named: base was taken" in bench_html(result)
    assert ("note", "no model was named: base was taken") in load_facts(result)


def test_nothing_is_drawn_of_nothing() -> None:
    assert set(bench_charts(made.unmeasured()).values()) == {""}
    assert set(sweep_charts(SWEEPS["nothing"]).values()) == {""}
    assert set(compare_charts(COMPARISONS["nothing"]).values()) == {""}


def test_the_curve_of_a_sweep_names_every_valid_load_and_marks_the_knee() -> None:
    chart = wide(sweep_charts(made.sweep())["users"])

    assert re.findall(r'class="key note[^"]*"[^>]*>([^<]+)<', chart) == ["1", "4", "16", "64, the knee"]
    assert chart.count('class="dot stack"') == 1


def test_names_of_crowded_points_never_touch() -> None:
    chart = wide(sweep_charts(made.sweep(tuple(range(1, 40)), None))["users"])
    found = re.findall(r'class="key note[^"]*" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]+)<', chart)
    boxes = [(float(x), float(y), float(x) + 6.2 * len(words)) for x, y, words in found]

    assert len(boxes) > 10
    for number, (left, base, right) in enumerate(boxes):
        assert not any(left < r and x < right and abs(base - y) < 12 for x, y, r in boxes[number + 1 :])


def test_the_curve_in_the_terminal_is_as_wide_as_told_and_marks_the_knee() -> None:
    lines = text_plots.curve([(80.0, 80.0, "1"), (60.0, 1200.0, "16"), (40.0, 2500.0, "64")], marked=2)

    assert max(map(len, lines)) <= 72
    assert "◆ 64" in lines[0]
    assert lines[-3].rstrip().endswith("o")
    assert text_plots.curve([]) == []


def test_a_sparkline_begins_at_zero_and_shows_the_latest() -> None:
    assert text_plots.sparkline([0.0, 50.0, 100.0], 10) == "▁▅█"
    assert text_plots.sparkline([100.0] * 5 + [1.0], 3) == "██▁"
    assert text_plots.sparkline([0.0, 0.0], 5) == "▁▁"


def test_runs_that_fall_together_are_marked_as_several() -> None:
    lines = text_plots.strips({"A": [1.0, 1.0, 2.0], "B": [3.0]}, width=21)

    assert lines[0] == "A │@         o"
    assert lines[1].endswith("o")
    assert text_plots.strips({"A": []}) == []


def test_plain_lines_come_every_few_seconds_and_whenever_the_phase_changes() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = PlainBench(stream, clock=clock)
    progress.phase("64 streams", 0.0, None)
    progress.tick(made.live(phase="warming up", left_s=None))
    clock.now += 1.0
    progress.tick(made.live(phase="warming up", left_s=None))
    clock.now += 1.0
    progress.tick(made.live())
    for _ in range(12):
        clock.now += 1.0
        progress.tick(made.live())
    progress.result("every gate passed", good=True)

    lines = stream.getvalue().splitlines()
    assert [line[:8] for line in lines] == ["[00:00] ", "[00:00] ", "[00:02] ", "[00:07] ", "[00:12] ", "[00:14] "]
    assert lines[1].endswith("until steady")
    assert lines[2] == (
        "[00:02] measuring: 3,412 tokens/s, 26.7 requests/s, 64 of 64 in flight, 320 done, 0 failed; TTFT p50 412 ms, "
        "ITL p50 18.2 ms; client ok (busiest process 30%, lag 0.400 ms); about 24 s left"
    )
    assert lines[-1] == "[00:14] + every gate passed"


def panel(progress: LiveBench, width: int = 80) -> str:
    return drawn(progress.view(), width)


def live_bench(clock: Clock) -> tuple[LiveBench, io.StringIO]:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, color_system=None, legacy_windows=False)
    return LiveBench(console, clock=clock), stream


def test_the_panel_says_that_it_does_not_know_how_long_a_warm_up_takes() -> None:
    progress, _ = live_bench(Clock())
    progress.phase("64 streams", 0.0, None)
    progress.tick(made.live(phase="warming up", left_s=None))

    assert "how long it takes is not known yet" in panel(progress)
    assert "warming up, until steady" in panel(progress)


def test_the_panel_has_share_left_throughput_load_latency_and_the_clients_health() -> None:
    progress, _ = live_bench(Clock())
    progress.phase("64 streams", 0.0, None)
    for rate in (1000.0, 3000.0, 3412.0):
        progress.tick(made.live(output_tokens_per_s=rate))
    text = panel(progress)

    assert max(map(len, text.splitlines())) <= 80
    for words in (
        "64 streams",
        "33%",
        "about 24 s left",
        "3,412",
        "▃█",
        "64 of 64 in flight",
        "TTFT p50 412 ms",
        "client",
    ):
        assert words in text


def test_over_a_sweep_the_bar_is_that_of_the_whole() -> None:
    clock = Clock()
    progress, _ = live_bench(clock)
    progress.phase("point 3 of 6: 16 streams", 100.0, 240.0)
    clock.now += 20.0
    progress.tick(made.live())

    assert "50%" in panel(progress)
    assert "about 2 min 00 s left, 20 s so far" in panel(progress)
    clock.now += 900.0
    assert "100%" in panel(progress)
    assert "about 0 s left" in panel(progress)


@pytest.mark.parametrize(
    ("share", "lag_s", "word"),
    [(0.3, 0.001, "ok"), (0.75, 0.001, "busy"), (0.3, 0.02, "busy"), (0.95, 0.0, "SATURATED"), (0.1, 0.08, "SATURATED"),
     (None, None, "not known yet"), (None, 0.02, "busy")],
)  # fmt: skip
def test_the_clients_health_is_a_word_before_it_is_a_colour(
    share: float | None, lag_s: float | None, word: str
) -> None:
    progress, _ = live_bench(Clock())
    progress.tick(made.live(client_busiest_share=share, client_lag_s=lag_s))

    assert health_of(made.live(client_busiest_share=share, client_lag_s=lag_s)) == word
    assert word in panel(progress)


def test_the_panel_is_drawn_at_most_twice_a_second_and_never_between_reports() -> None:
    clock = Clock()
    progress, stream = live_bench(clock)
    with progress:
        progress.phase("64 streams", 0.0, None)
        for number in range(50):
            clock.now += 0.009
            progress.tick(made.live(completed=1000 + number))
        written = stream.getvalue()
        clock.now += 60.0
        assert stream.getvalue() == written
        progress.tick(made.live(completed=2000))
    assert "1,049 done" not in written
    assert "2,000 done" in stream.getvalue()


def test_results_stay_above_the_panel_and_are_no_markup() -> None:
    progress, stream = live_bench(Clock())
    with progress:
        progress.result("x: [bold] is not markup", good=False)

    assert "! x: [bold] is not markup" in stream.getvalue()


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with QuietBench() as progress:
        progress.phase("x", 0.0, None)
        progress.tick(made.live())
        progress.result("y")

    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"concurrency": 64}, "64 streams, closed loop"),
        ({"kind": "poisson", "rate_per_s": 4.5}, "poisson arrivals at 4.5/s"),
        ({"kind": "constant", "rate_per_s": 4, "concurrency": 9}, "constant arrivals at 4/s, at most 9 in flight"),
        ({"kind": "gamma", "rate_per_s": 4, "cv": 2}, "gamma arrivals at 4/s, CV 2"),
        ({"kind": "ramp", "rate_per_s": 50, "start_rate_per_s": 1}, "arrivals rising from 1/s to 50/s over 60 s"),
        ({"kind": "trace"}, "the trace's own instants"),
        ({"kind": "trace", "rate_per_s": 3}, "the trace, rescaled to 3/s"),
    ],
)
def test_an_arrival_law_in_words(fields: dict[str, object], words: str) -> None:
    from assay.records.bench import Arrival

    assert arrival_words(Arrival.model_validate(fields)) == words


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "synthetic: 256 tokens in, 128 out, nothing shared"),
        (
            {
                "input": {"kind": "uniform", "mean": 250, "low": 100, "high": 400},
                "prefix_groups": 4,
                "prefix_tokens": 512,
            },
            "synthetic: 100 to 400 tokens in, 128 out, after one of 4 shared prefixes of 512 tokens",
        ),
        (
            {"output": {"kind": "normal", "mean": 64, "sd": 8}},
            "synthetic: 256 tokens in, 64 ± 8 (normal) out, nothing shared",
        ),
    ],
)
def test_a_synthetic_workload_in_words(fields: dict[str, object], words: str) -> None:
    from assay.records.bench import Synthetic

    assert workload_words(Synthetic.model_validate(fields)) == words


def test_a_workload_from_a_file_in_words() -> None:
    from assay.records.bench import Dataset

    words = workload_words(Dataset(kind="sharegpt", path="x.json", sha256="ab" * 32, max_requests=1000))
    assert words == "sharegpt requests from x.json, the first 1,000 (sha256 abababababab)"


@pytest.mark.parametrize(
    ("seconds", "words"), [(None, "\N{EM DASH}"), (12.0, "12.0 s"), (0.412, "412 ms"), (0.00002, "20.0 µs")]
)
def test_a_time_has_the_unit_that_fits(seconds: float | None, words: str) -> None:
    assert time_words(seconds) == words


def test_bounds_are_shown_as_they_were_given() -> None:
    assert slo_words(made.result().spec.slo) == "TTFT <= 500 ms and TPOT <= 50 ms"
