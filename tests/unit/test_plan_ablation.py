"""What ships is the smallest stack that holds the gain."""

from __future__ import annotations

from assay.records.run import Purpose
from assay.records.state import CampaignState
from assay.records.verdict import VerdictKind
from tests.unit.simulated_world import World, drive, failure, hypothesis, small_spec, start, trouble_for

ABSORBED = World(
    effects={"a": 0.30, "b": 0.25, "c": 0.20},
    instead={frozenset("ab"): -0.05, frozenset("bc"): 0.15, frozenset("abc"): -0.25},
    run_sd=0.002,
)
"""a 0.30; a + b 0.50; a + b + c 0.60: all are adopted. b + c 0.60 as well: with c there, nobody needs a."""
INDEPENDENT = World(effects={"a": 0.30, "b": 0.25, "c": 0.20}, run_sd=0.002)


def campaign(world: World, **spec) -> CampaignState:
    journal = start([hypothesis(name, number) for number, name in enumerate("abc", 1)], small_spec(**spec))
    drive(journal, world)
    return journal.state


def test_a_member_that_a_later_one_made_superfluous_is_taken_out_and_the_rest_is_confirmed():
    state = campaign(ABSORBED)
    assert state.stack == ["b", "c"]
    assert not state.ablations["a"].kept
    assert state.ablations["b"].kept
    assert state.verdicts["a"].kind is VerdictKind.NO_EFFECT
    assert state.verdicts["a"].reason.startswith("adopted at first (")
    confirmed = [run.intent.arm.deltas for run in state.runs if run.intent.purpose is Purpose.CONFIRMATION]
    assert set(map(tuple, confirmed)) == {(), ("b", "c")}
    assert state.headline is not None
    assert state.headline.stack == ["b", "c"]


def test_members_that_are_needed_stay_and_the_last_one_is_not_asked_about():
    state = campaign(INDEPENDENT)
    assert state.stack == ["a", "b", "c"]
    assert {name: one.kept for name, one in state.ablations.items()} == {"a": True, "b": True}
    assert all(one.effect is not None and one.effect.high < 0 for one in state.ablations.values())


def test_a_stack_of_one_is_not_ablated():
    state = campaign(World(effects={"a": 0.3}, run_sd=0.002))
    assert state.stack == ["a"]
    assert state.ablations == {}


def test_a_member_without_which_the_stack_does_not_run_is_kept():
    broken = trouble_for("a", failure(), series="ablation")
    state = campaign(World(effects=ABSORBED.effects, instead=ABSORBED.instead, run_sd=0.002, trouble=broken))
    assert state.ablations["a"].kept
    assert state.ablations["a"].effect is None
    assert "cannot be measured" in state.ablations["a"].reason


def test_a_budget_that_does_not_reach_keeps_members_rather_than_the_confirmation_waiting():
    whole = campaign(INDEPENDENT)
    before = sum(run.outcome.duration_s for run in whole.runs if run.outcome and run.intent.purpose != "ablation")
    budget = small_spec().budget.model_copy(update={"total_s": before + 1.0})
    state = campaign(INDEPENDENT, budget=budget)
    assert state.stack == ["a", "b", "c"]
    assert all("the budget" in one.reason for one in state.ablations.values())
    assert state.headline is not None
    assert state.headline.confirmed
