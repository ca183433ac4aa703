"""Progress: an estimate that follows the planner, and no drawing between events."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from assay.render.progress import PlainProgress, QuietProgress, RichProgress, fitted


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def live(clock: Clock) -> tuple[RichProgress, io.StringIO]:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, color_system=None, legacy_windows=False)
    return RichProgress(console, clock=clock), stream


def shown(progress: RichProgress) -> str:
    stream = io.StringIO()
    Console(file=stream, width=100, color_system=None).print(progress.view())
    return stream.getvalue()


def test_plain_progress_writes_one_line_a_step_with_elapsed_and_left() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = PlainProgress(stream, clock=clock)
    progress.step("first", done_s=0.0, total_s=200.0)
    progress.phase("launching")
    clock.now += 65.0
    progress.step("second", done_s=65.0, total_s=95.0)
    progress.result("a: worse", good=False)
    progress.result("b: adopted", good=True)
    assert stream.getvalue().splitlines() == [
        "[00:00] about 3 min 20 s left  first",
        "[01:05] about 30 s left  second",
        "[01:05] ! a: worse",
        "[01:05] + b: adopted",
    ]


def test_plain_progress_tells_a_phase_that_lasts_once_with_its_newest_figures() -> None:
    clock, stream = Clock(), io.StringIO()
    with PlainProgress(stream, clock=clock, patience_s=0.02) as progress:
        progress.step("a", done_s=0.0, total_s=60.0)
        for cores in (3, 2):
            progress.phase(f"waiting for a quiet machine: other processes use {cores} cores")
        assert progress._told_later is not None
        progress._told_later.join(10.0)
        progress.phase("waiting for a quiet machine: other processes use 1 cores")
    assert stream.getvalue().splitlines()[1:] == ["[00:00] waiting for a quiet machine: other processes use 2 cores"]


def test_plain_progress_tells_a_soak_at_once_and_sets_no_timer_while_it_measures() -> None:
    stream = io.StringIO()
    with PlainProgress(stream, clock=Clock(), patience_s=60.0) as progress:
        progress.phase("launching")
        launch = progress._told_later
        progress.phase("warming up, then measuring")
        assert launch is not None
        assert launch.finished.is_set()
        assert progress._told_later is None
        progress.phase("soaking: 60 s of 8 in flight (main)")
    assert stream.getvalue() == "[00:00] soaking: 60 s of 8 in flight (main)\n"


def test_quiet_progress_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with QuietProgress() as progress:
        progress.step("x", done_s=0, total_s=1)
        progress.phase("y")
        progress.result("z")
    assert capsys.readouterr() == ("", "")


def test_the_live_view_has_share_left_step_and_phase() -> None:
    progress, _ = live(Clock())
    assert "not known yet" in shown(progress)
    progress.step("measuring a", done_s=30.0, total_s=120.0)
    progress.phase("launching")
    text = shown(progress)
    assert all(words in text for words in ("25%", "about 1 min 30 s left", "measuring a: launching"))


def test_an_estimate_that_moved_is_shown_beside_the_first_one() -> None:
    progress, _ = live(Clock())
    progress.step("a", done_s=0.0, total_s=100.0)
    progress.step("b", done_s=10.0, total_s=105.0)
    assert "at first" not in shown(progress)
    progress.step("c", done_s=20.0, total_s=180.0)
    assert "about 2 min 40 s left, 0 s so far (at first 1 min 40 s in all)" in shown(progress)


def test_more_spent_than_expected_is_neither_above_100_percent_nor_a_negative_time() -> None:
    progress, _ = live(Clock())
    progress.step("a", done_s=130.0, total_s=120.0)
    text = shown(progress)
    assert "100%" in text
    assert "about 0 s left" in text


def test_a_new_phase_is_drawn_at_once_for_it_may_last() -> None:
    progress, stream = live(Clock())
    with progress:
        progress.step("a", done_s=0.0, total_s=100.0)
        progress.phase("launching")
        assert "a: launching" in stream.getvalue()


def test_the_view_has_two_lines_and_cuts_the_step_before_what_is_done_in_it() -> None:
    progress, _ = live(Clock())
    progress.step("learning this box's noise: bracket 1 of 2 of the baseline against itself", done_s=0.0, total_s=7300)
    progress.step("learning this box's noise: bracket 2 of 2 of the baseline against itself", done_s=9.0, total_s=4100)
    progress.phase("warming up, then measuring")

    lines = shown(progress).splitlines()

    assert len(lines) == 2
    assert lines[0].rstrip().endswith("(at first 2 h 01 min in all)")
    assert lines[1] == "learning this box's noise: bracket 2 of 2 of the ba… warming up, then measuring"
    assert fitted("screening a", "launching", 80) == "screening a: launching"
    assert fitted("screening a", "", 80) == "screening a"
    assert fitted("screening something", "a phase as wide as it", 30) == "a phase as wide as it"


def test_figures_of_a_phase_are_drawn_at_most_twice_a_second() -> None:
    clock = Clock()
    progress, stream = live(clock)
    with progress:
        progress.step("a", done_s=0.0, total_s=100.0)
        for i in range(50):
            clock.now += 0.01
            progress.phase(f"quick: {i}")
        written = stream.getvalue()
        clock.now += 0.5
        progress.phase("slow")
    assert "quick: 48" not in written
    assert "a: slow" in stream.getvalue()


def test_between_events_nothing_is_drawn() -> None:
    clock = Clock()
    progress, stream = live(clock)
    with progress:
        progress.step("a", done_s=0.0, total_s=100.0)
        before = stream.getvalue()
        clock.now += 60.0
        assert stream.getvalue() == before
        assert not progress._live.auto_refresh


def test_results_stay_above_the_bar_with_a_mark() -> None:
    progress, stream = live(Clock())
    with progress:
        progress.step("a", done_s=0.0, total_s=100.0)
        progress.result("x: [bold] is not markup", good=True)
    assert "+ x: [bold] is not markup" in stream.getvalue()
