"""Searches: the planner's own functions in worlds whose best setting is known."""

from __future__ import annotations

import math

import pytest

from assay.plan.dial_runs import history, log_ratios, series_of
from assay.plan.dials import POINTS_PER_BASELINE, Settled, applied, ground_of, next_point, nothing_found, search_of
from assay.records.dials import Dial, DialEstimate, Knob
from assay.records.run import RunOutcome, RunStatus
from assay.units import NS_PER_S
from tests.unit.dials_world import BATCH, DIAL, HYPOTHESIS, SLOTS, drive, ended, hill, settings_run, start
from tests.unit.simulated_world import failure


@pytest.fixture(scope="module")
def searched():
    """A whole search of the hill; its records are frozen."""
    return drive(start(), hill)


def test_the_search_names_a_setting_near_the_best_and_with_fewer_runs_than_the_grid():
    for seed in range(4):
        state, end = drive(start(), hill, seed=seed)
        assert hill(end.result.flags) > 0.95 * 100
        assert len(state.runs) <= 20


def test_what_was_found_becomes_the_flags_of_the_hypothesis(searched):
    _, end = searched
    found = applied(HYPOTHESIS, end.result)
    assert found.id == HYPOTHESIS.id
    assert found.optimization.flags == end.result.flags
    assert set(end.result.settings) == {"slots", "batch"}


def test_the_expected_gain_is_about_the_true_one(searched):
    _, end = searched
    low, high = end.result.expected
    assert low < hill(end.result.flags) / hill({"--parallel": 1, "--ubatch-size": 512}) - 1 < high


def test_a_flat_landscape_names_nothing():
    _, end = drive(start(), lambda flags: 100.0)
    assert end.result.flags is None
    assert nothing_found(HYPOTHESIS, end.result).kind == "undecided"
    with pytest.raises(ValueError, match="named no setting"):
        applied(HYPOTHESIS, end.result)


def test_a_baseline_that_is_the_best_is_left_alone():
    _, end = drive(start(baseline={"--parallel": 8, "--ubatch-size": 128}), hill)
    assert end.result.flags is None


def test_the_baselines_runs_count_for_its_own_setting():
    state = start()
    state = ended(state, next_point(state, HYPOTHESIS, DIAL), 50.0)
    assert search_of(state, HYPOTHESIS, DIAL).best == {"slots": 1, "batch": 512}
    elsewhere = start(baseline={"--parallel": 3, "--ubatch-size": 512})
    elsewhere = ended(elsewhere, next_point(elsewhere, HYPOTHESIS, DIAL), 50.0)
    assert search_of(elsewhere, HYPOTHESIS, DIAL).best is None


def test_a_search_says_what_the_chance_is_that_it_missed_something(searched):
    _, end = searched
    assert "the chance that any other gains 5.0% over the best is" in end.result.reason


def test_the_baseline_is_run_first_and_again_after_every_few_settings(searched):
    state, _ = searched
    assert state.runs[0].intent.candidate is None
    gaps, since = [], 0
    for run in state.runs[1:]:
        since = 0 if run.intent.candidate is None else since + 1
        gaps.append(since)
    assert max(gaps) == POINTS_PER_BASELINE


def test_the_next_run_depends_on_the_record_alone(searched):
    state, _ = searched
    for length in range(len(state.runs)):
        earlier = state.model_copy(update={"runs": state.runs[:length]})
        again = next_point(earlier.model_validate_json(earlier.model_dump_json()), HYPOTHESIS, DIAL)
        assert again.intent.arm == state.runs[length].intent.arm


def test_a_run_that_was_killed_is_made_again(searched):
    state, _ = searched
    for length in (1, 4):
        cut = state.runs[length]
        outcome = RunOutcome(run_id=cut.intent.run_id, status=RunStatus.ABANDONED, reason="killed", duration_s=0)
        killed = state.model_copy(update={"runs": [*state.runs[:length], cut.model_copy(update={"outcome": outcome})]})
        assert next_point(killed, HYPOTHESIS, DIAL).intent.arm == cut.intent.arm


def test_a_setting_that_ran_out_of_memory_rules_out_all_that_take_more():
    def small_box(flags):
        return failure("oom", "load") if flags["--parallel"] * flags["--ubatch-size"] > 1024 else hill(flags)

    for seed in range(3):
        state, end = drive(start(), small_box, seed=seed)
        failed: list[tuple[int, int]] = []
        for run, (slots, batch) in zip(state.runs, settings_run(state), strict=True):
            assert not any(slots >= s and batch >= b for s, b in failed)
            if run.outcome.status is RunStatus.FAILED:
                failed.append((slots, batch))
        assert len(failed) <= 4
        assert hill(end.result.flags) > 0.95 * 100


def test_a_crash_is_tried_once_more_and_then_left():
    def crashes_at_8(flags):
        return failure("crashed") if flags["--parallel"] == 8 else hill(flags)

    state, end = drive(start(), crashes_at_8)
    tried = settings_run(state)
    assert max(tried.count(one) for one in tried if one[0] == 8) == 2
    assert end.result.settings["slots"] != 8


@pytest.mark.parametrize("status", [RunStatus.WRONG_OUTPUT, RunStatus.NOT_APPLIED])
def test_a_setting_with_wrong_answers_or_without_effect_is_left_at_once(status):
    state, end = drive(start(), lambda flags: status if flags["--ubatch-size"] == 128 else hill(flags))
    tried = [one for one in settings_run(state) if one[1] == 128]
    assert len(tried) == len(set(tried))
    assert end.result.settings["batch"] != 128


def test_invalid_runs_are_made_again_a_few_times():
    state = start()
    state = ended(state, next_point(state, HYPOTHESIS, DIAL), 50.0)
    first = next_point(state, HYPOTHESIS, DIAL)
    for _ in range(3):
        again = next_point(state, HYPOTHESIS, DIAL)
        assert again.intent.arm == first.intent.arm
        state = ended(state, again, RunStatus.INVALID)
    assert next_point(state, HYPOTHESIS, DIAL).intent.arm != first.intent.arm


def test_a_dial_of_which_every_setting_fails_ends():
    def only_the_baseline(flags):
        return 100.0 if flags == {"--parallel": 1, "--ubatch-size": 512} else failure("bad-value", "arguments")

    dial = Dial(knobs=[SLOTS.model_copy(update={"low": 2})])
    _, end = drive(start(baseline={"--parallel": 1, "--ubatch-size": 512}), only_the_baseline, dial=dial)
    assert end.result.flags is None
    assert "every setting failed" in end.result.reason


def test_the_search_keeps_to_its_runs_and_to_the_budget():
    state, end = drive(start(), hill, dial=DIAL.model_copy(update={"max_launches": 6}), noise=0.1)
    assert len(state.runs) == 6
    assert "all 6 runs are made" in end.result.reason
    assert isinstance(next_point(start(), HYPOTHESIS, DIAL, out_of_budget=True), Settled)


def test_drift_does_not_make_late_settings_look_good():
    """1% a run: over a whole search more than what the best setting gains."""

    def small_hill(flags):
        return 100.0 * (hill(flags) / 100.0) ** 0.3

    for drift in (0.01, -0.01):
        _, end = drive(start(), small_hill, drift=drift)
        assert hill(end.result.flags) > 0.85 * 100


def test_an_estimate_points_the_way_and_a_wrong_one_does_not_stop_it():
    def points(factor):
        return [
            DialEstimate(
                settings={"slots": 2**i, "batch": 32 * 2**j},
                value=hill({"--parallel": 2**i, "--ubatch-size": 32 * 2**j}) ** factor,
            )
            for i in range(5)
            for j in range(5)
        ]

    free = [knob.model_copy(update={"memory": "none"}) for knob in (SLOTS, BATCH)]
    state, _ = drive(start(), hill, dial=Dial(knobs=free, estimates=points(1.0)))
    assert settings_run(state)[1] == (8, 128)
    _, end = drive(start(), hill, dial=DIAL.model_copy(update={"estimates": points(-0.5)}))
    assert hill(end.result.flags) > 0.9 * 100


def test_a_baseline_at_an_unknown_setting_is_still_what_gains_are_held_against():
    _, end = drive(start(baseline={}), lambda flags: hill(flags) if flags else 60.0)
    assert hill(end.result.flags) > 0.93 * 100
    assert end.result.expected[0] > 0.4


def test_unordered_choices_are_searched_too():
    knobs = [Knob(name="backend", flag="--backend", choices=["one", "two", "three"]), BATCH]

    def truth(flags):
        batch = math.log2(float(flags.get("--ubatch-size", 512)))
        return 100 * (1.3 if flags.get("--backend") == "three" else 1.0) * math.exp(-0.02 * (batch - 7) ** 2)

    _, end = drive(start(baseline={"--ubatch-size": 512}), truth, dial=Dial(knobs=knobs))
    assert end.result.settings["backend"] == "three"


def test_optunas_own_estimator_can_take_the_place_of_the_surface():
    state, end = drive(start(), hill, method="tree")
    assert end.result.flags is not None
    step = next_point(state.model_copy(update={"runs": state.runs[:4]}), HYPOTHESIS, DIAL, method="tree")
    assert step.intent.arm == state.runs[4].intent.arm


def test_runs_are_told_against_the_baseline_level_between_its_neighbouring_runs():
    state, _ = drive(start(), lambda flags: 100.0, noise=0.0, drift=0.01)
    found = history(state, HYPOTHESIS.id, ground_of(state, DIAL).space)
    last_baseline = max(trial.place for trial in found.valid if trial.point is None)
    inside = [ratio for trial, ratio in log_ratios(found) if trial.place < last_baseline]
    assert inside == pytest.approx([0.0] * len(inside), abs=1e-9)


def test_after_a_long_pause_or_on_another_machine_the_baseline_comes_first(searched):
    state, _ = searched
    early = state.model_copy(update={"runs": state.runs[:3]})
    assert next_point(early, HYPOTHESIS, DIAL).intent.candidate is not None
    last = early.runs[-1]
    night = last.model_copy(update={"intended_at_ns": last.intended_at_ns + 8 * 3600 * NS_PER_S, "ended_at_ns": None})
    moved = [
        run.model_copy(update={"intent": run.intent.model_copy(update={"host": host})})
        for run, host in zip(early.runs, ("one", "one", "two"), strict=True)
    ]
    killed = last.model_copy(  # its end was written when Assay was started again, in the morning
        update={
            "intent": last.intent.model_copy(update={"run_id": "killed"}),
            "outcome": RunOutcome(run_id="killed", status=RunStatus.ABANDONED, reason="killed", duration_s=0.0),
            "ended_at_ns": night.intended_at_ns - NS_PER_S,
        }
    )
    for runs in ([*early.runs[:2], night], [*early.runs[:2], killed, night], moved):
        assert next_point(early.model_copy(update={"runs": runs}), HYPOTHESIS, DIAL).intent.candidate is None


def test_runs_of_the_search_stand_in_a_series_of_their_own(searched):
    state, end = searched
    assert {run.intent.series for run in state.runs} == {series_of("dial")}
    assert end.result.runs == [run.intent.run_id for run in state.runs]
    assert search_of(state, HYPOTHESIS, DIAL).best == end.result.settings
