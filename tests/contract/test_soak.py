"""A soak of real server processes: a slow leak and a late crash that no measured window reaches are caught by it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay import api, wiring
from assay.campaign.bench import RUN_TOKEN, Bench
from assay.campaign.loop import recover, run_campaign
from assay.campaign.run_protocol import make_run
from assay.campaign.soak import LOOKS_FILE
from assay.plan.arms import arm_with, baseline_arm
from assay.plan.fold import fold
from assay.plan.soak_words import told
from assay.records.run import Purpose, RunIntent, RunOutcome, RunStatus
from assay.records.spec import Budget, CampaignSpec, Gates, Policy, Quality, Target, Workload
from assay.render.progress import QuietProgress, for_stream
from assay.store.record import SqliteRecord
from assay.store.spec_file import read_spec
from assay.store.verify import verify
from tests.contract.test_rehearsal_faults import ENTRY

pytestmark = pytest.mark.slow
SOAK_S = 3.0
FAULTS = {
    "leak": 'kind = "leak", leak_bytes = 262144, leak_limit_bytes = 536870912',
    "crash": 'kind = "crash", after_requests = 150',
}
WORLD = "[launch]\nweights_s = 1\nmemory_s = 1\ncapture_s = 1\n"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("soak")
    world = WORLD
    (folder / "catalogue").mkdir()
    for name, fault in FAULTS.items():
        world += f'[[flags]]\nname = "--{name}"\n[[flags.truth]]\nfault = {{ {fault} }}\n'
        (folder / "catalogue" / f"{name}.toml").write_text(ENTRY.format(kind=name), encoding="utf-8")
    (folder / "world.toml").write_text(world, encoding="utf-8")
    api.init(folder, spec(folder))
    api.plan(folder)
    with SqliteRecord(folder / "assay.db") as record, record.lock(), for_stream(plain=True) as progress:
        state = fold(record.events())
        target = read_spec(folder / "assay.toml", declared=state.spec).target
        with wiring.bench(folder, record, state, target, progress, "here") as found:
            yield found


def spec(folder: Path) -> CampaignSpec:
    flags = {"--world": str(folder / "world.toml"), "--time-scale": 20, "--box": "1xH100-SXM"}
    return CampaignSpec(
        name="soak",
        target=Target(engine="rehearsal", model="qwen2.5-7b", flags=flags, start_timeout_s=20),
        workload=Workload(concurrency=4, input_tokens=(60, 70), output_tokens=(200, 260), window_s=0.3, windows=2,
                          warmup_min_s=0.1, warmup_max_s=6.0),
        budget=Budget(total_s=600, soak_s=SOAK_S),
        quality=Quality(probes=8),
        gates=Gates(max_foreign_cores=64, max_steal_share=1),
        policy=Policy(builtin_catalogue=False, catalogue=["catalogue"]),
    )  # fmt: skip


def soaked(bench: Bench, name: str | None, run_id: str = "") -> RunOutcome:
    target = bench.state.spec.target
    deltas = [one for one in bench.state.hypotheses if one.id == name]
    return make_run(
        bench,
        RunIntent(
            run_id=run_id or f"r-{name}", purpose=Purpose.COMPOSITION, series="composition:test",
            candidate=name,
            arm=arm_with(target, deltas) if deltas else baseline_arm(target), seed=1, why="test", soak_s=SOAK_S,
        ),
    )  # fmt: skip


def test_a_server_that_is_well_stands_it(bench: Bench) -> None:
    outcome = soaked(bench, None)

    assert outcome.status is RunStatus.OK
    assert outcome.soak is not None
    assert outcome.soak.passed, told(outcome.soak)
    assert outcome.soak.soaked_s >= 0.9 * SOAK_S  # to the last look
    assert outcome.soak.requests > 30


def test_a_slow_leak_is_seen_as_growing_memory_and_what_was_measured_counts(bench: Bench) -> None:
    outcome = soaked(bench, "leak")

    assert outcome.status is RunStatus.OK
    assert outcome.measures is not None
    assert outcome.soak is not None
    assert outcome.soak.grows, told(outcome.soak)
    [trend] = outcome.soak.memory
    requests_per_s = outcome.soak.requests / outcome.soak.soaked_s
    assert 0.5 * 262144 * requests_per_s < trend.bytes_per_s < 2 * 262144 * requests_per_s
    looks = json.loads((bench.folder / "runs" / "r-leak" / LOOKS_FILE).read_text(encoding="utf-8"))
    assert len(looks["at_ns"]) == len(looks["bytes"]["server"]) >= trend.num_samples
    assert {trend.begin_bytes, trend.end_bytes} <= set(looks["bytes"]["server"])


def test_what_crashes_in_its_soak_keeps_what_was_measured_and_says_what_it_died_of_and_when(bench: Bench) -> None:
    outcome = soaked(bench, "crash")

    assert outcome.status is RunStatus.OK
    assert outcome.measures is not None
    assert outcome.failure is not None
    assert str(outcome.failure.cause) == "illegal-memory-access"
    assert "into a soak at peak load" in outcome.reason
    assert outcome.soak is not None
    assert not outcome.soak.passed
    assert outcome.soak.died.startswith("illegal-memory-access at stage under-load: ")
    assert "and then the server died: illegal-memory-access" in told(outcome.soak)


class Interrupting(QuietProgress):
    """Presses Ctrl-C a moment after a soak has begun."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self._later: list[threading.Timer] = []

    def phase(self, text: str) -> None:
        if text.startswith("soaking"):
            self._later.append(threading.Timer(0.3 * SOAK_S, signal.raise_signal, [signal.SIGINT]))
            self._later[-1].start()

    def result(self, text: str, *, good: bool | None = None) -> None:
        self.said.append(text)


def test_ctrl_c_in_a_soak_keeps_what_was_measured_and_the_next_session_says_so(bench: Bench) -> None:
    quiet, bench.progress = bench.progress, Interrupting()
    try:
        with pytest.raises(KeyboardInterrupt):
            soaked(bench, None, "r-interrupted")
        run = bench.state.runs[-1]
        run_campaign(bench, max_runs=0)
        [said, *_] = bench.progress.said
    finally:
        bench.progress = quiet

    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.soak) == (RunStatus.OK, None)
    assert run.outcome.measures is not None
    assert "interrupted by Ctrl-C" in run.outcome.reason
    assert bench.find_alive(run.server, RUN_TOKEN, bench.token("r-interrupted", bench.place)) == []
    assert said.startswith("r-interrupted baseline: its measurement was complete and counts; the soak alone")


def test_a_server_that_fell_in_a_soak_is_not_saved_by_ctrl_c(bench: Bench) -> None:
    class Falling(QuietProgress):
        def phase(self, text: str) -> None:
            if text.startswith("soaking"):
                server = bench.state.runs[-1].server
                assert server is not None
                os.kill(server.pid, signal.SIGKILL)
                os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
                signal.raise_signal(signal.SIGINT)

    quiet, bench.progress = bench.progress, Falling()
    try:
        with pytest.raises(KeyboardInterrupt):
            soaked(bench, "leak", "r-fell")
    finally:
        bench.progress = quiet

    [run] = [one for one in bench.state.runs if one.intent.run_id == "r-fell"]
    assert run.outcome is not None
    assert run.outcome.failure is not None
    assert run.outcome.soak is not None
    assert run.outcome.soak.died
    assert run.outcome.soak.passed is False


class Copying(QuietProgress):
    """Takes the campaign's folder aside as a kill -9 within the soak would leave it."""

    def __init__(self, folder: Path, to: Path) -> None:
        self._folder, self._to = folder, to

    def phase(self, text: str) -> None:
        if text.startswith("soaking") and not self._to.exists():
            shutil.copytree(self._folder, self._to)


def test_what_was_measured_is_on_disk_before_its_soak_and_counts_when_assay_is_killed_there(
    bench: Bench, tmp_path: Path
) -> None:
    quiet, bench.progress = bench.progress, Copying(bench.folder, tmp_path / "killed")
    try:
        whole = soaked(bench, None, "r-killed")
    finally:
        bench.progress = quiet
    with SqliteRecord(tmp_path / "killed" / "assay.db") as record, record.lock():
        state = fold(record.events())
        assert state.runs[-1].outcome is None
        with wiring.bench(tmp_path / "killed", record, state, bench.target, QuietProgress(), "here") as left:
            closed = recover(left)
            found = left.state.runs[-1].outcome

    assert closed == ["r-killed"]
    assert found is not None
    assert (found.status, found.soak, found.measures) == (RunStatus.OK, None, whole.measures)
    assert "Assay ended during its soak" in found.reason
    assert verify(tmp_path / "killed").problems == []
    assert found.answer_tokens == whole.answer_tokens
    assert found.start_s == whole.start_s
