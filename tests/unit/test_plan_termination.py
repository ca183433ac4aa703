"""Whatever goes wrong, in whatever mixture, a campaign comes to an end that makes sense."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.plan.forecast import describe_next
from assay.plan.remaining import remaining_s
from assay.plan.steps import AskApproval, Done, GiveUp
from assay.plan.todo import todo
from assay.records.run import RunIntent, RunStatus
from assay.records.spec import Budget, CampaignSpec, Objective, Policy
from tests.unit.simulated_world import Journal, Trouble, World, drive, failure, hypothesis, start

TROUBLES: list[Trouble] = [
    None,
    RunStatus.OK,
    RunStatus.INVALID,
    RunStatus.NOT_APPLIED,
    RunStatus.WRONG_OUTPUT,
    failure("timeout", "load"),
    failure("oom", "load"),
    failure("crashed", "under-load"),
]


def world_from(seed: int) -> tuple[World, CampaignSpec, int]:
    """A world, a question and a number of candidates, all drawn from one seed."""
    rng = np.random.default_rng(seed)
    share = rng.choice([0.02, 0.1, 0.4])
    reliable_baseline = rng.random() < 0.7

    def trouble(intent: RunIntent, nth: int) -> Trouble:
        if reliable_baseline and not intent.arm.deltas:
            return None
        own = hashlib.sha256(f"{seed}:{intent.series}:{intent.candidate}:{nth}".encode()).digest()
        draw = np.random.default_rng(list(own[:8]))
        return TROUBLES[draw.integers(len(TROUBLES))] if draw.random() < share else None

    num_candidates = int(rng.integers(0, 6))
    budget = Budget(
        total_s=float(rng.choice([50, 300, 1000, 1e6])),
        calibration_brackets=int(rng.integers(2, 5)),
        max_brackets=int(rng.integers(1, 5)),
        composition_brackets=int(rng.integers(1, 5)),
        confirmation_brackets=int(rng.integers(2, 5)),
    )
    metric = str(rng.choice(["output_tokens_per_s", "ttft_p50_s"]))
    spec = CampaignSpec(
        budget=budget,
        objective=Objective.model_validate({"metric": metric}),
        policy=Policy(ask_before_tier=int(rng.integers(2, 5))),
    )
    effects = {f"c{i}": float(rng.normal(0.05, 0.3)) for i in range(num_candidates)}
    world = World(effects=effects, run_sd=float(rng.choice([0.0, 0.02, 0.2])), seed=seed, trouble=trouble)
    return world, spec, num_candidates


def assert_sensible(journal: Journal) -> None:
    state = journal.state
    adopted = [name for name, verdict in state.verdicts.items() if verdict.kind == "adopted"]
    assert state.stack == adopted
    assert len(set(state.stack)) == len(state.stack)
    run_ids = [run.intent.run_id for run in state.runs]
    assert len(set(run_ids)) == len(run_ids)
    for verdict in state.verdicts.values():
        assert set(verdict.runs) <= set(run_ids)
        assert verdict.reason
    assert len(todo(state)) == len(state.hypotheses)
    assert remaining_s(state) >= 0
    assert describe_next(state).text


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32 - 1))
def test_every_campaign_ends_with_a_verdict_for_every_candidate_or_says_what_stops_it(seed: int) -> None:
    world, spec, num_candidates = world_from(seed)
    rng = np.random.default_rng(seed + 1)
    hypotheses = [hypothesis(f"c{i}", i + 1, tier=int(rng.integers(1, 4))) for i in range(num_candidates)]
    journal = start(hypotheses, spec)

    step = drive(journal, world)

    assert_sensible(journal)
    if isinstance(step, AskApproval):
        assert all(h.optimization.tier >= spec.policy.ask_before_tier for h in hypotheses if h.id in step.ids)
        runs = {run.intent.candidate for run in journal.state.runs}
        assert not runs & set(step.ids)
    elif isinstance(step, GiveUp):
        assert journal.state.headline is None
        again = drive(journal, replace(world, trouble=lambda intent, nth: None))
        assert not isinstance(again, GiveUp)
    else:
        assert isinstance(step, Done)
        assert set(journal.state.verdicts) == {h.id for h in hypotheses}
        assert journal.state.headline is not None
        assert journal.state.headline.stack == journal.state.stack
        if journal.state.headline.confirmed:
            assert journal.state.headline.effect is not None
            assert journal.state.headline.effect.low > 0


def test_no_campaign_overruns_its_budget_where_all_runs_take_the_same_time() -> None:
    """Runs of 10 s, from just below what calibration, one composition and the shortest confirmation take (15 runs)."""
    gains = {"one": 0.3, "two": 0.2, "three": 0.15, "four": 0.1}
    over = []
    for total_s in range(150, 450, 60):
        budget = Budget(total_s=total_s, calibration_brackets=2, max_brackets=3, confirmation_brackets=2)
        journal = start(
            [hypothesis(name, number) for number, name in enumerate(gains, start=1)], CampaignSpec(budget=budget)
        )
        drive(journal, World(effects=gains, run_sd=0.005))
        over.append(journal.state.charged_s - total_s)
        late = [verdict for verdict in journal.state.verdicts.values() if verdict.cause == "budget"]
        assert all("the budget ended before it was" in verdict.reason for verdict in late)

    assert max(over) <= 0.0
