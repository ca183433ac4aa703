"""A reading answers as the plain state does, computes each thing once, and forgets when the state moves on."""

from __future__ import annotations

import math

from assay.plan.evidence import box_noise, calibrate, screen_effect
from assay.plan.next_step import next_step
from assay.plan.reading import Reading, once
from assay.plan.series import MAIN, valid_runs
from assay.records.state import CampaignState
from tests.unit.simulated_world import World, drive, hypothesis, perform, start


def test_a_reading_gives_the_answers_of_the_plain_state_at_every_step() -> None:
    journal = start([hypothesis("good", 1), hypothesis("null", 2)])
    world = World(effects={"good": math.log(1.2)}, seed=4)
    for _ in range(25):
        plain, reading = journal.state, Reading.of(journal.state)
        assert valid_runs(reading, MAIN) == valid_runs(plain, MAIN)
        assert box_noise(reading, without="good") == box_noise(plain, without="good")
        assert screen_effect(reading, "good") == screen_effect(plain, "good")
        assert calibrate(reading) == calibrate(plain)
        assert next_step(reading) == next_step(plain)
        perform(journal, next_step(plain), world)


def test_what_was_asked_once_is_not_computed_again() -> None:
    asked = []

    @once
    def number_of_runs(state: CampaignState, name: str, *, twice: bool = False) -> int:
        asked.append((name, twice))
        return len(state.runs) * (2 if twice else 1)

    reading = Reading.of(start([hypothesis("a")]).state)
    for _ in range(3):
        number_of_runs(reading, "x")
        number_of_runs(reading, "x", twice=True)
        number_of_runs(reading, "y")

    assert asked == [("x", False), ("x", True), ("y", False)]
    assert Reading.of(reading) is reading


def test_a_changed_copy_of_a_reading_is_a_plain_state_and_remembers_nothing() -> None:
    journal = start([hypothesis("a")])
    drive(journal, World())
    reading = Reading.of(journal.state)
    assert valid_runs(reading, MAIN)

    emptied = reading.model_copy(update={"runs": []})

    assert type(emptied) is CampaignState
    assert not valid_runs(emptied, MAIN)
    assert emptied.model_copy(update={"runs": journal.state.runs}) == journal.state
