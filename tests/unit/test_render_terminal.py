"""Tables in the terminal: whole at 80 columns, and nothing said by colour alone."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType

from assay.plan.todo import todo
from assay.records.verdict import VerdictKind
from assay.records.views import NextStep, Verification
from assay.render import terminal
from assay.render.report import report_markdown
from assay.render.soak_facts import growth_note
from assay.testing.sample_state import sample_state, sample_variants

VARIANTS = sample_variants()


def drawn(part: RenderableType, width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, no_color=True, highlight=False, markup=False, emoji=False).print(part)
    return stream.getvalue()


def views(name: str) -> list[RenderableType]:
    state = VARIANTS[name]
    shown = [terminal.verdict_table(state), terminal.reasons(state), terminal.headline_panel(state)]
    return [*shown, terminal.status_view(state, 75.0), terminal.todo_table(todo(state))]


def test_the_status_tells_time_that_was_waited_beside_the_time_that_was_measured() -> None:
    state = sample_state()
    first, *rest = state.runs
    assert first.outcome is not None
    waited = first.model_copy(update={"outcome": first.outcome.model_copy(update={"waited_s": 200.0})})

    told = " ".join(drawn(terminal.status_view(state.model_copy(update={"runs": [waited, *rest]}), 0.0)).split())

    assert "measured, and 3 min 20 s waited for a quiet machine" in told
    assert "waited" not in drawn(terminal.status_view(state, 0.0))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", VARIANTS)
def test_no_line_is_longer_than_the_terminal_and_no_control_code_is_written(name: str, width: int) -> None:
    for view in views(name):
        text = drawn(view, width)
        assert max(map(len, text.splitlines()), default=0) <= width
        assert "\x1b" not in text


def test_at_80_columns_every_hypothesis_has_its_effect_and_verdict_in_words() -> None:
    text = drawn(terminal.verdict_table(sample_state()))
    for words in ("+32.1% [+21.4, +43.8]", "-41.7% [-48.0, -34.6]", "+10..+80%", "cancelled"):
        assert words in text
    assert {kind for kind in VerdictKind if str(kind) in text} == set(VerdictKind)


def test_what_was_not_measured_is_a_dash() -> None:
    rows = drawn(terminal.verdict_table(sample_state())).splitlines()
    row = next(line for line in rows if "lock-memory" in line)
    assert "\N{EM DASH}" in row
    assert "blocked" in row


def test_a_wide_terminal_also_shows_tier_and_reason_without_the_effect_again() -> None:
    text = drawn(terminal.verdict_table(sample_state()), 160)
    assert "tier" in text
    assert "gain on top of the baseline, on fresh runs" in text
    assert text.count("+32.1%") == 1


def test_reasons_quote_the_engines_line_once_and_leave_out_what_was_adopted() -> None:
    text = " ".join(drawn(terminal.reasons(sample_state()), 300).split())
    assert "mlock-everything: blocked: unknown-flag: at stage arguments: error: invalid argument" in text
    assert text.count("error: invalid argument: --mlock-all") == 1
    assert "it will be disabled" in text
    assert "parallel-slots: adopted" not in text


def test_text_that_looks_like_markup_is_shown_as_it_is() -> None:
    step = NextStep(kind="run", text="run r1: [bold]x[/bold]", why="[red]because", expected_s=9.0, remaining_s=130.0)
    text = drawn(terminal.next_view(step))
    assert "run r1: [bold]x[/bold] (9 s)" in text
    assert "why: [red]because" in text
    assert "2 min 10 s" in text


def test_times_that_rest_on_no_run_are_said_to_be_assumed() -> None:
    step = NextStep(kind="run", text="run r1", why="because", expected_s=9.0, remaining_s=130.0, times_assumed=True)
    assert "assumed" in drawn(terminal.next_view(step))
    assert "assumed" not in drawn(terminal.next_view(step.model_copy(update={"times_assumed": False})))
    unmeasured = sample_state().model_copy(update={"runs": [], "headline": None})
    assert "about 2 min 10 s, assumed" in drawn(terminal.status_view(unmeasured, 130.0))
    assert "assumed" not in drawn(terminal.status_view(sample_state().model_copy(update={"headline": None}), 130.0))


def test_a_record_that_does_not_hold_lists_every_problem() -> None:
    found = Verification(
        ok=False, num_events=3, num_runs=1, last_hash="ab", problems=["event 2: hash", "runs/r1: gone"]
    )
    text = drawn(terminal.verification_view(found))
    assert "does not hold" in text
    assert "event 2: hash" in text
    assert "runs/r1: gone" in text


def test_a_simulated_campaign_is_labelled_in_every_view() -> None:
    state = sample_state()
    rehearsed = state.model_copy(update={"build": state.build.model_copy(update={"engine": "rehearsal"})})
    for view in (terminal.verdict_table, terminal.headline_panel, lambda s: terminal.status_view(s, 0.0)):
        assert "SIMULATED" in drawn(view(rehearsed))
        assert "SIMULATED" not in drawn(view(state))


def test_a_headline_that_speaks_of_growing_memory_is_told_what_that_means_and_others_are_not() -> None:
    state = sample_state()
    assert state.headline is not None
    said = (
        f"{state.headline.sentence}; memory of the server grows (+393 MiB/min [+298, +489]), as its reference's does."
    )

    def note(flags: dict[str, int]) -> str:
        headline = state.headline.model_copy(update={"sentence": said, "flags": flags})
        return growth_note(state.model_copy(update={"headline": headline}))

    assert growth_note(state) == ""
    kept = state.headline.model_copy(update={"memory_grows": "yes", "flags": {}})
    told = growth_note(state.model_copy(update={"headline": kept}))
    assert "Memory that grows" in told
    assert "not to blame" not in told
    assert "the change is not to blame" in note({})
    assert "--cache-ram, 8 GiB unless set" in note({"--ctx-size": 4096})
    assert "--cache-ram" not in note({"--cache-ram": 0})
    assert note({}) in report_markdown(
        state.model_copy(update={"headline": state.headline.model_copy(update={"sentence": said, "flags": {}})}),
        launch_commands={},
    )
