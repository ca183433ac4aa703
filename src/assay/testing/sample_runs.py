"""SAMPLE DATA: runs of the made-up campaign, one after another in time; none of their numbers was measured."""

from __future__ import annotations

import math
import random

from assay.records.run import (
    AnswerCheck,
    Arm,
    Failure,
    Gate,
    Measures,
    Purpose,
    Quantiles,
    RunIntent,
    RunOutcome,
    RunStatus,
    Window,
)
from assay.records.state import RunRecord
from assay.testing.sample_cases import Case
from assay.units import MIB_BYTES, NS_PER_S

BEGAN_NS = 1_790_000_000 * NS_PER_S
BASE_TOKENS_PER_S = 86.1
FLAGS = {"--ctx-size": 4096, "--parallel": 1}


class Runs:
    """Makes runs one after another, in time order."""

    def __init__(self) -> None:
        self.records: list[RunRecord] = []
        self.now_ns = BEGAN_NS
        self._rng = random.Random(20)

    def series(
        self, purpose: Purpose, name: str, candidate: str, brackets: int, log_gain: float, below: tuple[str, ...],
        *, log_below: float = 0.0,
    ) -> list[str]:  # fmt: skip
        """Reference, candidate, reference ...; ids of the candidate's runs (confirmation: of all)."""
        deltas = ("parallel-slots", "threads-batch") if candidate == "stack" else (*below, candidate)
        deltas = () if candidate == "baseline" else deltas
        ids = [self.add(purpose, name, None, below, log_gain=log_below)]
        for _ in range(brackets):
            ids.append(self.add(purpose, name, candidate, deltas, log_gain=log_gain))
            ids.append(self.add(purpose, name, None, below, log_gain=log_below))
        return ids if purpose in {Purpose.CONFIRMATION, Purpose.COMPOSITION} else ids[1::2]

    def add(
        self, purpose: Purpose, series: str, candidate: str | None, deltas: tuple[str, ...], *,
        log_gain: float = 0.0, status: RunStatus = RunStatus.OK, failure: Failure | None = None,
    ) -> str:  # fmt: skip
        """One run; its id."""
        number = len(self.records) + 1
        run_id = f"r{number:04d}"
        arm = Arm(label=" + ".join(deltas) or "baseline", flags=dict(FLAGS), deltas=list(deltas))
        intent = RunIntent(
            run_id=run_id, purpose=purpose, series=series, candidate=candidate, arm=arm, seed=1000 + number // 2,
            why=f"{purpose}: {candidate or 'the reference'}",
        )  # fmt: skip
        log_value = math.log(BASE_TOKENS_PER_S) + log_gain - 0.0006 * number + 0.022 * self._rng.gauss(0, 1)
        outcome = _outcome(run_id, status, math.exp(log_value), failure, number)
        end_ns = self.now_ns + round((outcome.duration_s + 0.4) * NS_PER_S)
        self.records.append(RunRecord(intent=intent, outcome=outcome, intended_at_ns=self.now_ns, ended_at_ns=end_ns))
        self.now_ns = end_ns + NS_PER_S // 5
        return run_id


def screen(runs: Runs, case: Case) -> list[str]:
    """The screening runs that the case's verdict calls for."""
    if case.more.get("cause") == "plan":
        return []
    if case.effect is not None and case.kind != "unstable":
        return runs.series(Purpose.SCREEN, "main", case.name, 3, math.log1p(case.effect[0] / 100), ())
    if case.kind in {"blocked", "unstable"}:
        stages = {"incompatible-combination": "load", "unknown-flag": "arguments", "crashed": "under-load"}
        failure = Failure.model_validate(
            {"stage": stages[case.more["cause"]], "cause": case.more["cause"], "line": case.more["line"],
             "log": f"runs/r{len(runs.records) + 1:04d}/server.log", "exit_code": 1}
        )  # fmt: skip
        ok = [runs.add(Purpose.SCREEN, "main", case.name, (case.name,))] if case.kind == "unstable" else []
        return [
            *ok,
            runs.add(Purpose.SCREEN, "main", case.name, (case.name,), status=RunStatus.FAILED, failure=failure),
        ]
    return [runs.add(Purpose.SCREEN, "main", case.name, (case.name,), status=RunStatus(case.kind))]


def _outcome(run_id: str, status: RunStatus, value: float, failure: Failure | None, number: int) -> RunOutcome:
    quiet = status is not RunStatus.INVALID
    reason = {
        RunStatus.OK: "every gate passed",
        RunStatus.ABANDONED: "Assay ended during this run; no server of it was left",
        RunStatus.INVALID: "machine-quiet: other processes used 1.06 cores (at most 0.15)",
    }.get(status, failure.line if failure else f"made up to be {status}")
    wrong = status is RunStatus.WRONG_OUTPUT
    gates = [
        Gate(name="no-errors", passed=True, evidence="0 of 26 requests failed"),
        Gate(name="steady", passed=True, evidence="chunks in successive stretches of warm-up: 48, 44"),
        Gate(name="machine-quiet", passed=quiet, evidence=f"other processes used {0.01 if quiet else 1.06} cores",
             remedy="stop what else runs on this machine; `assay assess` names it"),
    ]  # fmt: skip
    measured = status in {RunStatus.OK, RunStatus.WRONG_OUTPUT}
    answers = AnswerCheck(probes=48, agreed=31 if wrong else 48 - number % 3 // 2, under_load_probes=26,
                          under_load_agreed=17 if wrong else 26) if measured else None  # fmt: skip
    return RunOutcome(
        run_id=run_id, status=status, reason=reason, duration_s=7.0 + number % 5 / 4, failure=failure,
        measures=_measures(value, number) if measured else None, answers=answers,
        gates=gates if failure is None and status is not RunStatus.ABANDONED else [],
    )  # fmt: skip


def _measures(value: float, number: int) -> Measures:
    def latency(p50_s: float, count: int) -> Quantiles:
        return Quantiles(
            num_samples=count, mean_s=1.03 * p50_s, p50_s=p50_s, p90_s=1.2 * p50_s, p95_s=1.3 * p50_s, p99_s=None
        )

    windows = [
        Window(start_s=1.2 + 1.5 * i, duration_s=1.5, output_tokens=round(1.5 * value), output_tokens_per_s=value * k)
        for i, k in enumerate((0.985, 1.0, 1.015))
    ]
    return Measures(
        windows=windows, output_tokens_per_s=value, total_tokens_per_s=2.2 * value, requests_per_s=value / 32,
        requests_completed=round(4.5 * value / 32), ttft=latency(126 / value, 17), tpot=latency(0.8 / value, 17),
        itl=latency(0.79 / value, 250), e2e=latency(150 / value, 17), mean_input_tokens=44.0, mean_output_tokens=32.0,
        warmup_s=1.2, client_cpu_share=0.024 + 0.001 * (number % 6), client_max_lag_s=0.003 + 0.0004 * (number % 7),
        server_rss_bytes=276 * MIB_BYTES,
    )  # fmt: skip
