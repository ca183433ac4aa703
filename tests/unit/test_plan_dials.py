"""A dial is searched before the screen, and what it finds is judged on fresh runs like any flag."""

from __future__ import annotations

import math

from assay.plan.fold import fold
from assay.records.dials import Dial, Knob
from assay.records.event import EventKind
from assay.records.run import Purpose, RunIntent, RunOutcome
from assay.records.state import CampaignState
from assay.rehearsal.world import Journal
from tests.unit.simulated_world import World, drive, hypothesis, kinds, small_spec, start

DIAL = Dial(knobs=[Knob(name="size", flag="--size", low=1, high=64, factor=2)], max_launches=14)


class Hill(World):
    """The log value falls off on both sides of --size 16; the baseline has no such flag and lies 0.6 below the top."""

    def answer(self, intent: RunIntent, state: CampaignState) -> RunOutcome:
        size = intent.arm.flags.get("--size")
        gain = 0.0 if size is None else 0.6 - 0.25 * abs(math.log2(float(size)) - 4)
        effects = dict.fromkeys(intent.arm.deltas, gain)
        return World(effects=effects, run_sd=0.004, seed=3).answer(intent, state)


def searched(world: World) -> Journal:
    journal = start([hypothesis("dial", flags={}, dial=DIAL)], small_spec())
    drive(journal, world)
    return journal


def test_the_setting_that_was_found_is_screened_composed_and_confirmed_on_fresh_runs():
    state = searched(Hill()).state
    result = state.dials["dial"]
    assert result.flags is not None
    assert abs(math.log2(float(result.flags["--size"])) - 4) <= 1
    assert kinds(state) == {"dial": "adopted"}
    assert state.headline is not None
    assert state.headline.flags["--size"] == result.flags["--size"]
    search = [run.intent.run_id for run in state.runs if run.intent.purpose is Purpose.SEARCH]
    assert 0 < len(search) <= DIAL.max_launches
    assert not set(search) & set(state.verdicts["dial"].runs)


def test_a_dial_on_which_nothing_gains_ends_undecided_without_a_screen():
    state = searched(World(effects={"dial": -0.3}, run_sd=0.004)).state
    assert state.dials["dial"].flags is None
    assert kinds(state) == {"dial": "undecided"}
    assert not [run for run in state.runs if run.intent.purpose is Purpose.SCREEN and run.intent.candidate == "dial"]


def test_a_search_that_was_killed_goes_on_as_if_nothing_had_happened():
    whole = searched(Hill())
    cut = next(i for i, e in enumerate(whole.events) if e.kind is EventKind.DIAL_SETTLED) - 5
    again = Journal(whole.events[:cut])
    drive(again, Hill())
    assert again.state.dials["dial"].settings == whole.state.dials["dial"].settings
    assert fold(again.events).stack == whole.state.stack
