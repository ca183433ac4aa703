"""What is learned of the catalogue corrects what is printed and re-orders what is left, and decides nothing."""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.catalogue.documents import FolderDocuments
from assay.catalogue.loader import builtin_folder, load
from assay.plan.credibility import corrected_range, learn, outlooks, reorder, usable_chance
from assay.plan.credibility_outlook import Cost
from assay.plan.fold import fold
from assay.plan.scoring import USABLE, score, warned
from assay.records.event import EventKind
from assay.records.hypothesis import Hypothesis
from assay.records.run import RunStatus
from assay.records.scoring import MachineClass, PredictionScore
from assay.records.spec import Budget, CampaignSpec
from assay.records.state import CampaignState
from assay.records.verdict import Effect, Verdict, VerdictKind
from tests.unit.simulated_world import (
    BUILD,
    MACHINE,
    MODEL,
    Journal,
    World,
    drive,
    failure,
    hypothesis,
    small_spec,
    start,
    trouble_for,
)

PACKAGE = Path(__file__).parents[2] / "src" / "assay"
CLASS = MachineClass.of(MACHINE, BUILD, MODEL)


def entry(name: str, number: int, predicted: tuple[float, float], **changes: Any) -> Hypothesis:
    """A hypothesis as the catalogue has it: its own range, unless a person edited it."""
    prior = changes.pop("prior", predicted)
    made = hypothesis(name, number, predicted=predicted, **changes)
    return made.model_copy(update={"optimization": made.optimization.model_copy(update={"predicted": prior})})


def scored(name: str, predicted: tuple[float, float], effect: float | None, **changes: Any) -> PredictionScore:
    """One score, made as the record makes it."""
    journal = start([entry(name, 1, predicted, **changes)])
    return only(judged(journal.state, name, effect))


def judged(state: CampaignState, name: str, effect: float | None, sd: float = 0.02) -> CampaignState:
    """The state with a verdict more: an effect as a log ratio, or None for a change that could not be used."""
    if effect is None:
        verdict = Verdict(candidate=name, kind=VerdictKind.BLOCKED, cause="oom", reason="does not start")
    else:
        found = Effect(
            log_ratio=effect, low=effect - 2 * sd, high=effect + 2 * sd, num_brackets=3, standard_error=sd,
            degrees_of_freedom=12, confidence=0.9,
        )  # fmt: skip
        verdict = Verdict(candidate=name, kind=VerdictKind.UNDECIDED, reason="made", effect=found)
    return state.model_copy(update={"verdicts": {**state.verdicts, name: verdict}})


def only(state: CampaignState) -> PredictionScore:
    (one,) = score(state)
    return one


def test_a_whole_campaign_is_scored_from_its_record_alone() -> None:
    names = {"gains": 0.3, "idles": 0.0, "breaks": 0.0, "wrong": 0.0}
    journal = start(
        [entry(name, i, (0.1, 0.5), mechanism_id="batch") for i, name in enumerate(names, start=1)],
        small_spec(objective={"min_effect": 0.05}),
    )
    broken, wrong = trouble_for("breaks", failure("oom", "load")), trouble_for("wrong", RunStatus.WRONG_OUTPUT)
    drive(journal, World(effects=names, run_sd=0.01, trouble=lambda i, n: broken(i, n) or wrong(i, n)))

    by_id = {one.hypothesis: one for one in score(journal.state)}

    assert set(by_id) == set(names)
    gains, idles = by_id["gains"].effect, by_id["idles"].effect
    assert gains is not None
    assert idles is not None
    assert (gains.meets, gains.inside) == (True, True)
    assert (idles.meets, idles.inside) == (False, False)
    assert idles.signed_error == pytest.approx(-(math.log(1.1) + math.log(1.5)) / 2, abs=0.05)
    assert idles.interval_score > gains.interval_score
    usable = {name: one.applicability.usable for name, one in by_id.items() if one.applicability}
    assert usable == {"gains": True, "idles": True, "breaks": False, "wrong": False}
    assert score(fold(journal.events)) == score(journal.state)


def test_what_meets_is_what_the_verdict_says_of_its_prediction() -> None:
    journal = start([entry(f"e{i}", i, (0.02 * i, 0.1 * i)) for i in range(1, 6)])
    drive(journal, World(effects={f"e{i}": 0.05 * i for i in range(1, 6)}, run_sd=0.02))

    told = {name: verdict.prediction_held for name, verdict in journal.state.verdicts.items()}
    assert {one.hypothesis: one.effect.meets if one.effect else None for one in score(journal.state)} == told


@pytest.mark.parametrize(
    ("kind", "cause", "usable"),
    [
        (VerdictKind.BLOCKED, "oom", False),
        (VerdictKind.BLOCKED, "plan", None),
        (VerdictKind.UNSTABLE, "crashed", False),
        (VerdictKind.NOT_APPLIED, None, False),
        (VerdictKind.WRONG_OUTPUT, None, False),
        (VerdictKind.UNDECIDED, "budget", None),
        (VerdictKind.UNDECIDED, "excluded", None),
    ],
)
def test_a_verdict_without_an_effect_scores_whether_the_change_could_be_used(
    kind: VerdictKind, cause: str | None, usable: bool | None
) -> None:
    state = start([entry("a", 1, (0.0, 0.2))]).state
    verdict = Verdict(candidate="a", kind=kind, cause=cause, reason="because")
    one = only(state.model_copy(update={"verdicts": {"a": verdict}}))

    assert one.effect is None
    assert (one.applicability.usable if one.applicability else None) is usable
    assert (one.unscored is None) is (usable is not None)
    if one.applicability:
        assert one.applicability.brier == pytest.approx(USABLE["no"] ** 2)


def test_an_effect_seen_before_a_crash_does_not_score_the_range() -> None:
    state = judged(start([entry("a", 1, (0.0, 0.2))]).state, "a", 0.1)
    crashed = state.verdicts["a"].model_copy(update={"kind": VerdictKind.UNSTABLE, "cause": "crashed"})
    one = only(state.model_copy(update={"verdicts": {"a": crashed}}))

    assert one.effect is None
    assert one.applicability is not None
    assert not one.applicability.usable


@pytest.mark.parametrize(
    ("expectation", "sort"),
    [
        ("", "no"),
        ("control: should be worse", "no"),
        ("known to do nothing without a GPU", "idle"),
        ("known to fail: a quantized V cache needs flash attention", "fails"),
        ("known to be gone from newer builds", "fails"),
    ],
)
def test_an_entrys_own_warning_is_its_forecast(expectation: str, sort: str) -> None:
    assert warned(entry("a", 1, (0.0, 0.1), expectation=expectation)) == sort


def test_before_any_evidence_the_corrected_range_is_the_range() -> None:
    one = corrected_range(entry("a", 1, (0.1, 0.8)), learn([], CLASS))

    assert (one.low, one.high) == pytest.approx((0.1, 0.8))


def test_a_mechanism_that_disappoints_lowers_its_own_entries_most() -> None:
    scores = [scored(f"b{i}", (0.1, 0.4), 0.0, mechanism_id="batch") for i in range(4)]
    scores += [scored(f"k{i}", (0.1, 0.4), math.log(1.25), mechanism_id="kernel") for i in range(4)]
    credibility = learn(scores, CLASS)

    def of(mechanism: str | None) -> float:
        return corrected_range(entry("new", 9, (0.1, 0.4), mechanism_id=mechanism), credibility).middle

    assert of("batch") < 0.25 * of("kernel")
    assert of("batch") < of("host") < of("kernel")
    assert of("host") == of(None)


@pytest.mark.parametrize(
    "changes",
    [{"expectation": "control: should be worse"}, {"expectation": "known to do nothing"}, {"prior": (0.0, 0.1)}],
    ids=["a control", "one that warns", "a person's range"],
)
def test_what_does_not_speak_for_the_catalogue_neither_teaches_nor_is_corrected(changes: dict[str, Any]) -> None:
    others = [scored(f"e{i}", (0.1, 0.4), 0.0) for i in range(6)]
    strange = scored("strange", (0.2, 0.4), -0.5, **changes)

    assert strange.effect is not None
    assert learn([*others, strange], CLASS).overall == learn(others, CLASS).overall
    corrected = corrected_range(entry("strange", 9, (0.2, 0.4), **changes), learn(others, CLASS))
    assert (corrected.low, corrected.high) == pytest.approx((0.2, 0.4))


def test_another_machine_class_teaches_nothing() -> None:
    scores = [scored(f"e{i}", (0.1, 0.4), 0.0) for i in range(6)]
    other = CLASS.model_copy(update={"hardware": "NVIDIA H200"})

    assert learn(scores, other).overall.num_effects == 0
    assert learn(scores, CLASS).overall.factor < 0.5


def test_an_entry_scored_twice_counts_once_with_its_last_score() -> None:
    first, last = scored("a", (0.1, 0.4), 0.0), scored("a", (0.1, 0.4), 0.2)

    assert learn([first, last], CLASS) == learn([last], CLASS)


def test_chances_of_being_usable_move_with_the_mechanism_and_less_with_the_class() -> None:
    scores = [scored(f"e{i}", (0.0, 0.2), None, mechanism_id="overlap") for i in range(4)]
    credibility = learn(scores, CLASS)

    def chance(mechanism: str) -> float:
        return usable_chance(entry("new", 9, (0.0, 0.2), mechanism_id=mechanism), credibility)

    assert chance("overlap") == pytest.approx(0.8 * 5 / 9)
    assert chance("overlap") < chance("kernel") < USABLE["no"]


def test_what_is_left_is_ordered_by_gain_per_cost_and_as_planned_where_equal() -> None:
    state = start([entry("small", 1, (0.0, 0.1)), entry("large", 2, (0.2, 0.8)), entry("same", 3, (0.0, 0.1))]).state

    assert reorder(state) == ["large", "small", "same"]


def test_a_dear_trial_comes_after_a_cheap_one_of_the_same_promise() -> None:
    state = start([entry("dear", 1, (0.1, 0.4)), entry("cheap", 2, (0.1, 0.4))]).state

    def costs(one: Hypothesis) -> Cost | None:
        return Cost(10, 4200.0) if one.id == "dear" else None

    assert reorder(state) == ["dear", "cheap"]
    assert reorder(state, costs=costs) == ["cheap", "dear"]


def test_what_was_learned_re_orders_what_is_left() -> None:
    names = [("b0", "batch"), ("b1", "batch"), ("b2", "batch"), ("bold", "batch"), ("modest", "kernel")]
    ranges = {"bold": (0.15, 0.45), "modest": (0.1, 0.3)}
    state = start(
        [entry(n, i, ranges.get(n, (0.2, 0.5)), mechanism_id=m) for i, (n, m) in enumerate(names, start=1)]
    ).state
    before = reorder(state)
    for name in ("b0", "b1", "b2"):
        state = judged(state, name, 0.0)

    assert before.index("bold") < before.index("modest")
    assert reorder(state) == ["modest", "bold"]


def test_earlier_campaigns_set_the_first_order_and_ones_own_scores_are_not_counted_twice() -> None:
    earlier = [scored(f"b{i}", (0.2, 0.5), 0.0, mechanism_id="batch") for i in range(4)]
    state = start(
        [entry("bold", 1, (0.15, 0.45), mechanism_id="batch"), entry("modest", 2, (0.1, 0.3), mechanism_id="kernel")]
    ).state
    assert reorder(state) == ["bold", "modest"]
    assert reorder(state, [one.model_copy(update={"campaign": "earlier"}) for one in earlier]) == ["modest", "bold"]

    tried = judged(state, "bold", 0.0)
    assert outlooks(tried, score(tried)) == outlooks(tried)


def test_the_same_family_as_one_in_the_stack_promises_nothing() -> None:
    state = start([entry("in", 1, (0.1, 0.4), excludes=["rival"]), entry("rival", 2, (0.1, 0.4))]).state
    (outlook,) = outlooks(judged(state, "in", 0.3).model_copy(update={"stack": ["in"]}))

    assert (outlook.adoption, outlook.expected_gain) == (0, 0)


def test_the_chance_of_adoption_is_that_of_simulated_trials() -> None:
    """The outlook's closed form against draws of a truth and of its estimate; sd of the mean of 40,000 is 0.0025."""
    state = start([entry("a", 1, (0.0, 0.3))], small_spec(objective={"min_effect": 0.05})).state
    drive(journal := Journal(start([]).events), World(run_sd=0.05))
    state = state.model_copy(update={"calibration": journal.state.calibration})
    (found,) = outlooks(state)
    assert state.calibration is not None
    brackets = state.spec.budget.composition_brackets
    error = state.calibration.bracket_sd * math.sqrt((2 * brackets - 0.5) / (1.5 * brackets**2))
    rng = np.random.default_rng(5)
    truth = found.corrected.middle + found.corrected.sd * rng.standard_normal(40_000)
    passed = truth + error * rng.standard_normal(40_000) > max(math.log(1.05), 1.96 * error)

    assert found.adoption == pytest.approx(found.usable * np.mean(passed), abs=0.01)
    assert found.expected_gain == pytest.approx(found.usable * np.mean(truth * passed), abs=0.003)


def test_a_campaign_in_a_biased_world_finds_the_factor() -> None:
    """The real planner, 12 entries that promise 30% on average and hold half of it."""
    rng = np.random.default_rng(6)
    middles = rng.uniform(0.15, 0.4, 12)
    entries = [
        entry(f"e{i}", i + 1, (math.expm1(m - 0.08), math.expm1(m + 0.08)), mechanism_id="batch" if i % 2 else "kernel")
        for i, m in enumerate(middles)
    ]
    truths = {f"e{i}": float(0.5 * m + 0.06 * rng.standard_normal()) for i, m in enumerate(middles)}
    journal = start(entries, small_spec(objective={"min_effect": 0.02}))
    drive(journal, World(effects=truths, run_sd=0.01))

    found = learn(score(journal.state), CLASS)

    assert found.overall.factor == pytest.approx(0.5, abs=0.2)
    assert found.overall.is_clear


def states_while_it_runs(spec: CampaignSpec) -> list[CampaignState]:
    journal = start([entry(f"e{i}", i, (0.05 * i, 0.1 * i)) for i in range(1, 5)], spec)
    drive(journal, World(effects={f"e{i}": 0.04 * i for i in range(1, 5)}))
    return [fold(journal.events[:end]) for end in range(2, len(journal.events) + 1, 5)]


def test_an_order_is_a_permutation_of_what_is_open_and_the_state_is_left_alone() -> None:
    wild = [scored(f"e{i}", (0.5, 2.0), -3.0).model_copy(update={"campaign": "earlier"}) for i in range(1, 9)]
    for state in states_while_it_runs(small_spec(budget=Budget(total_s=1e6, max_brackets=3))):
        before = state.model_dump_json()
        open_ids = {h.id for h in state.hypotheses} - set(state.verdicts) - set(state.screened)
        for scores in ([], wild):
            found = reorder(state, scores)
            assert (len(found), set(found)) == (len(open_ids), open_ids)
        assert state.model_dump_json() == before


def imported_by(module: str, seen: set[str] | None = None) -> set[str]:
    """Every module of Assay's that a module imports, directly or through others."""
    seen = set() if seen is None else seen
    path = PACKAGE / Path(*module.split(".")[1:])
    file = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    if module in seen or not file.exists():
        return seen
    seen.add(module)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("assay"):
            imported_by(str(node.module), seen)
            for name in node.names:
                imported_by(f"{node.module}.{name.name}", seen)
    return seen


@pytest.mark.parametrize(
    "module",
    ["assay.plan.evidence", "assay.plan.verdicts", "assay.stats.sequential", "assay.stats.brackets",
     "assay.stats.spending", "assay.stats.agreement", "assay.campaign.gates"],
)  # fmt: skip
def test_nothing_that_a_verdict_rests_on_can_see_a_score(module: str) -> None:
    reached = imported_by(module)

    assert module in reached
    # The records hold scores as they hold everything; what makes or uses them is out of reach.
    used = reached - {"assay.records.scoring"}
    assert not {name for name in used if "credibility" in name or "scoring" in name or "shrinkage" in name}


def test_absurd_scores_of_earlier_campaigns_change_no_verdict() -> None:
    entries = [entry(f"e{i}", i, (0.0, 0.1)) for i in range(1, 5)]
    wild = [scored(f"e{i}", (0.5, 2.0), -3.0).model_copy(update={"campaign": "earlier"}) for i in range(1, 5)]
    found = []
    for scores in ([], wild):
        journal = start(entries, small_spec(budget=Budget(total_s=1e6, max_brackets=3)))
        journal.note(
            EventKind.PLAN_WRITTEN,
            {
                "hypotheses": [one.model_dump(mode="json") for one in entries],
                "passed_over": {},
                "earlier_scores": [one.model_dump(mode="json") for one in scores],
            },
        )
        drive(journal, World(effects={f"e{i}": 0.1 * i for i in range(1, 5)}, run_sd=0.001))
        assert len(journal.state.earlier_scores) == len(scores)
        found.append({name: verdict.kind for name, verdict in journal.state.verdicts.items()})
    assert found[0] == found[1]


def test_an_import_of_a_score_would_be_found() -> None:
    assert "assay.stats.shrinkage" in imported_by("assay.plan.credibility")


def test_every_entry_of_ours_names_its_mechanism() -> None:
    entries = [variant for variants in load([builtin_folder()], "llamacpp") for variant in variants]

    assert entries
    assert [one.id for one in entries if one.mechanism_id is None] == []


def test_an_improvement_document_keeps_the_mechanism(tmp_path: Path) -> None:
    (tmp_path / "improvements").mkdir()
    documents = FolderDocuments(tmp_path)
    one = entry("a", 1, (0.0, 0.2), mechanism_id="kv-bytes")
    documents.write([one.model_copy(update={"document": "improvements/01-a.md"})])

    (read,) = documents.read()

    assert read.optimization.mechanism_id == "kv-bytes"
