"""Campaigns on GPU time that comes in slices: how many runs a slice holds, and what each engine's campaign asks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.gpu import sglang_campaign, vllm_campaign
from benchmarks.gpu.campaign_slices import FIRST_RUN_S, MARGIN_S, Question, runs_of, runs_that_fit, soak_s, told
from benchmarks.gpu.moe_model import config

from assay.api.plan_facts import situation_of
from assay.api.plan_findings import findings
from assay.catalogue.loader import builtin_folder, load
from assay.engines import declared_flags
from assay.engines.folder_facts import read_facts
from assay.flags import history
from assay.plan.hypotheses import Plan
from assay.plan.hypotheses import build as planned
from assay.records.machine import EngineBuild
from assay.records.run import Arm, Purpose, RunIntent, RunOutcome, RunStatus
from assay.records.state import RunRecord
from assay.store.record import SqliteRecord
from tests.unit.machines import one_h200


def run(took_s: float) -> RunRecord:
    arm = Arm(label="mixed-chunk", flags={})
    intent = RunIntent(
        run_id="r0007", purpose=Purpose.SCREEN, series="main", candidate=None, arm=arm, seed=1, why="a test"
    )
    outcome = RunOutcome(
        run_id="r0007", status=RunStatus.NOT_APPLIED, reason="no code reads it", duration_s=took_s, start_s=41.2
    )
    return RunRecord(intent=intent, outcome=outcome, intended_at_ns=0)


def runs(*took_s: float) -> Sequence[RunRecord]:
    return [run(one) for one in took_s]


@pytest.mark.parametrize(
    ("took_s", "earlier", "left_s", "fit"),
    [
        ((), 0, FIRST_RUN_S + MARGIN_S, 1),
        ((), 0, FIRST_RUN_S, 0),
        ((), 0, 10 * FIRST_RUN_S, 1),
        ((200,), 0, 500, 1),
        ((200, 60, 70), 0, 300, 4),
        ((200, 60, 70), 0, 79, 0),
        ((200, 60), 2, 1000, 1),
        ((200, 60), 2, 205, 0),
        ((200, 60, 190, 50), 2, 165, 3),
    ],
)
def test_a_slice_holds_one_cold_run_and_then_as_many_as_the_longest_warm_one_allows(
    took_s: tuple[float, ...], earlier: int, left_s: float, fit: int
) -> None:
    assert runs_that_fit(runs(*took_s), earlier, left_s) == fit


def test_time_that_is_over_holds_nothing() -> None:
    assert runs_that_fit(runs(1, 1), 0, -5) == 0


def test_a_plan_that_failed_keeps_no_later_slice_from_beginning(tmp_path: Path) -> None:
    with SqliteRecord(tmp_path / "assay.db", create=True):
        pass  # what an `assay plan` that is killed at once leaves

    assert runs_of(tmp_path) == []
    assert soak_s(tmp_path) == 0.0


STOPS_SLOWLY = """
import signal, sys, threading
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print("runs", file=sys.stderr, flush=True)
signal.sigwait({signal.SIGINT})
threading.Event().wait(0.6)  # a server takes longer to stop than subprocess.run would wait
print("its server is stopped", file=sys.stderr, flush=True)
"""


def test_an_interrupted_slice_lets_its_command_stop_the_server_first() -> None:
    slice_ = "import sys; from benchmarks.gpu.campaign_slices import ended; ended([sys.executable, '-c', sys.argv[1]])"
    argv = [sys.executable, "-c", slice_, STOPS_SLOWLY]
    root = Path(__file__).parents[2]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=root) as started:
        assert started.stderr is not None
        assert started.stderr.readline() == "runs\n"
        os.killpg(started.pid, signal.SIGINT)
        said = started.stderr.read()

    assert "its server is stopped" in said
    assert "KeyboardInterrupt" in said


def test_a_run_is_told_in_a_line() -> None:
    assert told(run(52.9)) == ("r0007 mixed-chunk: not-applied, ready after 41 s, 53 s in all: no code reads it")


def plan_of(question: Question, version: str, folder: Path) -> tuple[Plan, str | None]:
    """The plan on one H200, by what is recorded of the engine's version; and what its parser says of the baseline."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config(question.layers, question.intermediate, 32768)))
    spec = question.spec(folder, "/opt/python")
    engine = spec.target.engine
    infos = [declared_flags.to_info(one) for one in history(engine).at(version)]
    build = EngineBuild(
        engine=engine, argv=["/opt/python"], version=f"{question.engine} {version}", source="", flags=infos
    )
    machine = one_h200().machine
    situation = situation_of(spec, machine, build, read_facts(folder))
    entries = load([builtin_folder(), *([question.catalogue] if question.catalogue else [])], engine)

    def objection(flags: declared_flags.Flags) -> str | None:
        return declared_flags.problem(build, flags)

    plan = planned(
        entries, spec, machine, build, situation.model, objection, situation=situation, findings=findings(situation)
    )
    assert declared_flags.canonical(build, spec.target.flags) == spec.target.flags
    return plan, objection(spec.target.flags)


def test_the_campaign_of_sglang_tries_all_it_names_and_knows_the_inert_flag(tmp_path: Path) -> None:
    plan, objection = plan_of(sglang_campaign.QUESTION, "0.5.17", tmp_path / "model")

    assert objection is None
    assert {one.id: one.status for one in plan.hypotheses} == dict.fromkeys(sglang_campaign.TRIED, "planned")
    (inert,) = [one.optimization for one in plan.hypotheses if one.id == "continuous-decode-steps"]
    assert inert.expectation.startswith("known to do nothing here: --num-continuous-decode-steps")
    assert not any(
        "known to do nothing" in one.optimization.expectation for one in plan.hypotheses if one.id != inert.id
    )


def test_both_engines_are_asked_the_same_load() -> None:
    asked = [one.QUESTION.spec(Path("/m"), "python") for one in (vllm_campaign, sglang_campaign)]

    assert asked[0].workload == asked[1].workload
    assert asked[0].objective == asked[1].objective
