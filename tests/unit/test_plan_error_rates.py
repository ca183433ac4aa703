"""Whole campaigns in simulated worlds: how often something useless is adopted, and something useful found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assay.plan.steps import Done
from assay.records.run import Purpose
from assay.records.spec import Budget, CampaignSpec, Objective, Statistics
from tests.unit.simulated_world import World, drive, hypothesis, kinds, start

pytestmark = pytest.mark.slow
NULLS = [hypothesis(f"null-{i}", i + 1) for i in range(10)]


def upper_limit(rate: float, n: int) -> float:
    """Three binomial standard errors above a declared rate."""
    return rate + 3 * math.sqrt(rate * (1 - rate) / n)


def test_ten_useless_candidates_are_adopted_no_more_often_than_declared() -> None:
    """The default statistics on a noisy, drifting box."""
    spec, n = CampaignSpec(budget=Budget(total_s=1e6)), 30
    adopted, false_losses = 0, 0
    for seed in range(n):
        journal = start(NULLS, spec)
        assert isinstance(drive(journal, World(run_sd=0.05, drift_per_run=0.005, seed=seed)), Done)
        adopted += bool(journal.state.stack)
        false_losses += sum(kind == "worse" for kind in kinds(journal.state).values())

    assert adopted / n <= upper_limit(spec.statistics.adopt_alpha, n)
    assert false_losses / n / len(NULLS) <= upper_limit(spec.statistics.screen_alpha / 2, n)


def test_the_declared_rate_holds_when_the_screen_lets_almost_everything_through() -> None:
    """The screen is made useless (alpha 0.49), so that composition alone has to keep the promise."""
    budget = Budget(total_s=1e6, max_brackets=2, composition_brackets=4, confirmation_brackets=2)
    statistics = Statistics(screen_alpha=0.49, adopt_alpha=0.2)
    spec = CampaignSpec(budget=budget, statistics=statistics, objective=Objective(min_effect=0.001))
    n, adopted, reached = 100, 0, 0
    for seed in range(n):
        journal = start(NULLS, spec)
        drive(journal, World(run_sd=0.05, seed=seed))
        adopted += bool(journal.state.stack)
        reached += len(journal.state.screened)

    assert reached / n > 1
    assert adopted / n <= upper_limit(statistics.adopt_alpha, n)


def test_a_gain_of_forty_percent_is_found_in_few_brackets_where_one_bracket_scatters_by_ten() -> None:
    spec, n = CampaignSpec(budget=Budget(total_s=1e6)), 60
    candidates = [hypothesis("good", 1), hypothesis("null-a", 2), hypothesis("null-b", 3)]
    found, brackets = 0, []
    for seed in range(n):
        journal = start(candidates, spec)
        drive(journal, World(effects={"good": math.log(1.4)}, run_sd=0.10 / math.sqrt(1.5), seed=seed))
        state = journal.state
        if state.headline is not None and state.headline.confirmed and "good" in state.stack:
            found += 1
            screened = [r for r in state.runs if r.intent.purpose is Purpose.SCREEN and r.intent.candidate == "good"]
            brackets.append(len(screened))

    assert found / n >= 0.95
    assert np.median(brackets) <= 3


def test_the_headline_interval_holds_the_truth_as_often_as_it_states() -> None:
    """Fresh runs, one look: no winner's curse although the stack was chosen for its gain."""
    budget = Budget(total_s=1e6, max_brackets=3, composition_brackets=3, confirmation_brackets=3)
    statistics = Statistics(confirm_alpha=0.2, screen_alpha=0.4, adopt_alpha=0.4)
    spec, n, truth = CampaignSpec(budget=budget, statistics=statistics), 200, 0.12
    covered = confirmed = 0
    for seed in range(n):
        journal = start([hypothesis("good")], spec)
        drive(journal, World(effects={"good": truth}, run_sd=0.06, seed=seed))
        headline = journal.state.headline
        if headline is not None and headline.effect is not None:
            confirmed += 1
            covered += headline.effect.low <= truth <= headline.effect.high

    assert confirmed > n / 4
    assert 1 - covered / confirmed <= upper_limit(statistics.confirm_alpha, confirmed)
