"""What a dial may be set to."""

from __future__ import annotations

import tomllib

import pytest
from pydantic import ValidationError

from assay.catalogue.loader import DATA
from assay.errors import UsageError
from assay.plan.dial_memory import chances
from assay.plan.dial_runs import Excluded, History, Trial
from assay.plan.dial_space import MAX_LISTED, Levels, Space, arm_flags, predictor, resolve
from assay.plan.hypotheses import facts_of
from assay.records.dials import Dial, DialEstimate, Knob
from tests.unit.dials_world import BASELINE, BATCH, DIAL, SLOTS, start

STATE = start()
FACTS = facts_of(STATE.spec, STATE.machine, STATE.build, STATE.model)


def space(*knobs: Knob, constraints: list[str] | None = None, baseline: dict[str, int] | None = None) -> Space:
    return resolve(Dial(knobs=list(knobs), constraints=constraints or []), FACTS, baseline or {})


def values(knob: Knob) -> list[object]:
    return list(space(knob).axes[0].values)


def test_a_range_is_listed_by_its_step_or_its_factor_and_always_reaches_its_high_end():
    assert values(Knob(name="a", flag="--a", low=1, high=8, factor=2)) == [1, 2, 4, 8]
    assert values(Knob(name="a", flag="--a", low=1, high=6, factor=2)) == [1, 2, 4, 6]
    assert values(Knob(name="a", flag="--a", low=0.80, high=0.88, step=0.04)) == [0.8, 0.84, 0.88]
    assert values(Knob(name="a", flag="--a", low=3, high=3, step=1)) == [3]


def test_the_ends_of_a_range_are_read_off_the_machine_and_the_load():
    assert values(Knob(name="a", flag="--a", low=1, high="= workload.concurrency", factor=2)) == [1, 2, 4, 8, 16]
    assert values(Knob(name="a", flag="--a", low=1, high="= machine.usable_cores", step=1)) == [1, 2]


def test_the_least_of_values_of_which_one_is_unknown_is_unknown_and_said_to_be():
    with pytest.raises(UsageError, match="hangs on a fact that is unknown"):
        values(Knob(name="a", flag="--a", low=1, high="= min(step.running, 8)", step=1))


def test_conditions_between_knobs_remove_settings():
    found = space(SLOTS, BATCH, constraints=["dial.batch >= 32 * dial.slots"])
    assert found.points
    assert all(s["batch"] >= 32 * s["slots"] for s in map(found.settings, found.points))


def test_a_dial_that_nothing_can_meet_says_which_conditions():
    with pytest.raises(UsageError, match=r"dial\.slots > 99"):
        space(SLOTS, constraints=["dial.slots > 99"])


def test_an_empty_or_endless_range_is_refused():
    with pytest.raises(UsageError, match="is empty here"):
        space(Knob(name="a", flag="--a", low=4, high=1, step=1))
    with pytest.raises(UsageError, match="more than 64 values"):
        space(Knob(name="a", flag="--a", low=1, high=1000, step=1))


@pytest.mark.parametrize(
    "knob",
    [
        {"low": 1, "high": 2},
        {"low": 1, "high": 2, "step": 1, "factor": 2},
        {"low": 1, "high": 2, "step": 1, "choices": ["x"]},
        {"choices": ["x", "y"], "memory": "more"},
        {},
    ],
)
def test_a_knob_is_either_a_range_or_choices(knob):
    with pytest.raises(ValidationError):
        Knob.model_validate({"name": "a", "flag": "--a", **knob})


def test_a_baseline_between_two_values_stands_between_them():
    found = space(SLOTS, BATCH, baseline={"--parallel": 3, "--ubatch-size": 512})
    assert found.baseline == (1.5, 4.0)
    assert space(SLOTS, baseline={"--parallel": 64}).baseline == (4.0,)


def test_a_baseline_that_no_flag_and_no_default_tells_is_unknown():
    assert space(SLOTS).baseline is None
    assert space(SLOTS.model_copy(update={"baseline": 4})).baseline == (2.0,)


def test_a_baseline_is_at_a_point_only_where_every_value_of_it_may_be_tried():
    assert space(SLOTS, BATCH, baseline={"--parallel": 4, "--ubatch-size": 512}).baseline_point == (2, 4)
    assert space(SLOTS, BATCH, baseline={"--parallel": 3, "--ubatch-size": 512}).baseline_point is None
    assert space(SLOTS, baseline={"--parallel": 64}).baseline_point is None
    assert space(SLOTS, baseline={}).baseline_point is None
    out = space(SLOTS, BATCH, constraints=["dial.slots > 1"], baseline={"--parallel": 1, "--ubatch-size": 512})
    assert out.baseline_point is None


def test_an_arm_is_found_again_by_its_flags():
    found = space(SLOTS, BATCH)
    for point in found.points:
        flags = arm_flags(DIAL, found.settings(point), FACTS)
        assert found.find({**flags, "--other": 1}) == point
    assert found.find({"--parallel": 5, "--ubatch-size": 32}) is None


def history_of(*, ran: list[Levels], short: list[Levels]) -> History:
    trials = [Trial(run_id=f"r{n}", place=n, point=point, value=1.0, is_own=True) for n, point in enumerate(ran)]
    excluded = [Excluded(point=point, reason="oom", by_memory=True) for point in short]
    return History(trials=trials, excluded=excluded, num_launches=len(trials))


def test_running_out_of_memory_rules_out_what_takes_no_less_and_no_others():
    free = Knob(name="free", flag="--free", low=1, high=4, step=1)
    kind = Knob(name="kind", flag="--kind", choices=["a", "b"])
    less = Knob(name="less", flag="--less", low=1, high=3, step=1, memory="less")
    found = space(SLOTS, free, kind, less)
    chance = dict(zip(found.points, chances(found, history_of(ran=[], short=[(2, 3, 0, 1)])), strict=True))
    for point, one in chance.items():
        assert bool(one == 0) is (point[0] >= 2 and point[2] == 0 and point[3] <= 1)


def test_the_chance_to_run_falls_from_what_ran_to_what_did_not():
    found = space(SLOTS)
    assert list(chances(found, history_of(ran=[(1,)], short=[(4,)]))) == pytest.approx([1, 1, 2 / 3, 1 / 3, 0])
    untried = chances(found, history_of(ran=[], short=[]))
    assert list(untried) == sorted(untried, reverse=True)
    assert untried[-1] == pytest.approx(0.5)
    assert chances(found, history_of(ran=[(3,)], short=[]))[-1] > 0.5


def test_failures_that_one_knob_explains_leave_the_others_alone():
    """It ran out at every slot count with the largest batch and at none with the next smaller one."""
    found = space(SLOTS, BATCH)
    chance = dict(zip(found.points, chances(found, history_of(ran=[(2, 3)], short=[(2, 4), (1, 4)])), strict=True))
    once = dict(zip(found.points, chances(found, history_of(ran=[(2, 3)], short=[(2, 4)])), strict=True))
    assert chance[0, 4] < once[0, 4] - 0.1
    assert chance[3, 3] > once[3, 3] + 0.05
    assert chance[1, 4] == 0.0


def test_a_boundary_that_is_no_plane_leaves_chances_all_the_same():
    """Each knob alone may be large and half of both may not: no weighted sum says that."""
    found = space(SLOTS, BATCH)
    ran: list[Levels] = [(4, 0), (0, 4)]
    chance = dict(zip(found.points, chances(found, history_of(ran=ran, short=[(1, 1)])), strict=True))
    assert all(0.0 <= one <= 1.0 for one in chance.values())
    assert chance[4, 0] == chance[0, 4] == 1.0
    assert chance[1, 1] == chance[4, 4] == 0.0


def test_flags_that_follow_from_the_knobs_are_computed():
    dial = Dial(knobs=[SLOTS], flags={"--ctx-size": "= dial.slots * (workload.input_tokens_max + 100)"})
    assert arm_flags(dial, {"slots": 4}, FACTS) == {"--parallel": 4, "--ctx-size": 4 * 164}


def test_single_estimates_win_over_the_formula():
    dial = Dial(knobs=[SLOTS], estimate="dial.slots * 1.0", estimates=[DialEstimate(settings={"slots": 2}, value=1.0)])
    predicted = predictor(dial, FACTS)
    assert predicted({"slots": 2}) == 0.0
    assert predicted({"slots": 1}) == 0.0
    assert predicted({"slots": 4}) > 1.0


def test_a_space_too_large_to_list_is_thinned_evenly():
    wide = [Knob(name=f"k{i}", flag=f"--k{i}", low=1, high=10, step=1) for i in range(5)]
    found = space(*wide)
    assert MAX_LISTED / 2 < len(found.points) <= MAX_LISTED
    for knob in range(5):
        assert {point[knob] for point in found.points} == set(range(10))


def test_the_built_in_dials_fit_this_target():
    for path in (DATA / "dials").glob("*.toml"):
        dial = Dial.model_validate(tomllib.loads(path.read_text())["dial"])
        found = resolve(dial, FACTS, BASELINE)
        assert len(found.points) > 10
        assert found.baseline is not None
        predicted = predictor(dial, FACTS)
        assert all(predicted(found.settings(point)) is not None for point in found.points)
        for point in found.points:
            flags = arm_flags(dial, found.settings(point), FACTS)
            assert flags["--ctx-size"] >= flags["--parallel"] * (64 + 48)
