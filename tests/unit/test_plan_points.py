"""Several operating points, losses at one of them, and service levels: what a gain on the average must not cost."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from assay.plan.evidence import point_effects
from assay.plan.scores import run_score
from assay.plan.series import MAIN
from assay.records.spec import CampaignSpec, Constraint, LoadPoint, Objective, Workload
from assay.records.verdict import VerdictKind
from tests.unit.simulated_world import World, drive, hypothesis, kinds, small_spec, start

TWO = Workload(points=[LoadPoint(name="c64", concurrency=64)])
FLIPS = World(effects={"flips": 0.5}, at_points={"c64": {"flips": -0.2}}, run_sd=0.005)


def campaign(world: World, **objective) -> dict[str, str]:
    journal = start([hypothesis("flips")], small_spec(workload=TWO, objective=Objective(**objective)))
    drive(journal, world)
    return kinds(journal.state)


def test_the_mean_over_the_points_is_what_is_judged():
    assert campaign(FLIPS) == {"flips": "adopted"}
    loses_more = World(effects={"flips": 0.2}, at_points={"c64": {"flips": -0.5}}, run_sd=0.005)
    assert campaign(loses_more) == {"flips": "worse"}


def test_a_loss_at_one_point_beyond_what_is_allowed_is_not_bought_by_a_gain_at_another():
    journal = start([hypothesis("flips")], small_spec(workload=TWO, objective=Objective(max_loss=0.05)))
    drive(journal, FLIPS)
    verdict = journal.state.verdicts["flips"]
    assert verdict.kind is VerdictKind.WORSE
    assert "at c64" in verdict.reason


def test_the_effects_at_each_point_are_told_with_intervals_that_hold_the_truth():
    journal = start([hypothesis("flips")], small_spec(workload=TWO))
    drive(journal, FLIPS)
    found = point_effects(journal.state, MAIN, "flips")
    assert set(found) == {"main", "c64"}
    assert found["main"].low <= 0.5 <= found["main"].high
    assert found["c64"].low <= -0.2 <= found["c64"].high


def test_weights_say_how_points_combine_and_a_weight_of_nothing_is_only_shown():
    shown = Workload(points=[LoadPoint(name="c64", concurrency=64, weight=0)])
    heavy = Workload(weight=1, points=[LoadPoint(name="c64", concurrency=64, weight=3)])
    for workload, expected in ((shown, 0.5), (heavy, 0.5 / 4 - 0.2 * 3 / 4)):
        journal = start([hypothesis("flips")], small_spec(workload=workload))
        drive(journal, World(effects=FLIPS.effects, at_points=FLIPS.at_points, run_sd=0.0))
        runs = {run.intent.candidate: run for run in journal.state.runs}
        difference = (run_score(journal.state, runs["flips"]) or 0) - (run_score(journal.state, runs[None]) or 0)
        assert difference == pytest.approx(expected)


def test_a_gain_that_breaks_a_service_level_is_not_adopted():
    # In this world the p95 of TTFT is twice the reciprocal of the throughput: 20 ms for the baseline.
    slower = World(effects={"flips": 0.5}, at_points={"c64": {"flips": -0.2}}, run_sd=0.01)
    limit = Constraint(metric="ttft_p95_s", max_s=0.022, point="c64")
    assert campaign(slower, constraints=[limit]) == {"flips": "worse"}
    assert campaign(slower, constraints=[limit.model_copy(update={"max_s": 0.03})]) == {"flips": "adopted"}


def test_at_the_very_limit_a_service_level_is_called_kept_or_broken_hardly_more_often_than_by_the_declared_chance():
    """5% each way and look: three looks at most may call it broken, two may call it kept."""
    limit = Constraint(metric="ttft_p95_s", max_s=0.02 * math.exp(-0.5))
    found = [
        campaign(World(effects=FLIPS.effects, at_points=FLIPS.at_points, run_sd=0.005, seed=seed), constraints=[limit])
        for seed in range(60)
    ]
    verdicts = [one["flips"] for one in found]
    assert verdicts.count("undecided") > 30
    assert verdicts.count("worse") <= 60 * 0.15 + 3 * math.sqrt(60 * 0.15 * 0.85)
    assert verdicts.count("adopted") <= 60 * 0.10 + 3 * math.sqrt(60 * 0.10 * 0.90)


def test_a_latency_without_samples_is_unproved_and_never_kept_by_default():
    limit = Constraint(metric="ttft_p99_s", max_s=100.0)
    assert campaign(FLIPS, constraints=[limit]) == {"flips": "undecided"}


def test_points_need_names_of_their_own_and_constraints_points_that_exist():
    with pytest.raises(ValidationError, match="name of its own"):
        Workload(points=[LoadPoint(name="main", concurrency=2)])
    with pytest.raises(ValidationError, match="c65"):
        CampaignSpec(
            workload=TWO, objective=Objective(constraints=[Constraint(metric="ttft_p95_s", max_s=1, point="c65")])
        )


def test_a_loss_at_the_very_limit_is_adopted_hardly_more_often_than_by_the_declared_chance():
    """It really loses what may be lost: the interval lies above that in 5% of the campaigns at most, over all looks."""
    at_limit = math.log1p(-0.05)
    found = [
        campaign(
            World(effects={"flips": 0.5}, at_points={"c64": {"flips": at_limit}}, run_sd=0.01, seed=seed), max_loss=0.05
        )["flips"]
        for seed in range(60)
    ]
    assert found.count("adopted") <= 60 * 0.05 + 3 * math.sqrt(60 * 0.05 * 0.95)
    assert found.count("undecided") > 30


def test_a_loss_that_may_be_lost_is_adopted_once_the_interval_shows_that_it_is_no_larger():
    small = World(effects={"flips": 0.5}, at_points={"c64": {"flips": -0.01}}, run_sd=0.005)
    assert campaign(small, max_loss=0.05) == {"flips": "adopted"}
    noisy = World(effects={"flips": 0.5}, at_points={"c64": {"flips": -0.01}}, run_sd=0.05)
    assert campaign(noisy, max_loss=0.05) == {"flips": "undecided"}
