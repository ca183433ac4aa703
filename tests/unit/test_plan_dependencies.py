"""Hypotheses that wait for others: screened after these are adopted, on top of them, and blocked when they are not."""

from __future__ import annotations

from assay.plan.arms import arm_with, baseline_arm, build_for
from assay.plan.scoring import score
from assay.plan.steps import Done
from assay.plan.todo import todo
from assay.records.launch import LaunchPrefix
from assay.records.spec import Target
from tests.unit.simulated_world import BUILD, World, drive, hypothesis, kinds, start


def test_a_hypothesis_is_screened_with_what_it_waits_for_once_that_is_adopted() -> None:
    journal = start([hypothesis("needed", 1), hypothesis("waiting", 2, waits_for=["needed"])])
    world = World(effects={"needed": 0.3, "waiting": 0.2}, run_sd=0.01, seed=1)

    assert isinstance(drive(journal, world), Done)

    assert kinds(journal.state) == {"needed": "adopted", "waiting": "adopted"}
    runs = [run.intent for run in journal.state.runs if run.intent.candidate == "waiting"]
    assert {one.arm.label for one in runs} == {"needed + waiting"}
    adopted = next(at for at, run in enumerate(journal.state.runs) if run.intent.series == "composition:needed")
    first = next(at for at, run in enumerate(journal.state.runs) if run.intent.candidate == "waiting")
    assert first > adopted


def test_it_is_credited_with_its_own_part_alone() -> None:
    """Together with what it needs it looks like a gain of 35%; on top of that it is none."""
    journal = start([hypothesis("needed", 1), hypothesis("useless", 2, waits_for=["needed"])])

    drive(journal, World(effects={"needed": 0.3}, run_sd=0.01, seed=2))

    assert kinds(journal.state)["useless"] != "adopted"
    assert journal.state.stack == ["needed"]


def test_it_is_blocked_without_a_run_when_what_it_needs_is_not_adopted() -> None:
    journal = start([hypothesis("needed", 1), hypothesis("waiting", 2, waits_for=["needed"])])

    drive(journal, World(effects={"needed": -0.3, "waiting": 0.2}, run_sd=0.01, seed=3))

    assert kinds(journal.state) == {"needed": "worse", "waiting": "blocked"}
    assert journal.state.verdicts["waiting"].reason == "needs needed, whose verdict is worse"
    assert all(run.intent.candidate != "waiting" for run in journal.state.runs)
    assert {one.id: one.status for one in todo(journal.state)} == {"needed": "completed", "waiting": "cancelled"}
    assert {one.hypothesis: one.applicability is None for one in score(journal.state)}["waiting"]


def test_it_is_blocked_when_what_it_needs_is_cancelled_or_gone() -> None:
    cancelled = hypothesis("needed", 1, status="cancelled")
    journal = start([cancelled, hypothesis("a", 2, waits_for=["needed"]), hypothesis("b", 3, waits_for=["nobody"])])

    drive(journal, World(run_sd=0.01))

    assert journal.state.verdicts["a"].reason == "needs needed, which is not tried"
    assert journal.state.verdicts["b"].reason == "needs nobody, which is not tried"


def test_the_todo_says_what_depends_on_what() -> None:
    journal = start([hypothesis("needed", 1), hypothesis("waiting", 2, waits_for=["needed"])])

    assert [one.depends_on for one in todo(journal.state)] == [[], ["needed"]]


def test_an_arm_carries_the_variables_of_its_deltas_and_leaves_the_targets_own_to_the_target() -> None:
    target = Target(env={"HF_TOKEN": "[redacted]", "NCCL_PROTO": "Simple"})
    deltas = [hypothesis("a", env={"NCCL_PROTO": "LL"}), hypothesis("b", env={"VLLM_PLUGINS": "assay_moe"})]

    assert baseline_arm(target).env == {}
    assert arm_with(target, deltas).env == {"NCCL_PROTO": "LL", "VLLM_PLUGINS": "assay_moe"}


def test_what_wraps_the_command_hands_the_arms_variables_through() -> None:
    arm = arm_with(Target(), [hypothesis("a", env={"NCCL_PROTO": "LL"})])
    wrapped = BUILD.model_copy(update={"launch": LaunchPrefix(kind="docker", image="i"), "variables": ["HF_TOKEN"]})

    assert build_for(wrapped, arm).variables == ["HF_TOKEN", "NCCL_PROTO"]
    assert build_for(BUILD, arm) is BUILD
