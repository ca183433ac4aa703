"""A trial that promises nothing any more is given up: it saves runs, adopts nothing, and says why."""

from __future__ import annotations

import math

import pytest

from assay.records.run import Purpose
from assay.records.spec import Budget, CampaignSpec, Objective, Statistics
from assay.records.state import CampaignState
from tests.unit.simulated_world import World, drive, hypothesis, kinds, start

NULLS = [hypothesis(f"null-{i}", i + 1) for i in range(6)]


def played(world: World, *, give_up_below: float, statistics: Statistics | None = None) -> CampaignState:
    statistics = (statistics or Statistics()).model_copy(update={"give_up_below": give_up_below})
    spec = CampaignSpec(budget=Budget(total_s=1e6), statistics=statistics, objective=Objective(min_effect=0.01))
    journal = start([*NULLS, *(hypothesis(name, 9) for name in world.effects)], spec)
    drive(journal, world)
    return journal.state


def screen_runs(state: CampaignState) -> int:
    return sum(run.intent.purpose is Purpose.SCREEN for run in state.runs)


def test_giving_up_takes_runs_from_useless_candidates_and_none_from_a_clear_gain() -> None:
    worlds = [World(effects={"good": math.log(1.06)}, run_sd=0.01, seed=seed) for seed in range(4)]
    patient = [played(world, give_up_below=0) for world in worlds]
    brisk = [played(world, give_up_below=0.1) for world in worlds]

    assert sum(map(screen_runs, brisk)) < 0.75 * sum(map(screen_runs, patient))
    assert all(state.stack == ["good"] for state in brisk)


def test_a_verdict_that_gives_up_says_so_with_its_chance_and_decides_nothing() -> None:
    state = played(World(run_sd=0.01, seed=1), give_up_below=0.1)
    given_up = [verdict for verdict in state.verdicts.values() if "given up" in verdict.reason]

    assert given_up
    for verdict in given_up:
        assert verdict.kind == "undecided"
        assert "the chance that the rest would show a gain of 1% or more is" in verdict.reason
        assert verdict.effect is not None
        assert verdict.effect.num_brackets >= 2
        assert verdict.effect.low < 0.01


def test_without_it_a_useless_candidate_is_measured_until_it_is_decided_or_its_brackets_end() -> None:
    state = played(World(run_sd=0.01, seed=1), give_up_below=0)

    assert not any("given up" in verdict.reason for verdict in state.verdicts.values())


def test_what_fails_its_second_test_early_is_given_up_there_too() -> None:
    """A screen that lets everything through, so that useless candidates are tested again."""
    lax = Statistics(screen_alpha=0.49)
    states = [played(World(run_sd=0.01, seed=seed), give_up_below=0.3, statistics=lax) for seed in range(10)]
    retested = [verdict for state in states for name, verdict in state.verdicts.items() if name in state.screened]

    assert any("promising in the screen" in verdict.reason and "given up" in verdict.reason for verdict in retested)


@pytest.mark.slow
def test_giving_up_leaves_the_rate_of_useless_adoptions_as_declared() -> None:
    """At a threshold far above the default; docs/verdicts.md has the figures of the default."""
    n, alpha = 40, Statistics().adopt_alpha
    adopted = sum(bool(played(World(run_sd=0.01, seed=s), give_up_below=0.4).stack) for s in range(n))

    assert adopted / n <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / n)


@pytest.mark.slow
def test_a_gain_far_above_the_detectable_is_adopted_nonetheless() -> None:
    """Twice the minimum detectable effect at 1% run noise (docs/verdicts.md): at least 90% are promised."""
    n = 20
    worlds = [World(effects={"good": math.log(1.046)}, run_sd=0.01, seed=seed) for seed in range(n)]
    found = sum(kinds(played(world, give_up_below=0.1))["good"] == "adopted" for world in worlds)

    assert found / n >= 0.9
