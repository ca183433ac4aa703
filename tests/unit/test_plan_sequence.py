"""The order of an ordinary campaign."""

from __future__ import annotations

from itertools import groupby, pairwise

import pytest

from assay.plan.forecast import describe_next
from assay.plan.remaining import remaining_s
from assay.plan.steps import AskApproval, Done
from assay.plan.todo import todo
from assay.records.run import Purpose
from assay.records.spec import Budget, Objective, Statistics, Target
from tests.unit.simulated_world import (
    Journal,
    World,
    drive,
    failure,
    hypothesis,
    kinds,
    replan,
    small_spec,
    start,
    trouble_for,
    with_policy,
)

WORLD = World(effects={"good": 0.3, "bad": -0.3}, run_sd=0.012, seed=1)


def ordinary() -> Journal:
    journal = start([hypothesis(name, i + 1) for i, name in enumerate(["null", "bad", "good"])])
    assert isinstance(drive(journal, WORLD), Done)
    return journal


def arms(journal: Journal, purpose: Purpose) -> list[str | None]:
    return [run.intent.candidate for run in journal.state.runs if run.intent.purpose is purpose]


def test_a_campaign_calibrates_screens_composes_confirms_and_finishes_in_that_order() -> None:
    journal = ordinary()

    purposes = [run.intent.purpose for run in journal.state.runs]
    changes = [purposes[0], *(b for a, b in pairwise(purposes) if a is not b)]
    assert changes == [Purpose.CALIBRATION, Purpose.SCREEN, Purpose.COMPOSITION, Purpose.CONFIRMATION]
    assert kinds(journal.state) == {"null": "no-effect", "bad": "worse", "good": "adopted"}
    assert journal.events[-1].kind == "campaign-finished"


def test_calibration_is_the_baseline_against_itself() -> None:
    journal = ordinary()

    assert arms(journal, Purpose.CALIBRATION) == [None, "baseline", None, "baseline", None]
    assert {run.intent.arm.label for run in journal.state.runs[:5]} == {"baseline"}
    assert journal.state.calibration is not None
    assert journal.state.calibration.degrees_of_freedom == 2


def test_every_candidate_of_the_screen_stands_between_two_baseline_runs() -> None:
    journal = ordinary()
    screened = [None, *arms(journal, Purpose.SCREEN)]
    blocks = [list(block) for is_reference, block in groupby(screened, lambda name: name is None) if not is_reference]

    assert screened[-1] is None
    assert max(map(len, blocks)) == min(3, journal.state.spec.budget.block)
    assert all(len(set(block)) == len(block) for block in blocks)
    assert {name for block in blocks for name in block} == {"null", "bad", "good"}


def test_a_block_of_one_alternates_candidates_and_baseline() -> None:
    budget = small_spec().budget.model_copy(update={"block": 1})
    journal = start([hypothesis("null", 1), hypothesis("bad", 2)], small_spec(budget=budget))
    drive(journal, World(effects={"bad": -0.5}))

    screened = [None, *arms(journal, Purpose.SCREEN)]
    assert screened[0::2] == [None] * len(screened[0::2])
    assert set(screened[1::2]) == {"null", "bad"}


def test_rounds_are_complete_and_their_order_is_drawn_anew() -> None:
    """Candidates that cannot be decided stay for all rounds."""
    names = [f"c{i}" for i in range(6)]
    never = small_spec(statistics=Statistics(screen_alpha=1e-9, give_up_below=0))
    journal = start([hypothesis(name, i + 1) for i, name in enumerate(names)], never)
    drive(journal, World(run_sd=0.3))
    candidates = [name for name in arms(journal, Purpose.SCREEN) if name is not None]

    rounds = [candidates[i : i + 6] for i in range(0, 18, 6)]

    assert [sorted(one) for one in rounds] == [names] * 3
    assert len({tuple(one) for one in rounds}) == 3


def test_a_candidate_takes_the_prompts_of_the_reference_run_before_it_and_no_other_pair_does() -> None:
    journal = ordinary()

    for before, run in pairwise(journal.state.runs):
        if run.intent.candidate is not None:
            assert run.intent.seed == before.intent.seed
    references = [run.intent.seed for run in journal.state.runs if run.intent.candidate is None]
    assert len(set(references)) == len(references)


def test_composition_tests_each_candidate_on_top_of_the_stack_so_far() -> None:
    journal = start([hypothesis("second", 1), hypothesis("first", 2)])
    drive(journal, World(effects={"first": 0.5, "second": 0.3}, run_sd=0.02))
    labels = [run.intent.arm.label for run in journal.state.runs if run.intent.series == "composition:second"]

    assert journal.state.stack == ["first", "second"]
    assert labels[:3] == ["first", "first + second", "first"]


def test_the_headline_rests_on_confirmation_runs_alone() -> None:
    state = ordinary().state

    assert state.headline is not None
    confirmation = {run.intent.run_id for run in state.runs if run.intent.purpose is Purpose.CONFIRMATION}
    assert set(state.headline.runs) == confirmation
    assert state.headline.confirmed
    assert state.headline.flags == {"--good": True}
    assert state.headline.effect is not None
    assert state.headline.effect.log_ratio == pytest.approx(0.3, abs=0.1)


def test_a_campaign_in_which_nothing_helps_says_that_todays_command_stands() -> None:
    journal = start([hypothesis("null")])
    drive(journal, WORLD)

    assert journal.state.headline is not None
    assert not journal.state.headline.confirmed
    assert "command in use today stands" in journal.state.headline.sentence
    assert not arms(journal, Purpose.CONFIRMATION)


@pytest.mark.parametrize("metric", ["output_tokens_per_s", "requests_per_s", "ttft_p50_s", "tpot_p50_s", "e2e_p50_s"])
def test_better_is_more_throughput_or_less_latency(metric: str) -> None:
    spec = small_spec(objective=Objective.model_validate({"metric": metric}))
    journal = start([hypothesis("good", 1), hypothesis("bad", 2)], spec)
    drive(journal, WORLD)

    assert kinds(journal.state) == {"good": "adopted", "bad": "worse"}
    assert journal.state.headline is not None
    expected = f"in 1/{metric}" if metric.endswith("p50_s") else f"in {metric}"
    assert expected in journal.state.headline.sentence


def test_what_the_build_cannot_do_is_blocked_before_anything_runs() -> None:
    blocked = hypothesis("gone", status="blocked", blocked_reason="this build has no --gone")
    journal = start([hypothesis("null", 1), blocked])
    drive(journal, WORLD)

    assert journal.events[2].kind == "verdict-reached"
    verdict = journal.state.verdicts["gone"]
    assert (verdict.kind, verdict.cause, verdict.reason) == ("blocked", "plan", "this build has no --gone")
    assert "gone" not in {run.intent.candidate for run in journal.state.runs}


def test_of_an_exclusive_family_only_the_better_one_is_tested_again() -> None:
    journal = start([hypothesis("low", 1, excludes=["high"]), hypothesis("high", 2)])
    drive(journal, World(effects={"low": 0.2, "high": 0.6}, run_sd=0.01))

    assert journal.state.stack == ["high"]
    verdict = journal.state.verdicts["low"]
    assert (verdict.kind, verdict.cause) == ("undecided", "excluded")
    assert "high of the same family" in verdict.reason


def test_the_policy_asks_after_all_else_is_screened_and_before_any_composition() -> None:
    risky = hypothesis("risky", 2, tier=3)
    journal = start([hypothesis("good", 1), risky], with_policy(ask_before_tier=3))

    step = drive(journal, World(effects={"good": 0.3, "risky": 0.4}, run_sd=0.02))

    assert step == AskApproval(ids=["risky"])
    assert "good" in journal.state.screened
    assert "risky" not in {run.intent.candidate for run in journal.state.runs}
    assert not arms(journal, Purpose.COMPOSITION)
    assert describe_next(journal.state).kind == "approve"


@pytest.mark.parametrize(
    ("answer", "stack"), [({"approved": True}, ["risky", "good"]), ({"status": "cancelled"}, ["good"])]
)
def test_after_the_persons_word_the_campaign_goes_on(answer: dict[str, object], stack: list[str]) -> None:
    world = World(effects={"good": 0.3, "risky": 0.4}, run_sd=0.02)
    journal = start([hypothesis("good", 1), hypothesis("risky", 2, tier=3)], with_policy(ask_before_tier=3))
    drive(journal, world)
    replan(journal, [hypothesis("good", 1), hypothesis("risky", 2, tier=3, **answer)])

    assert isinstance(drive(journal, world), Done)
    assert journal.state.stack == stack


def test_a_candidate_cancelled_after_its_screen_is_not_composed() -> None:
    journal = start([hypothesis("good", 1), hypothesis("ask", 2, tier=3)], with_policy(ask_before_tier=3))
    drive(journal, WORLD)
    cancelled = [hypothesis("good", 1, status="cancelled"), hypothesis("ask", 2, tier=3, status="cancelled")]
    replan(journal, cancelled)

    assert isinstance(drive(journal, WORLD), Done)
    assert journal.state.stack == []
    assert [item.status for item in todo(journal.state)] == ["cancelled", "cancelled"]


def test_a_document_removed_after_its_runs_does_not_break_the_campaign() -> None:
    journal = start([hypothesis("good", 1), hypothesis("ask", 2, tier=3)], with_policy(ask_before_tier=3))
    drive(journal, WORLD)
    replan(journal, [hypothesis("ask", 2, tier=3, approved=True)])

    assert isinstance(drive(journal, WORLD), Done)
    assert journal.state.stack == []
    assert {h.id for h in journal.state.hypotheses} == {"good", "ask"}


def test_a_spent_budget_leaves_verdicts_for_all_and_room_to_confirm() -> None:
    budget = Budget(
        total_s=400, calibration_brackets=2, max_brackets=6, composition_brackets=3, confirmation_brackets=3
    )
    names = ["good", *(f"null-{i}" for i in range(9))]
    journal = start([hypothesis(name, i + 1) for i, name in enumerate(names)], small_spec(budget=budget))

    step = drive(journal, World(effects={"good": 0.8}, run_sd=0.04, duration_s=10))

    state = journal.state
    assert isinstance(step, Done)
    assert set(state.verdicts) == set(names)
    assert sum(verdict.kind == "undecided" for verdict in state.verdicts.values()) > 3
    assert any("budget ended" in verdict.reason for verdict in state.verdicts.values())
    assert state.stack == ["good"]
    assert state.headline is not None
    assert state.headline.confirmed
    assert state.spent_s <= 400 + 2 * 10


def test_a_candidate_that_composition_cannot_decide_does_not_eat_the_budget() -> None:
    spec = small_spec(
        budget=Budget(total_s=400, calibration_brackets=2, composition_brackets=100, confirmation_brackets=2),
        statistics=Statistics(screen_alpha=0.4, adopt_alpha=1e-60),
    )
    journal = start([hypothesis("good")], spec)

    assert isinstance(drive(journal, World(effects={"good": 0.1}, run_sd=0.02, duration_s=10)), Done)
    verdict = journal.state.verdicts["good"]
    assert verdict.kind == "undecided"
    assert "on top of the baseline, on fresh runs" in verdict.reason
    assert arms(journal, Purpose.COMPOSITION)
    assert journal.state.spent_s <= 400 + 2 * 10


def test_a_budget_smaller_than_the_calibration_still_ends() -> None:
    journal = start([hypothesis("good")], small_spec(budget=Budget(total_s=1)))

    assert isinstance(drive(journal, WORLD), Done)
    assert journal.state.verdicts["good"].cause == "budget"


@pytest.mark.parametrize(("engine", "launch_s"), [("llamacpp", 2.0), ("vllm", 60.0), ("mine", 50.0)])
def test_before_the_first_run_a_launch_is_taken_for_what_its_engine_needs_or_for_half_of_its_timeout(
    engine: str, launch_s: float
) -> None:
    spec = small_spec(target=Target(engine=engine, start_timeout_s=100.0))
    workload = spec.workload
    load_s = workload.warmup_min_s + workload.windows * workload.window_s

    assert describe_next(start([hypothesis("good")], spec).state).expected_s == pytest.approx(launch_s + load_s)


def test_what_is_said_to_be_next_is_what_is_done_and_the_rest_shrinks_to_nothing() -> None:
    journal = start([hypothesis("good")])
    first = describe_next(journal.state)
    before = remaining_s(journal.state)
    drive(journal, WORLD)

    assert (first.kind, first.purpose, first.candidate) == ("run", Purpose.CALIBRATION, None)
    assert before > 0
    assert first.times_assumed
    assert describe_next(journal.state).kind == "done"
    assert not describe_next(journal.state).times_assumed
    assert remaining_s(journal.state) == 0.0


def test_the_todo_tells_what_is_done_and_what_is_not() -> None:
    journal = start(
        [
            hypothesis("good", 1),
            hypothesis("gone", 2, status="blocked"),
            hypothesis("no", 3, status="cancelled"),
            hypothesis("ask", 4, tier=3),
        ],
        with_policy(ask_before_tier=3),
    )
    drive(journal, World(trouble=trouble_for("good", failure("oom", "load"))))

    assert {item.id: item.status for item in todo(journal.state)} == {
        "good": "completed",
        "gone": "cancelled",
        "no": "cancelled",
        "ask": "pending",
    }
