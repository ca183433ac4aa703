"""Record how the embedded llama.cpp really behaves over a grid of its dials, on this CPU.

    python benchmarks/search/record_llamacpp.py CAMPAIGN-FOLDER examples/landscapes/llamacpp-cpu.json

Every point of threads x ubatch-size x parallel is measured `--repeats` times by the run protocol of a campaign: a fresh
server, warm-up until steady, windows, gates. Each pass goes over the whole grid in an order of its own, with the
baseline between every eight points, so that drift can be seen. A run that a gate refused is made again later, and
counted. The folder is an ordinary campaign record: the same command goes on where it was stopped, `assay verify`
proves it. `benchmarks/search` replays the result.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

from assay import wiring
from assay.api.environment import host
from assay.api.init import SPEC, init
from assay.api.plan import plan
from assay.campaign.bench import Bench
from assay.campaign.gates import wait_for_quiet
from assay.campaign.loop import recover
from assay.campaign.run_protocol import make_run
from assay.plan.fold import fold
from assay.plan.runs import derived_seed
from assay.records.run import Arm, Purpose, RunIntent, RunStatus
from assay.records.spec import EMBEDDED, CampaignSpec, Policy, Target, Workload
from assay.records.state import CampaignState, RunRecord
from assay.store.record import SqliteRecord
from assay.store.spec_file import read_spec

GRID: dict[str, list[int]] = {"--threads": [1, 2], "--ubatch-size": [8, 32, 128, 512], "--parallel": [1, 2, 4, 8]}
BASELINE = {"--threads": 2, "--ubatch-size": 512, "--parallel": 1, "--ctx-size": 4096}
"""As guides print it: one slot."""
WORKLOAD = Workload(
    concurrency=8, input_tokens=(24, 64), output_tokens=(16, 32), window_s=2.0, windows=3, warmup_max_s=12.0
)
POINTS_PER_REFERENCE = 8
MAX_TRIES = 4
"""Of one repeat of a point."""


class Talk:
    """Progress on stderr."""

    def step(self, why: str, *, done_s: float, total_s: float) -> None:
        print(f"[{done_s:.0f} of {total_s:.0f} s measured] {why}", file=sys.stderr)

    def phase(self, what: str) -> None:
        print(f"  {what}", file=sys.stderr)

    def result(self, words: str, *, good: bool | None = None) -> None:
        print(f"  {'not counted: ' if good is False else ''}{words}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget-s", type=float, default=3600.0, help="stop after so long; what was measured is kept")
    given = parser.parse_args()
    if not (given.folder / SPEC).exists():
        target = Target(model=EMBEDDED, executable=EMBEDDED, flags=dict(BASELINE))
        policy = Policy(builtin_catalogue=False)
        init(given.folder, CampaignSpec(name="landscape", target=target, workload=WORKLOAD, policy=policy))
    plan(given.folder)
    deadline_s = time.monotonic() + given.budget_s
    with SqliteRecord(given.folder / "assay.db") as record, record.lock():
        target = read_spec(given.folder / SPEC).target
        with wiring.bench(given.folder, record, fold(record.events()), target, Talk(), host()) as bench:
            recover(bench)
            while time.monotonic() < deadline_s and (wanted := next_run(bench.state, given.repeats)) is not None:
                if disturbed(bench.state):
                    wait_for_quiet(bench.probe, bench.state.spec.gates, lambda _: None)
                measure(bench, *wanted)
                given.output.write_text(json.dumps(result(bench.state, given.repeats), indent=1) + "\n")


def points() -> list[dict[str, int]]:
    return [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]


def label(point: dict[str, int]) -> str:
    return " ".join(f"{flag}={value}" for flag, value in point.items())


def next_run(state: CampaignState, repeats: int) -> tuple[str | None, dict[str, Any]] | None:
    """The name (None: the baseline) and the flags of the next run; None when all is measured or given up."""
    good = Counter(run.intent.candidate for run in state.runs if counts(run))
    tried = Counter(run.intent.candidate for run in state.runs if run.outcome is not None)
    since_reference = 0
    for run in state.runs:
        since_reference = 0 if counts(run) and run.intent.candidate is None else since_reference + counts(run)
    if not good[None] or since_reference >= POINTS_PER_REFERENCE:
        return None, dict(BASELINE)
    for number in range(repeats):
        order = points()
        random.Random(f"pass {number}").shuffle(order)
        for point in order:
            name = label(point)
            if good[name] <= number and tried[name] < MAX_TRIES * (number + 1):
                return name, {**BASELINE, **point}
    last = next((run.intent.candidate for run in reversed(state.runs) if counts(run)), None)
    return (None, dict(BASELINE)) if last is not None else None


def counts(run: RunRecord) -> bool:
    return run.outcome is not None and run.outcome.status is RunStatus.OK


def disturbed(state: CampaignState) -> bool:
    return bool(state.runs) and not counts(state.runs[-1])


def measure(bench: Bench, name: str | None, flags: dict[str, Any]) -> None:
    earlier = sum(run.intent.candidate == name for run in bench.state.runs)
    arm = Arm(label=name or "baseline", flags=flags)
    intent = RunIntent(
        run_id=f"r{len(bench.state.runs) + 1:04d}",
        purpose=Purpose.CALIBRATION if name is None else Purpose.SCREEN,
        series="landscape",
        candidate=name,
        arm=arm,
        seed=derived_seed(bench.state.spec.workload.seed, "landscape", len(bench.state.runs)),
        attempt=1 + earlier,
        why=f"run {earlier + 1} of {arm.label}",
    )
    outcome = make_run(bench, intent)
    told = f"{outcome.measures.output_tokens_per_s:.1f} tok/s" if outcome.measures else outcome.reason
    bench.progress.result(f"{intent.run_id} {arm.label}: {told}", good=outcome.status is RunStatus.OK)


def result(state: CampaignState, repeats: int) -> dict[str, Any]:
    rows = [row(place, run) for place, run in enumerate(state.runs) if run.outcome is not None]
    return {
        "what": "output tokens/s of the embedded llama.cpp over its dials",
        "made_by": "benchmarks/search/record_llamacpp.py",
        "assay": state.assay_version,
        "engine": f"{state.build.engine} {state.build.version}",
        "model": f"{state.model.architecture} {state.model.quantization}, {state.model.size_bytes} bytes",
        "machine": state.machine.model_dump(include={"cpu_model", "physical_cores", "usable_cores", "memory_bytes"}),
        "workload": state.spec.workload.model_dump(mode="json"),
        "grid": GRID,
        "baseline": BASELINE,
        "repeats_wanted": repeats,
        "rows": rows,
    }


def row(place: int, run: RunRecord) -> dict[str, Any]:
    """One run; what a refused one measured is not in the record."""
    outcome = run.outcome
    assert outcome is not None
    found: dict[str, Any] = {
        "place": place,
        "point": None if run.intent.candidate is None else {flag: run.intent.arm.flags[flag] for flag in GRID},
        "status": str(outcome.status),
        "duration_s": round(outcome.duration_s, 2),
        "foreign_cores": outcome.machine_after.get("foreign_cpu_cores"),
    }
    if outcome.measures is None:
        return {**found, "reason": outcome.reason}
    measures = outcome.measures
    return {
        **found,
        "start_s": outcome.start_s,
        "output_tokens_per_s": measures.output_tokens_per_s,
        "ttft_p50_s": measures.ttft.p50_s,
        "tpot_p50_s": measures.tpot.p50_s,
        "e2e_p50_s": measures.e2e.p50_s,
    }


if __name__ == "__main__":
    main()
