"""What a campaign leaves to be tried: trials that would decide, remedies, prices, and the bottleneck that is left."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pytest

from assay.api.bottleneck import bottlenecks
from assay.models import load
from assay.plan.bottleneck import Adopted, parts
from assay.plan.target_step import Served, TargetStep, target_step
from assay.plan.what_next import Question, asked_alone, ideas, obstacles, questions
from assay.probes.devices import box
from assay.records.estimate import Layout
from assay.records.spec import CampaignSpec, Workload
from assay.records.state import CampaignState
from assay.records.verdict import Effect, Verdict, VerdictKind
from assay.render.next_facts import counted, next_up
from assay.stats.replanning import MOST, deciding_trial
from assay.stats.sequential import decide, student_quantile
from assay.stats.spending import information
from assay.testing.sample_state import sample_state
from tests.unit.simulated_world import World, drive, failure, hypothesis, small_spec, start, trouble_for


def effect(percent: float, se: float, brackets: int = 2) -> Effect:
    log = math.log1p(percent / 100)
    return Effect(
        log_ratio=log, low=log - 3 * se, high=log + 3 * se, num_brackets=brackets, standard_error=se,
        degrees_of_freedom=10.0, confidence=0.9,
    )  # fmt: skip


def test_a_trial_that_would_decide_is_larger_where_the_effect_is_closer_to_what_is_worth_having() -> None:
    clear, close = deciding_trial(effect(8.0, 0.02), 0.02), deciding_trial(effect(4.0, 0.02), 0.02)

    assert clear is not None
    assert close is not None
    assert (clear.decision, close.decision) == ("better", "better")
    assert clear.brackets < close.brackets


def test_half_the_noise_takes_about_a_quarter_of_the_brackets() -> None:
    noisy, quiet = (deciding_trial(effect(6.0, se, brackets=4), 0.02) for se in (0.06, 0.03))

    assert noisy is not None
    assert quiet is not None
    assert noisy.brackets / quiet.brackets == pytest.approx(4.0, rel=0.2)


@pytest.mark.parametrize(
    ("percent", "decision"), [(10.0, "better"), (-10.0, "worse"), (1.0, "no-effect"), (0.0, "futile"), (-2.0, "futile")]
)
def test_it_says_what_would_be_found(percent: float, decision: str) -> None:
    found = deciding_trial(effect(percent, 0.01), 0.03)

    assert found is not None
    assert found.decision == decision


def test_what_lies_on_the_threshold_is_decided_by_no_number_of_brackets() -> None:
    assert deciding_trial(effect(3.0, 0.02), 0.03) is None


def test_the_trial_that_is_named_really_decides_in_most_simulated_campaigns() -> None:
    """20 worlds with the effect that was seen: 80% are promised, at least 12 are asked (below that p < 0.01)."""
    found = deciding_trial(effect(6.0, 0.02 * math.sqrt(1.5), brackets=1), 0.03)
    assert found is not None
    spec = small_spec(objective={"min_effect": 0.03}, statistics={"give_up_below": 0.0})
    alone = {"min_brackets": found.brackets, "max_brackets": found.brackets}
    spec = spec.model_copy(update={"budget": spec.budget.model_copy(update=alone)})
    decided = 0
    for seed in range(20):
        journal = start([hypothesis("seen")], spec)
        drive(journal, World(effects={"seen": math.log1p(0.06)}, run_sd=0.02, seed=seed))
        decided += "seen" in journal.state.screened
    assert decided >= 12


def finished(**effects: float) -> CampaignState:
    names = [*effects, "broken", "kernel"]
    kinds = {"kernel": {"tier": 3, "status": "blocked", "blocked_reason": "a kernel to write", "predicted": (0.0, 0.3)}}
    plan = [hypothesis(name, number, **kinds.get(name, {})) for number, name in enumerate(names, start=1)]
    journal = start(plan, small_spec(objective={"min_effect": 0.05}))
    trouble = trouble_for(
        "broken", failure("bad-value", "arguments").model_copy(update={"remedy": "Take another value."})
    )
    drive(journal, World(effects=effects, run_sd=0.03, seed=3, trouble=trouble))
    return journal.state


def test_open_questions_remedies_and_prices_are_told() -> None:
    state = finished(maybe=0.05)
    [asked] = questions(state)

    assert asked.candidate == "maybe"
    assert [(one.verdict.candidate, one.remedy) for one in obstacles(state)] == [("broken", "Take another value.")]
    assert [(one.id, one.predicted, one.reason) for one in ideas(state)] == [
        ("kernel", (0.0, 0.3), "a kernel to write")
    ]


def test_time_is_that_of_the_brackets_and_of_the_run_that_closes_them() -> None:
    asked = next(one for one in questions(finished(small=-0.01)) if one.brackets is not None)

    assert asked.brackets is not None
    assert asked.runs == 2 * asked.brackets + 1
    assert asked.time_s == asked.runs * 10.0


def test_the_rows_say_what_to_do_in_the_keys_of_the_spec() -> None:
    state = finished(small=-0.01)
    shown = next_up(state, None)
    [asked] = questions(state)

    assert shown
    assert not asked.excluded
    assert f'`policy.only = ["small"]`, `budget.min_brackets = {asked.brackets}`, `budget.max_brackets' in shown.how
    assert "with a chance of about 80%" in shown.chance
    assert [row.takes for row in shown.questions] == [
        f"{asked.brackets} brackets, looked at once: they would show no gain of 5%"
    ]
    assert [row.remedy for row in shown.obstacles] == ["take another value"]
    assert [(row.name, row.price) for row in shown.ideas] == [("kernel", "+0% to +30%, predicted")]


def test_more_than_can_be_asked_is_said_and_no_number_of_runs_is_given() -> None:
    state = finished(maybe=0.05)
    [asked], [row] = questions(state), next_up(state, None).questions

    assert (asked.brackets, asked.runs, asked.time_s) == (None, None, None)
    assert row.takes == f"more than {MOST} brackets: it lies too close to 5% to be told apart at this noise"
    assert (row.runs, row.time) == ("\N{EM DASH}", "\N{EM DASH}")
    assert (next_up(state, None).how, next_up(state, None).chance) == ("", "")


def test_a_trial_has_the_chance_that_is_named_where_it_finds_that_an_effect_is_none() -> None:
    found = effect(0.0, 0.02)
    trial = deciding_trial(found, 0.03)
    assert trial is not None
    error = found.standard_error * math.sqrt(information(found.num_brackets) / information(trial.brackets))
    degrees = found.degrees_of_freedom - found.num_brackets + trial.brackets
    half = student_quantile(0.95, degrees) * error
    rng = np.random.default_rng(7)
    estimates = error * rng.standard_t(degrees, 4000)
    told = Counter(
        decide(found.model_copy(update={"log_ratio": x, "low": x - half, "high": x + half}), 0.03) for x in estimates
    )

    assert (told["no-effect"] + told["futile"] + told["worse"]) / 4000 == pytest.approx(0.82, abs=0.03)
    assert told["no-effect"] < 0.8 * 4000
    assert trial.decision == "futile"


def asked_again(state: CampaignState, question: Question) -> CampaignSpec:
    tables = state.spec.model_dump()
    for key, value in asked_alone(state, question).items():
        table, name = key.split(".")
        tables[table][name] = value
    return CampaignSpec.model_validate(tables)


def test_the_keys_that_ask_again_make_a_campaign_that_is_accepted_and_has_the_time_to_decide() -> None:
    state = finished(small=-0.01)
    [asked] = questions(state)
    spec = asked_again(state, asked)
    journal = start([hypothesis("small")], spec)
    drive(journal, World(effects={"small": math.log1p(0.3)}, run_sd=0.03, seed=1))

    assert not spec.contradictions()
    assert journal.state.headline is not None
    assert journal.state.headline.confirmed
    assert state.spec.contradictions() == {}
    assert spec.budget.total_s < state.spec.budget.total_s


def test_what_the_budget_left_unmeasured_is_told_with_what_would_measure_it() -> None:
    spec = small_spec(objective={"min_effect": 0.05})
    short = spec.model_copy(update={"budget": spec.budget.model_copy(update={"total_s": 150.0})})
    journal = start([hypothesis(name, number) for number, name in enumerate("abcdef", start=1)], short)
    drive(journal, World(effects={}, run_sd=0.03, seed=3))
    late = [one for one in obstacles(journal.state) if one.verdict.cause == "budget"]

    assert late
    assert {one.verdict.effect for one in late} == {None}
    assert all("budget.total_s" in one.remedy for one in late)
    assert f"{len(late)} were not measured" in counted(journal.state)


def test_a_gain_that_may_cost_too_much_is_not_to_be_measured_for_its_size_again() -> None:
    state = finished(small=-0.01)
    verdict = state.verdicts["small"].model_copy(update={"effect": effect(20.0, 0.02)})
    state = state.model_copy(update={"verdicts": {**state.verdicts, "small": verdict}})
    [asked], [row] = questions(state), next_up(state, None).questions

    assert (asked.shown, asked.worth_asking) == (True, False)
    assert row.takes.startswith("no more brackets of this kind")


def test_an_effect_beside_adopted_changes_says_so_and_is_not_to_be_asked_against_the_baseline() -> None:
    state = finished(small=-0.01)
    ours = set(state.verdicts["small"].runs)
    runs = [
        run.model_copy(
            update={"intent": run.intent.model_copy(
                update={"arm": run.intent.arm.model_copy(update={"deltas": ["good", "small"]})}
            )}
        )
        if run.intent.run_id in ours and run.intent.candidate
        else run
        for run in state.runs
    ]  # fmt: skip
    state = state.model_copy(update={"runs": runs})
    shown = next_up(state, None)

    assert shown.questions[0].measured.endswith("on top of good")
    assert shown.how == ""


def test_a_remedy_names_an_engines_line_only_where_there_is_one() -> None:
    state = finished(small=-0.01)
    told = {}
    for line in (None, "warning: option ignored"):
        verdict = Verdict(candidate="broken", kind=VerdictKind.NOT_APPLIED, reason="not in force", line=line)
        [found] = obstacles(state.model_copy(update={"verdicts": {"broken": verdict}}))
        told[line] = found.remedy

    assert "line" not in told[None]
    assert "line" in told["warning: option ignored"]


def test_random_weights_are_not_to_be_judged_by_a_test_of_a_task() -> None:
    state = finished(small=-0.01)
    wrong = Verdict(candidate="broken", kind=VerdictKind.WRONG_OUTPUT, reason="only 36 of 48 next tokens stay")
    state = state.model_copy(update={"verdicts": {"broken": wrong}})
    target = state.spec.target.model_copy(update={"random_weights": True})
    made_up = state.model_copy(update={"spec": state.spec.model_copy(update={"target": target})})

    assert "test of your own task" in obstacles(state)[0].remedy
    assert "the real checkpoint" in obstacles(made_up)[0].remedy


def glm() -> TargetStep:
    found = target_step(
        load("glm-5-nvfp4"), box("8xRTX-PRO-6000"), Served(layout=Layout(tp=8)), Workload(concurrency=64)
    )
    assert not isinstance(found, str)
    return found


def test_the_shares_of_a_step_are_ordered_and_whole() -> None:
    found = parts(glm())

    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert list(found.shares.values()) == sorted(found.shares.values(), reverse=True)
    assert found.largest == "experts"
    assert found.ceiling == pytest.approx(1 / (1 - found.shares["experts"]) - 1)


def test_what_an_adopted_change_saves_is_taken_off_what_its_mechanism_touches() -> None:
    before = parts(glm())
    after = parts(glm(), [Adopted(name="fewer-bytes", log_ratio=math.log(1.05), touched=("communication",))])

    assert after.time_s.mid == pytest.approx(before.time_s.mid / 1.05)
    assert after.time_s.high / after.time_s.mid == pytest.approx(before.time_s.high / before.time_s.mid)
    assert after.shares["experts"] * after.time_s.mid == pytest.approx(before.shares["experts"] * before.time_s.mid)
    saved = before.shares["communication"] * before.time_s.mid - after.shares["communication"] * after.time_s.mid
    assert saved == pytest.approx(before.time_s.mid - after.time_s.mid)


def test_more_than_a_mechanism_can_save_is_taken_off_everything() -> None:
    before = parts(glm())
    after = parts(glm(), [Adopted(name="wonder", log_ratio=math.log(3.0), touched=("communication",))])

    assert after.time_s.mid == pytest.approx(before.time_s.mid / 3.0)
    assert after.shares == pytest.approx(before.shares)


def test_a_target_whose_step_is_not_calculated_has_no_bottleneck_and_the_report_none() -> None:
    state = sample_state()

    assert bottlenecks(state) is None
    assert next_up(state, None).bottleneck == ""


def test_a_calculated_bottleneck_is_told_before_and_after_what_was_adopted() -> None:
    changed = parts(glm(), [Adopted(name="good", log_ratio=math.log(1.05), touched=("communication",))])
    state = sample_state().model_copy(update={"stack": ["good"]})
    told = next_up(state, (parts(glm()), changed)).bottleneck

    assert told.startswith("By calculation, a decode step of the baseline (64 sequences of")
    assert "With good in force, as it was measured: experts" in told
    assert re.search(r"The largest part \(experts, \d\d%\) is what the next change has to move\. If all the rest", told)
