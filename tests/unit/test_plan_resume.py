"""The decision rests on the record alone: killed anywhere, a campaign ends with the same runs."""

from __future__ import annotations

import pytest

from assay.errors import RecordError
from assay.plan.fold import advance, fold
from assay.plan.next_step import next_step
from assay.plan.series import MAIN, MAX_PAUSE_S, series_brackets
from assay.plan.steps import Done
from assay.records.event import EventKind
from assay.records.run import RunIntent, RunStatus
from tests.unit.simulated_world import (
    Journal,
    Trouble,
    World,
    abandon_open_runs,
    completed,
    drive,
    failure,
    hypothesis,
    kinds,
    small_spec,
    start,
)


def some_trouble(intent: RunIntent, nth: int) -> Trouble:
    """One accident of each kind."""
    if intent.candidate == "fails":
        return failure("timeout", "load")
    if intent.candidate in {"good", None} and nth == 1:
        return RunStatus.INVALID
    return None


WORLD = World(effects={"good": 0.3, "bad": -0.3}, run_sd=0.02, trouble=some_trouble)


def whole() -> Journal:
    journal = start([hypothesis(name, i + 1) for i, name in enumerate(["bad", "good", "fails"])])
    assert isinstance(drive(journal, WORLD), Done)
    return journal


def test_killed_after_any_event_a_campaign_ends_with_the_same_runs_verdicts_and_headline() -> None:
    undisturbed = whole()
    expected = completed(undisturbed.state)
    assert len(expected) > 15

    for num_events in range(2, len(undisturbed.events)):
        killed = Journal(undisturbed.events[:num_events])
        assert isinstance(drive(killed, WORLD), Done)
        assert completed(killed.state) == expected, num_events
        assert kinds(killed.state) == kinds(undisturbed.state)
        assert killed.state.stack == undisturbed.state.stack
        assert killed.state.headline is not None
        assert undisturbed.state.headline is not None
        assert killed.state.headline.effect == undisturbed.state.headline.effect


def test_killed_in_every_run_it_still_ends_with_the_same_runs() -> None:
    """Every intent is followed by a kill once, before the run is made again."""
    undisturbed = whole()
    journal = Journal(undisturbed.events[:2])
    for _ in range(400):
        step = next_step(journal.state)
        if isinstance(step, Done):
            break
        doomed = Journal(journal.events)
        ended = len(doomed.events)
        drive(doomed, WORLD)
        intended = [event for event in doomed.events[ended:] if event.kind is EventKind.RUN_INTENDED]
        journal = Journal(doomed.events[: ended + 1])
        if doomed.events[ended] in intended:
            abandon_open_runs(journal)
            again = Journal(journal.events)
            drive(again, WORLD)
            journal = Journal(again.events[: len(journal.events) + 3])
    abandoned = [r for r in journal.state.runs if r.outcome and r.outcome.status is RunStatus.ABANDONED]

    assert isinstance(next_step(journal.state), Done)
    assert len(abandoned) * 2 == len(journal.state.runs)
    assert completed(journal.state) == completed(undisturbed.state)


def test_an_abandoned_run_is_made_again_with_its_prompts_under_another_id() -> None:
    events = whole().events
    last_intent = max(i for i, event in enumerate(events) if event.kind is EventKind.RUN_INTENDED)
    killed = Journal(events[: last_intent + 1])
    drive(killed, WORLD)

    abandoned = next(i for i, r in enumerate(killed.state.runs) if r.outcome and r.outcome.status == "abandoned")
    first, again = killed.state.runs[abandoned].intent, killed.state.runs[abandoned + 1].intent
    assert again == first.model_copy(update={"run_id": again.run_id})
    assert again.run_id != first.run_id


@pytest.mark.parametrize(("pause_s", "kept"), [(60.0, True), (MAX_PAUSE_S + 60, False)])
def test_a_bracket_across_a_long_pause_is_measured_again(pause_s: float, kept: bool) -> None:
    """After a night the machine is another machine: its reference run of yesterday is no neighbour."""
    events = whole().events
    screened = [
        i
        for i, event in enumerate(events)
        if event.kind is EventKind.RUN_INTENDED and event.payload["intent"]["purpose"] == "screen"
    ]
    killed = Journal(events[: screened[0] + 1])
    drive(killed, WORLD, pause_s=pause_s)

    runs = [r for r in killed.state.runs if r.intent.series == MAIN and r.outcome and r.outcome.status == "ok"]
    candidates = sum(r.intent.candidate is not None for r in runs)
    in_block = {r.intent.candidate for r in runs} - {None, "baseline"}  # few enough for one block
    lost = 0 if kept else len(in_block)
    assert len(series_brackets(killed.state, MAIN)) == candidates - lost
    assert kinds(killed.state) == kinds(whole().state)


def test_folding_all_events_gives_what_advancing_one_by_one_gave() -> None:
    journal = whole()
    state = fold(journal.events[:1])
    for i, event in enumerate(journal.events[1:], start=2):
        state = advance(state, event)
        if i % 10 == 0:
            assert state == fold(journal.events[:i])

    assert state == fold(journal.events) == journal.state
    assert state.num_events == len(journal.events)


def test_the_spent_time_is_that_of_all_ended_runs() -> None:
    journal = whole()

    ends = [event for event in journal.events if event.kind is EventKind.RUN_ENDED]
    assert journal.state.spent_s == sum(event.payload["outcome"]["duration_s"] for event in ends)
    assert len(journal.state.runs) == len(ends)


def test_an_empty_record_says_how_to_start_one() -> None:
    with pytest.raises(RecordError, match="no campaign was created") as error:
        fold([])
    assert error.value.hint is not None
    assert "assay plan" in error.value.hint


def test_a_record_that_begins_elsewhere_or_begins_twice_is_refused() -> None:
    events = start([hypothesis("good")], small_spec()).events

    with pytest.raises(RecordError, match="begins with plan-written"):
        fold(events[1:])
    with pytest.raises(RecordError, match="creates a campaign again"):
        fold([*events, events[0]])


def test_no_bracket_spans_two_machines_or_two_starts_of_one() -> None:
    state = whole().state
    main = [run for run in state.runs if run.intent.series == MAIN]
    moved_at = next(i for i, run in enumerate(state.runs) if run is main[6])
    runs = [
        run.model_copy(update={"intent": run.intent.model_copy(update={"host": "first" if i < moved_at else "second"})})
        for i, run in enumerate(state.runs)
    ]
    moved = state.model_copy(update={"runs": runs})
    assert 0 < len(series_brackets(moved, MAIN)) < len(series_brackets(state, MAIN))
