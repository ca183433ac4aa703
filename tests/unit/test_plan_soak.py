"""What is about to be adopted is soaked in a run that is made anyway, and what does not stand it does not ship."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from benchmarks.verdicts.soak_errors import ended
from benchmarks.verdicts.soak_falls import fallen

from assay.plan.fold import fold
from assay.plan.forecast import describe_next
from assay.plan.next_step import next_step
from assay.plan.soak_counts import FAILS_MORE, MAX_TRIES, Counts, falls_more
from assay.plan.soak_reports import not_shown_stable
from assay.plan.soaking import due_s, peak, suspect, unstable
from assay.plan.soaks_made import asked
from assay.records.event import Event
from assay.records.run import Purpose, RunIntent, RunOutcome
from assay.records.soak import MemoryTrend, Soak
from assay.records.spec import CampaignSpec, LoadPoint, Workload
from assay.records.state import CampaignState
from assay.render.soak_facts import growth_note
from assay.render.words import headline_words
from assay.units import MIB_BYTES
from tests.unit.simulated_world import Journal, World, completed, drive, hypothesis, kinds, perform, small_spec, start

SOAK_S = 30.0
GOOD = {"good": 0.3}
RESTS = Soak(point="main", concurrency=8, soaked_s=SOAK_S, requests=100, failed=0)


def grows(mib_per_s: float = 2.0) -> Soak:
    rate = mib_per_s * MIB_BYTES
    trend = MemoryTrend(
        where="server", num_samples=40, span_s=20, begin_bytes=2**30, end_bytes=2**30 + round(20 * rate),
        bytes_per_s=rate, low_bytes_per_s=0.9 * rate, high_bytes_per_s=1.1 * rate,
        tolerated_bytes_per_s=0.1 * MIB_BYTES, levels_off=False,
    )  # fmt: skip
    return RESTS.model_copy(update={"memory": [trend]})


def soaking(found: dict[frozenset[str], Soak]) -> Callable[[RunIntent, int], Soak]:
    """By the arm's deltas; every other arm stands it."""

    def soak(intent: RunIntent, nth: int) -> Soak:
        return found.get(frozenset(intent.arm.deltas), RESTS)

    return soak


def spec(**budget: Any) -> CampaignSpec:
    plain = small_spec()
    return plain.model_copy(update={"budget": plain.budget.model_copy(update={"soak_s": SOAK_S, **budget})})


def campaign(
    found: dict[frozenset[str], Soak] | None = None, effects: dict[str, float] | None = None, **budget: Any
) -> CampaignState:
    effects = effects or GOOD
    journal = start([hypothesis(name, number) for number, name in enumerate(effects, start=1)], spec(**budget))
    drive(journal, World(effects=effects, run_sd=0.005, soak=soaking(found or {})))
    return journal.state


def soaked(state: CampaignState) -> list[tuple[Purpose, str | None, list[str]]]:
    return [(r.intent.purpose, r.intent.candidate, r.intent.arm.deltas) for r in state.runs if r.intent.soak_s]


LEAKS = frozenset({"good"})


def test_the_first_run_of_a_candidate_in_composition_is_soaked_and_no_run_is_added() -> None:
    state = campaign()

    assert soaked(state) == [(Purpose.COMPOSITION, "good", ["good"])]
    assert completed(state) == completed(campaign(soak_s=0.0))
    assert kinds(state) == {"good": "adopted"}
    assert "soaked for 30 s at 8 streams: 100 requests, none failed" in state.verdicts["good"].reason
    assert state.headline is not None
    assert "stable for 30 s at its peak load" in state.headline.sentence


def test_a_soak_changes_no_effect() -> None:
    with_soak, without = (
        campaign(effects={"good": 0.3, "none": 0.0}),
        campaign(effects={"good": 0.3, "none": 0.0}, soak_s=0),
    )

    assert {n: v.effect for n, v in with_soak.verdicts.items()} == {n: v.effect for n, v in without.verdicts.items()}
    assert with_soak.headline is not None
    assert without.headline is not None
    assert with_soak.headline.effect == without.headline.effect


def test_a_candidate_whose_memory_grows_is_unstable_once_what_it_stands_on_was_soaked_and_does_not() -> None:
    state = campaign({LEAKS: grows()})
    verdict = state.verdicts["good"]

    assert (str(verdict.kind), verdict.cause) == ("unstable", "memory-growth")
    assert "grows (+120 MiB/min [+108, +132], +6 tolerated); its reference: memory was not looked at" in verdict.reason
    assert [deltas for _, _, deltas in soaked(state)] == [["good"], []]
    assert state.stack == []
    composition = [run for run in state.runs if run.intent.purpose is Purpose.COMPOSITION]
    assert len(composition) == 3  # the bracket that was begun, and no other


def test_a_candidate_is_not_blamed_for_what_the_baseline_does_too() -> None:
    state = campaign({LEAKS: grows(), frozenset(): grows()})

    assert kinds(state) == {"good": "adopted"}
    assert "as its reference's does: memory of the server grows (+120 MiB/min" in state.verdicts["good"].reason
    assert "the change is not to blame" in growth_note(state)
    assert state.headline is not None
    assert state.headline.memory_grows == "as-its-reference"
    assert kinds(campaign({LEAKS: grows(4.0), frozenset(): grows()})) == {"good": "unstable"}


def test_an_arm_that_serves_more_may_grow_faster_where_every_request_takes_the_same() -> None:
    slow, fast = (grows(rate).model_copy(update={"requests_per_s": 5 * rate}) for rate in (1.0, 4.0))

    assert kinds(campaign({LEAKS: fast, frozenset(): slow})) == {"good": "adopted"}
    assert kinds(campaign({LEAKS: fast.model_copy(update={"requests_per_s": 5.0}), frozenset(): slow})) == {
        "good": "unstable"
    }


def fails(count: int, requests: int = 100) -> Soak:
    return RESTS.model_copy(update={"failed": count, "requests": requests, "first_error": "http-500"})


def in_order(**found: list[Soak]) -> World:
    """Soaks of the baseline ("base") and of the arm with "good", one after another; the last goes on for ever."""

    def soak(intent: RunIntent, nth: int) -> Soak:
        told = found["good" if intent.arm.deltas else "base"]
        seen[intent.arm.label] = seen.get(intent.arm.label, -1) + 1
        return told[min(seen[intent.arm.label], len(told) - 1)]

    seen: dict[str, int] = {}
    return World(effects=GOOD, run_sd=0.005, soak=soak)


def played(world: World, **budget: Any) -> CampaignState:
    journal = start([hypothesis("good")], spec(**budget))
    drive(journal, world)
    return journal.state


DEAD = RESTS.model_copy(update={"died": "host-oom at stage under-load: Killed, 20 s into a soak at peak load"})
SILENT = RESTS.model_copy(update={"silent_s": 20.0, "stalled": True})


@pytest.mark.parametrize(("fell", "cause"), [(DEAD, "crashed"), (SILENT, "hang")])
def test_what_falls_in_every_soak_is_unstable_once_its_reference_is_shown_to_stand_its_own(
    fell: Soak, cause: str
) -> None:
    state = campaign({LEAKS: fell})
    verdict = state.verdicts["good"]

    assert (str(verdict.kind), verdict.cause) == ("unstable", cause)
    assert (
        "it fell in 3 of 3 soaks, its reference in none of 2 soaks (the arm falls more, p <= 0.035)" in verdict.reason
    )
    assert [deltas for _, _, deltas in soaked(state)] == [["good"], [], ["good"], [], ["good"]]


@pytest.mark.parametrize("fell", [DEAD, SILENT])
def test_what_falls_as_its_reference_does_is_not_blamed_and_said_not_to_be_stable_everywhere(fell: Soak) -> None:
    state = campaign({LEAKS: fell, frozenset(): fell})
    said = "it fell in 1 of 1 soak, its reference in 1 of 1 soak (no difference)"

    assert kinds(state) == {"good": "adopted"}
    assert [deltas for _, _, deltas in soaked(state)] == [["good"], []]
    assert state.headline is not None
    assert state.headline.confirmed
    for told in (state.verdicts["good"].reason, state.headline.sentence, f"not shown to be stable: {not_shown(state)}"):
        assert f"not shown to be stable: soaked{' at' if fell.died else ' for 30 s at'} 8 streams" in told
        assert said in told
    assert state.headline.not_shown_stable == not_shown(state)


UNASKED = "no soak was asked for (budget.soak_s is 0)"


def test_what_was_adopted_without_a_soak_is_said_not_to_be_shown_stable_in_old_records_too() -> None:
    journal = start([hypothesis("good")], spec(soak_s=0.0))
    drive(journal, World(effects=GOOD, run_sd=0.005))
    headline = journal.state.headline
    assert headline is not None
    assert headline.not_shown_stable == UNASKED
    assert headline.sentence.endswith(f"confirmed on fresh runs; not shown to be stable: {UNASKED}.")

    last = journal.events[-1]
    old = headline.model_dump(mode="json") | {"sentence": "good: +34.9%, confirmed on fresh runs."}
    for name in ("not_shown_stable", "memory_grows"):
        del old[name]
    before_soaks = fold([*journal.events[:-1], last.model_copy(update={"payload": {"headline": old}})])

    assert before_soaks.headline is not None
    assert before_soaks.headline.not_shown_stable == UNASKED
    assert headline_words(before_soaks) == (
        f"good: +34.9%, confirmed on fresh runs; not shown to be stable: {UNASKED}."
    )


def not_shown(state: CampaignState) -> str | None:
    return not_shown_stable(state, state.stack, [])


def test_what_fell_once_beside_a_reference_that_stood_is_neither_blamed_nor_adopted() -> None:
    state = played(in_order(good=[DEAD, RESTS], base=[RESTS]))

    assert kinds(state) == {"good": "undecided"}
    assert "not shown to be stable: soaked at 8 streams" in state.verdicts["good"].reason
    assert "it fell in 1 of 3 soaks, its reference in none of 3 soaks (too few to tell them apart)" in (
        state.verdicts["good"].reason
    )


def test_a_fall_beside_a_reference_that_cannot_be_soaked_says_so() -> None:
    state = played(in_order(good=[DEAD], base=[NEVER_STEADY]))

    assert kinds(state) == {"good": "unstable"}
    assert "the reference was not soaked" in state.verdicts["good"].reason


def falls(soaks: int, fell: int) -> Counts:
    return Counts(soaks=soaks, requests=0, failed=0, fell=fell)


def test_an_arm_that_falls_as_its_reference_is_hardly_ever_blamed_and_one_that_falls_alone_always_is() -> None:
    """Where both fall in 60% of their soaks chance makes most of it: 0.6^3 x 0.4^2."""
    shown = {k: m for k in range(1, 4) for m in range(4) if falls_more(falls(k, k), falls(m, 0))}
    assert all(max(q**k * (1 - q) ** m for q in np.linspace(0, 1, 101)) <= FAILS_MORE for k, m in shown.items())
    assert shown == {2: 3, 3: 3}
    assert falls_more(falls(3, 3), falls(2, 0))
    assert not falls_more(falls(3, 2), falls(3, 0))
    assert fallen(0.6, 0.6, campaigns=4).kinds["unstable"] == 0
    assert fallen(1.0, 0.0, campaigns=1).kinds == {"unstable": 1}


def test_requests_that_fail_make_unstable_once_the_reference_is_shown_to_fail_fewer() -> None:
    state = campaign({LEAKS: fails(20)})
    verdict = state.verdicts["good"]

    assert (str(verdict.kind), verdict.cause) == ("unstable", "errors-under-soak")
    assert "20 failed, the first: http-500" in verdict.reason
    assert "its reference: none of 100 requests failed (the arm fails more" in verdict.reason
    assert [deltas for _, _, deltas in soaked(state)] == [["good"], []]


def test_requests_that_fail_as_often_at_the_reference_are_no_fault_of_the_candidate() -> None:
    state = campaign({LEAKS: fails(5), frozenset(): fails(4)})

    assert kinds(state) == {"good": "adopted"}
    assert "its reference: 4 of 100 requests failed (no difference" in state.verdicts["good"].reason
    assert [deltas for _, _, deltas in soaked(state)] == [["good"], []]  # nothing is left to be told apart


def test_one_failed_request_that_does_not_come_again_makes_nothing_unstable_and_is_told() -> None:
    state = played(in_order(good=[fails(1), RESTS], base=[RESTS]))

    assert kinds(state) == {"good": "adopted"}
    assert "its reference: none of 300 requests failed in 3 soaks (too few to tell them apart" in (
        state.verdicts["good"].reason
    )
    assert [deltas for _, _, deltas in soaked(state)][:4] == [["good"], [], ["good"], []]
    tested = [run for run in state.runs if run.intent.purpose is Purpose.COMPOSITION and run.intent.candidate]
    assert len(tested) == MAX_TRIES


def test_few_failures_that_come_again_in_every_soak_add_up_to_evidence() -> None:
    state = played(in_order(good=[fails(4)], base=[RESTS]))

    assert kinds(state) == {"good": "unstable"}
    assert [deltas for _, _, deltas in soaked(state)] == [["good"], [], ["good"], []]  # 8 of 200 against 0 of 200


def test_an_arm_that_fails_as_its_reference_is_hardly_ever_blamed_at_any_look() -> None:
    """Twice 2% of 400 requests a soak: 5% are declared, over all five looks."""
    blamed = ended(0.02, 0.02, arms=400).blamed

    assert blamed < 0.05 * 400
    assert ended(0.06, 0.02, arms=400).blamed > 0.9 * 400


NEVER_STEADY = RESTS.model_copy(update={"problem": "steady: never"})


def test_a_reference_that_cannot_be_soaked_excuses_no_failed_request() -> None:
    state = played(in_order(good=[fails(1)], base=[NEVER_STEADY]))

    assert kinds(state) == {"good": "unstable"}
    assert "the reference was not soaked" in state.verdicts["good"].reason
    assert [deltas for _, _, deltas in soaked(state)] == [["good"], *MAX_TRIES * [[]]]


def test_growth_beside_a_reference_that_cannot_be_soaked_makes_nothing_unstable_and_is_told() -> None:
    state = played(in_order(good=[grows()], base=[NEVER_STEADY]))

    assert kinds(state) == {"good": "adopted"}
    assert "memory of the server grows (+120 MiB/min" in state.verdicts["good"].reason
    assert "its reference was not soaked" in state.verdicts["good"].reason


@pytest.mark.parametrize("seen", [grows(), fails(20)])
def test_a_reference_that_dies_in_its_soak_blames_nobody_ends_no_campaign_and_is_told(seen: Soak) -> None:
    state = campaign({LEAKS: seen, frozenset(): DEAD})

    assert kinds(state) == {"good": "adopted"}
    assert "its reference died in its own: host-oom at stage under-load" in state.verdicts["good"].reason
    assert state.headline is not None
    assert state.headline.confirmed
    assert [deltas for _, _, deltas in soaked(state)] == [["good"], []]
    assert "its reference died in its own" in str(not_shown(state))
    assert f"confirmed on fresh runs; not shown to be stable: {not_shown(state)}" in state.headline.sentence
    assert state.headline.not_shown_stable == not_shown(state)
    assert not_shown(campaign()) is None


def calibrated() -> CampaignState:
    journal = start([hypothesis("good")], spec())
    while journal.state.calibration is None:
        advance(journal, World(effects=GOOD, run_sd=0.005))
    return journal.state


def within(state: CampaignState, total_s: float) -> CampaignState:
    budget = state.spec.budget.model_copy(update={"total_s": total_s})
    return state.model_copy(update={"spec": state.spec.model_copy(update={"budget": budget})})


def test_a_soak_leaves_the_confirmation_its_time() -> None:
    """Every run at 10 s: a second less than run, closing run, confirmation and both soaks take, and it is left out."""
    state = calibrated()
    needed = state.spent_s + 10.0 * (2 + 2 * state.spec.budget.confirmation_brackets + 1) + 2 * SOAK_S

    assert due_s(within(state, needed), ["good"], []) == SOAK_S
    assert due_s(within(state, needed - 1), ["good"], []) == 0.0


def test_beside_a_reference_that_was_soaked_a_soak_takes_its_own_time_alone() -> None:
    journal = start([hypothesis("good")], spec())
    world = World(effects=GOOD, run_sd=0.005, soak=soaking({LEAKS: grows(), frozenset(): grows()}))
    while len(soaked(journal.state)) < 2:
        advance(journal, world)
    state = journal.state
    needed = state.spent_s + 10.0 * (2 + 2 * state.spec.budget.confirmation_brackets + 1) + SOAK_S

    assert due_s(within(state, needed), ["other"], []) == SOAK_S
    assert due_s(within(state, needed - 1), ["other"], []) == 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed(World):
    """A world in which a soak takes its time, and a tenth more until its load is steady."""

    def answer(self, intent: RunIntent, state: CampaignState) -> RunOutcome:
        found = World.answer(self, intent, state)
        return found.model_copy(update={"duration_s": found.duration_s + 1.1 * intent.soak_s})


def test_no_budget_is_so_tight_that_a_candidate_is_blamed_for_what_the_baseline_does_too() -> None:
    world = Timed(effects=GOOD, run_sd=0.005, soak=soaking({LEAKS: grows(), frozenset(): grows()}))
    ends = [played(world, total_s=float(total_s)) for total_s in range(100, 340, 8)]

    tested = [end for end in ends if "good" in end.verdicts and end.verdicts["good"].kind != "undecided"]
    assert {kind for end in tested for kind in kinds(end).values()} == {"adopted"}
    assert {len(soaked(end)) for end in tested} == {0, 2}  # of both, or of none
    assert max(end.charged_s - end.spec.budget.total_s for end in ends) < 2 * (10.0 + 0.1 * SOAK_S)
    reasons = [end.verdicts["good"].reason for end in tested if not soaked(end)]
    assert all("not soaked: no time: the budget had no 60 s left for it and for its" in reason for reason in reasons)


def interrupted(times: int) -> CampaignState:
    """A campaign in which the first soaks were ended by Ctrl-C."""
    left = [None] * times

    def soak(_intent: RunIntent, _nth: int) -> Soak | None:
        return left.pop() if left else RESTS

    journal = start([hypothesis("good")], spec())
    drive(journal, World(effects=GOOD, run_sd=0.005, soak=soak))
    return journal.state


def test_an_interrupted_soak_is_made_again_with_the_arms_next_run() -> None:
    state = interrupted(1)

    assert [candidate for _, candidate, _ in soaked(state)] == ["good", "good"]
    assert "soaked for 30 s" in state.verdicts["good"].reason
    assert completed(state) == completed(interrupted(0))  # the run that was interrupted in its soak counts


def test_what_was_never_soaked_to_the_end_is_not_adopted_until_it_was() -> None:
    state = interrupted(2)

    assert kinds(state) == {"good": "adopted"}
    assert "soaked for 30 s" in state.verdicts["good"].reason
    assert [purpose for purpose, _, _ in soaked(state)] == 3 * [Purpose.COMPOSITION]
    assert state.headline is not None
    assert "stable for 30 s" in state.headline.sentence


def test_what_ends_every_soak_together_with_assay_is_not_adopted() -> None:
    state = interrupted(99)

    assert kinds(state) == {"good": "undecided"}
    assert f"each of {MAX_TRIES} soaks ended with Assay itself" in state.verdicts["good"].reason


def test_a_soak_whose_time_is_not_left_is_not_begun_and_that_is_told() -> None:
    state = campaign(total_s=3600.0, soak_s=7200.0)

    assert soaked(state) == []
    assert kinds(state) == {"good": "adopted"}
    assert (
        "not soaked: no time: the budget had no 14400 s left for it and for its reference"
        in state.verdicts["good"].reason
    )
    assert state.headline is not None
    assert "not soaked" in state.headline.sentence


def test_with_one_bracket_only_the_reference_that_closes_it_is_soaked() -> None:
    state = campaign({LEAKS: grows()}, min_brackets=1, composition_brackets=1)

    assert kinds(state) == {"good": "unstable"}


def test_a_soak_that_says_nothing_is_tried_again_and_then_told() -> None:
    state = campaign({LEAKS: NEVER_STEADY}, composition_brackets=3)

    assert kinds(state) == {"good": "adopted"}
    assert "not soaked: steady: never" in state.verdicts["good"].reason
    assert [candidate for _, candidate, _ in soaked(state)] == ["good", "good", "stack"]
    assert state.headline is not None
    assert state.headline.confirmed
    assert "not soaked" in state.headline.sentence


@pytest.mark.parametrize(
    ("seen", "said"), [(grows(), "unstable (memory-growth)"), (DEAD, "not confirmed: not shown to be stable: soaked")]
)
def test_a_stack_that_was_never_soaked_as_it_is_is_soaked_in_its_confirmation(seen: Soak, said: str) -> None:
    # "third" does what "first" does, and better beside "second": the ablation takes "first" out again.
    effects = {"first": 0.30, "second": 0.25, "third": 0.20}
    together = {frozenset({"first", "third"}): -0.30, frozenset({"second", "third"}): 0.20}
    journal = start([hypothesis(name, number) for number, name in enumerate(effects, start=1)], spec())
    found = {frozenset({"second", "third"}): seen}
    drive(journal, World(effects=effects, instead=together, run_sd=0.002, soak=soaking(found)))
    state = journal.state
    assert state.stack == ["second", "third"]

    assert (Purpose.CONFIRMATION, "stack", ["second", "third"]) in soaked(state)
    assert (Purpose.CONFIRMATION, None, []) in soaked(state)
    assert state.headline is not None
    assert not state.headline.confirmed
    assert said in state.headline.sentence


def test_the_next_step_says_that_it_soaks_and_counts_the_time() -> None:
    journal = start([hypothesis("good")], spec())
    world = World(effects=GOOD, run_sd=0.005)
    for _ in range(200):
        told = describe_next(journal.state)
        if "soaked" in told.why:
            break
        advance(journal, world)

    assert "then soaked for 30 s at its peak load" in told.why
    assert told.expected_s == 10.0 + SOAK_S
    assert told.remaining_s >= told.expected_s


def advance(journal: Journal, world: World) -> None:
    perform(journal, next_step(journal.state), world)


def test_a_question_asked_of_an_assay_that_knew_no_soak_has_none() -> None:
    first = start([hypothesis("good")], spec()).events[0]
    payload = {**first.payload, "spec": {**first.payload["spec"]}}
    payload["spec"]["budget"] = {k: v for k, v in payload["spec"]["budget"].items() if k != "soak_s"}

    state = fold([Event.model_validate({**first.model_dump(), "payload": payload})])

    assert state.spec.budget.soak_s == 0
    assert due_s(state, ["good"], []) == 0


def test_the_peak_is_the_point_with_most_tokens_in_flight() -> None:
    long = LoadPoint(name="long", concurrency=4, input_tokens=(1000, 4000), output_tokens=(100, 200))
    workload = Workload(concurrency=64, input_tokens=(32, 64), output_tokens=(16, 64), points=[long])

    assert peak(workload)[0] == "long"
    assert peak(workload)[1].concurrency == 4
    assert peak(workload.model_copy(update={"points": []}))[0] == "main"
    assert peak(workload.model_copy(update={"shared_prefix_tokens": 4000}))[0] == "main"  # 64 prompts hold it, not 4


def with_soaks(state: CampaignState, **found: list[Soak]) -> CampaignState:
    """The same campaign, as if the soaks of the arm ("good") and of the baseline ("base") had been these alone."""
    left = {frozenset(deltas): list(found[name]) for name, deltas in (("good", ["good"]), ("base", []))}
    runs = []
    for run in state.runs:
        soaks = left[frozenset(run.intent.arm.deltas)]
        if run in asked(state, run.intent.arm.deltas) and soaks and run.outcome:
            outcome = run.outcome.model_copy(update={"soak": soaks.pop(0)})
            runs.append(run.model_copy(update={"outcome": outcome}))
        else:
            runs.append(run.model_copy(update={"intent": run.intent.model_copy(update={"soak_s": 0.0})}))
    assert not any(left.values())
    return state.model_copy(update={"runs": runs})


def test_a_soak_in_which_a_server_fell_is_not_forgotten_for_one_that_it_stood() -> None:
    state = played(in_order(good=[fails(1), fails(1)], base=[RESTS]))
    found = with_soaks(state, good=[SILENT, RESTS], base=[RESTS])

    assert unstable(found, ["good"], []) is None
    assert "no token came for the last 20 s" in str(suspect(found, ["good"], []))


def test_a_reference_that_died_once_excuses_nothing_where_it_lived_before() -> None:
    state = played(in_order(good=[fails(1), fails(1)], base=[RESTS, RESTS]))
    dead = RESTS.model_copy(update={"died": "oom-under-load"})

    found = with_soaks(state, good=[fails(1), fails(90)], base=[RESTS, dead])
    blamed = unstable(found, ["good"], [])

    assert blamed is not None
    assert blamed.cause == "errors-under-soak"
    assert "its reference: none of 100 requests failed" in blamed.reason
    assert unstable(with_soaks(state, good=[fails(1), fails(90)], base=[dead, dead]), ["good"], []) is None
