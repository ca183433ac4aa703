"""What fails is an outcome with a cause, retried only where it may have been an accident."""

from __future__ import annotations

import pytest

from assay.plan.next_step import next_step
from assay.plan.steps import Done, GiveUp
from assay.plan.verdicts import measured
from assay.records.run import RunIntent, RunStatus
from assay.records.spec import Objective
from assay.records.verdict import Effect, Verdict, VerdictKind
from tests.unit.simulated_world import (
    Journal,
    Trouble,
    World,
    drive,
    failure,
    hypothesis,
    measures,
    replan,
    small_spec,
    start,
    trouble_for,
)

INVALID, OK = RunStatus.INVALID, None


def verdict_after(
    *sequence: Trouble, effect: float = 0.3, series: str = "main", run_sd: float = 0.02
) -> tuple[Verdict, int, Journal]:
    """The verdict of a candidate whose runs end like this, and how many runs it had in that series."""
    journal = start([hypothesis("it")])
    world = World(effects={"it": effect}, run_sd=run_sd, trouble=trouble_for("it", *sequence, series=series))
    assert isinstance(drive(journal, world), Done)
    runs = [r for r in journal.state.runs if r.intent.candidate == "it" and r.intent.series.startswith(series)]
    return journal.state.verdicts["it"], len(runs), journal


@pytest.mark.parametrize(
    "cause", ["unknown-flag", "bad-value", "oom-at-load", "incompatible-combination", "model-corrupt"]
)
def test_a_launch_that_must_fail_again_is_blocked_without_a_retry(cause: str) -> None:
    verdict, runs, _ = verdict_after(failure(cause, "load"))

    assert (verdict.kind, verdict.cause, verdict.line, runs) == ("blocked", cause, f"{cause} at load", 1)
    assert verdict.effect is None


@pytest.mark.parametrize("cause", ["timeout", "killed", "unknown", "crashed", "engine-assertion"])
def test_a_launch_that_may_have_been_an_accident_is_tried_once_more(cause: str) -> None:
    verdict, runs, _ = verdict_after(failure(cause, "load"))

    assert (verdict.kind, verdict.cause, runs) == ("blocked", cause, 2)


def test_an_accident_that_does_not_repeat_costs_nothing() -> None:
    verdict, _, journal = verdict_after(failure("timeout", "load"), OK)

    assert verdict.kind is VerdictKind.ADOPTED
    assert [r.intent.attempt for r in journal.state.runs if r.intent.candidate == "it"][:3] == [1, 2, 1]


def test_a_crash_under_load_that_repeats_is_unstable() -> None:
    verdict, runs, _ = verdict_after(failure("crashed", "under-load"))

    assert (verdict.kind, verdict.cause, runs) == ("unstable", "crashed", 2)


def test_a_second_crash_counts_however_many_good_runs_lie_between() -> None:
    crash = failure("crashed", "under-load")
    verdict, runs, _ = verdict_after(crash, OK, crash, effect=0.05, run_sd=0.05)

    assert (verdict.kind, runs) == ("unstable", 3)
    assert verdict.effect is not None


def test_an_out_of_memory_under_load_is_unstable_at_once() -> None:
    verdict, runs, _ = verdict_after(failure("oom", "under-load"))

    assert (verdict.kind, verdict.cause, runs) == ("unstable", "oom-under-load", 1)


@pytest.mark.parametrize(
    ("status", "kind"), [(RunStatus.NOT_APPLIED, "not-applied"), (RunStatus.WRONG_OUTPUT, "wrong-output")]
)
def test_a_flag_without_force_or_with_other_answers_is_refused_at_once(status: RunStatus, kind: str) -> None:
    verdict, runs, journal = verdict_after(status)

    assert (verdict.kind, runs) == (kind, 1)
    assert journal.state.stack == []


def test_answers_that_turn_wrong_on_top_of_the_stack_are_refused_too() -> None:
    verdict, _, journal = verdict_after(RunStatus.WRONG_OUTPUT, series="composition")

    assert verdict.kind is VerdictKind.WRONG_OUTPUT
    assert journal.state.stack == []


@pytest.mark.parametrize("series", ["main", "composition"])
def test_three_invalid_runs_in_a_row_leave_a_candidate_undecided(series: str) -> None:
    verdict, runs, _ = verdict_after(INVALID, series=series)

    assert (verdict.kind, verdict.cause, runs) == ("undecided", "invalid", 3)
    assert "3 invalid runs in a row" in verdict.reason
    assert "made to be invalid" in verdict.reason


def test_invalid_runs_that_alternate_with_valid_ones_do_not() -> None:
    verdict, _, _ = verdict_after(INVALID, INVALID, OK, INVALID, INVALID, OK, INVALID, INVALID, OK)

    assert verdict.kind is VerdictKind.ADOPTED


@pytest.mark.parametrize("series", ["main", "composition", "confirmation"])
@pytest.mark.parametrize(
    ("trouble", "engine_failed"), [(failure("timeout", "load"), True), (failure("crashed"), True), (INVALID, False)]
)
def test_a_baseline_that_fails_three_times_in_a_row_ends_the_session(
    trouble: Trouble, engine_failed: bool, series: str
) -> None:
    journal = start([hypothesis("good")])
    world = World(effects={"good": 0.3}, trouble=trouble_for(None, trouble, series=series))

    step = drive(journal, world)

    assert isinstance(step, GiveUp)
    assert step.engine_failed is engine_failed
    assert "the baseline failed 3 times in a row" in step.reason
    assert ("server.log" in step.hint) is engine_failed


@pytest.mark.parametrize(
    ("errors", "hint"),
    [("8 http-400); the first: http-400: too long", "refuses the requests themselves"), ("8 http-503)", "quiet the")],
)
def test_requests_that_no_server_would_take_are_not_blamed_on_the_machine(errors: str, hint: str) -> None:
    journal = start([hypothesis("good")])
    drive(journal, World(trouble=trouble_for(None, INVALID)))
    why = {"reason": f"no-errors: 8 of 8 requests failed ({errors}"}
    runs = [
        run.model_copy(update={"outcome": run.outcome.model_copy(update=why)})
        for run in journal.state.runs
        if run.outcome is not None
    ]

    step = next_step(journal.state.model_copy(update={"runs": runs}))

    assert isinstance(step, GiveUp)
    assert hint in step.hint


def test_a_baseline_that_failed_yesterday_gets_another_chance_today() -> None:
    journal = start([hypothesis("good")])
    quiet = World(effects={"good": 0.3})
    noisy = World(effects={"good": 0.3}, trouble=trouble_for(None, OK, OK, OK, INVALID))
    assert isinstance(drive(journal, noisy), GiveUp)

    assert isinstance(drive(journal, quiet), Done)
    assert journal.state.stack == ["good"]


def test_an_a_a_run_that_fails_counts_as_the_baseline() -> None:
    journal = start([hypothesis("good")])

    step = drive(journal, World(trouble=trouble_for("baseline", failure("oom", "load"))))

    assert isinstance(step, GiveUp)


def test_two_failures_of_the_baseline_are_made_good_by_a_third_run_with_the_same_prompts() -> None:
    journal = start([hypothesis("good")])
    world = World(effects={"good": 0.3}, trouble=trouble_for(None, failure("timeout", "load"), INVALID, OK))

    assert isinstance(drive(journal, world), Done)
    first = journal.state.runs[:3]
    assert [run.intent.attempt for run in first] == [1, 2, 3]
    assert len({run.intent.seed for run in first}) == 1


def test_runs_without_a_value_of_the_objective_do_not_go_on_for_ever() -> None:
    """A run may be valid and still have too few samples for a latency quantile."""
    spec = small_spec(objective=Objective(metric="ttft_p50_s"))
    journal = start([hypothesis("good")], spec)

    step = drive(journal, World(trouble=lambda intent, nth: RunStatus.OK))

    assert isinstance(step, GiveUp)
    assert not step.engine_failed
    assert "it has no ttft_p50_s: too few samples" in step.reason


def test_a_candidate_without_a_value_of_the_objective_is_undecided() -> None:
    journal = start([hypothesis("it")], small_spec(objective=Objective(metric="ttft_p50_s")))

    assert isinstance(drive(journal, World(trouble=trouble_for("it", RunStatus.OK))), Done)
    verdict = journal.state.verdicts["it"]
    assert (verdict.kind, verdict.cause) == ("undecided", "invalid")
    assert "it has no ttft_p50_s" in verdict.reason


def test_a_stack_that_fails_as_reference_ends_that_trial_and_not_the_campaign() -> None:
    def trouble(intent: RunIntent, nth: int) -> Trouble:
        on_stack = intent.series == "composition:second" and intent.candidate is None
        return failure("crashed", "under-load") if on_stack else None

    journal = start([hypothesis("first", 1), hypothesis("second", 2)])
    world = World(effects={"first": 0.5, "second": 0.3}, run_sd=0.01, trouble=trouble)

    assert isinstance(drive(journal, world), Done)
    verdict = journal.state.verdicts["second"]
    assert (verdict.kind, verdict.cause) == ("undecided", "stack-failed")
    assert "failed 3 times in a row" in verdict.reason
    assert journal.state.stack == ["first"]


@pytest.mark.parametrize(
    ("sequence", "words"),
    [
        ((failure("crashed"),), "it failed in 2 of 2 fresh runs"),
        ((OK, failure("crashed"), OK, failure("crashed")), "it failed in 2 of 4 fresh runs"),
        ((OK, INVALID), "3 of its runs in a row do not count"),
        ((RunStatus.WRONG_OUTPUT,), "3 of its runs in a row do not count"),
    ],
)
def test_a_stack_that_does_not_hold_in_confirmation_is_not_confirmed(sequence: tuple[Trouble, ...], words: str) -> None:
    spec = small_spec().model_copy(
        update={"budget": small_spec().budget.model_copy(update={"confirmation_brackets": 4})}
    )
    journal = start([hypothesis("good")], spec)
    world = World(effects={"good": 0.5}, run_sd=0.01, trouble=trouble_for("stack", *sequence, series="confirmation"))

    assert isinstance(drive(journal, world), Done)
    headline = journal.state.headline
    assert headline is not None
    assert not headline.confirmed
    assert words in headline.sentence


def test_one_crash_of_the_stack_in_confirmation_is_tried_again() -> None:
    journal = start([hypothesis("good")])
    crash = trouble_for("stack", failure("crashed"), OK, series="confirmation")

    assert isinstance(drive(journal, World(effects={"good": 0.5}, trouble=crash)), Done)
    assert journal.state.headline is not None
    assert journal.state.headline.confirmed


def test_a_gain_of_the_screen_that_fresh_runs_do_not_show_is_not_confirmed() -> None:
    """The winner's curse: here the gain was there while screening and composing, and is gone afterwards."""
    journal = start([hypothesis("good")])
    drive_until_adopted = World(
        effects={"good": 0.5}, run_sd=0.01, trouble=trouble_for(None, INVALID, series="confirm")
    )
    assert isinstance(drive(journal, drive_until_adopted), GiveUp)
    assert journal.state.stack == ["good"]

    assert isinstance(drive(journal, World(run_sd=0.01, seed=1)), Done)
    assert journal.state.headline is not None
    assert not journal.state.headline.confirmed
    assert "do not confirm it" in journal.state.headline.sentence


def test_confirmation_runs_of_a_smaller_stack_do_not_count_for_the_grown_one() -> None:
    """A person lifts a cancellation while the confirmation is under way."""
    world = World(effects={"good": 0.5, "late": 0.4}, run_sd=0.01)
    journal = start([hypothesis("good", 1), hypothesis("late", 2, status="cancelled")])
    stopped = World(effects=world.effects, run_sd=0.01, trouble=trouble_for(None, OK, OK, INVALID, series="confirm"))
    assert isinstance(drive(journal, stopped), GiveUp)
    replan(journal, [hypothesis("good", 1), hypothesis("late", 2)])

    assert isinstance(drive(journal, world), Done)
    assert journal.state.stack == ["good", "late"]
    assert journal.state.headline is not None
    assert journal.state.headline.effect is not None
    assert journal.state.headline.effect.num_brackets == 2
    assert journal.state.headline.effect.log_ratio == pytest.approx(0.9, abs=0.05)


def test_a_predicted_total_loss_does_not_break_the_scoring() -> None:
    effect = Effect(
        log_ratio=-1, low=-2, high=-0.5, num_brackets=1, standard_error=0.1, degrees_of_freedom=4, confidence=0.9
    )

    verdict = measured(hypothesis("it", predicted=(-1.0, -0.1)), VerdictKind.WORSE, effect, "slower", [])

    assert verdict.prediction_held


def test_a_gain_below_what_is_worth_having_is_not_called_noise() -> None:
    spec = small_spec(objective=Objective(min_effect=0.10))
    journal = start([hypothesis("it")], spec)
    drive(journal, World(effects={"it": 0.09}, run_sd=0.02))

    verdict = journal.state.verdicts["it"]
    assert verdict.kind is VerdictKind.UNDECIDED
    assert "a gain, but not shown to be worth 10%" in verdict.reason


def test_the_simulated_latency_is_the_reciprocal_of_the_throughput() -> None:
    assert measures(50.0).ttft.p50_s == pytest.approx(0.02)


def test_a_baseline_that_must_fail_the_same_way_again_is_not_tried_again() -> None:
    world = World(trouble=trouble_for(None, failure("model-not-found", "load"), series="main"))

    step = drive(journal := start([hypothesis("good")]), world)

    assert isinstance(step, GiveUp)
    assert "would fail the same way again" in step.reason
    assert len(journal.state.runs) == 1
