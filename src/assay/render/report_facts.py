"""What the report says, taken from the record: rows and sentences, each with the runs it rests on.

Selections, medians and counts only: every effect and interval was computed before, and is in the record.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.plan.scores import metric_value
from assay.plan.series import CONFIRMATION, MAIN, valid_runs, why_not_counted
from assay.plan.todo import todo
from assay.records.hypothesis import Hypothesis
from assay.records.run import Measures, Purpose, RunStatus
from assay.records.state import CampaignState, RunRecord
from assay.records.verdict import Effect, Verdict, VerdictKind
from assay.render.so_far import SoFar, so_far

FAILED_KINDS = frozenset({VerdictKind.BLOCKED, VerdictKind.UNSTABLE, VerdictKind.NOT_APPLIED, VerdictKind.WRONG_OUTPUT})
LATENCIES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E"}
QUANTILES = ("p50_s", "p90_s", "p95_s", "p99_s")
MIN_RANGE = 3
"""Neighbouring runs from which on "r0004 to r0006" is shorter than the list."""
MAX_LINKS = 7
"""Groups of runs up to which each has a link of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A run, or a row of neighbouring runs, as a link into the table of all runs."""

    words: str
    target: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoRow:
    """A hypothesis with its verdict."""

    hypothesis: Hypothesis
    status: str
    verdict: Verdict | None
    so_far: SoFar | None
    """What is measured of it before it has a verdict."""
    screened: Effect | None
    """Its effect in the screen, where the verdict rests on other runs."""
    references: list[Reference]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """A hypothesis that failed, did nothing, or answered wrongly: where, why, in whose words."""

    verdict: Verdict
    stage: str | None
    exit_code: int | None
    log: str | None
    references: list[Reference]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileRow:
    """One latency of one arm: medians over its runs of each run's quantiles, in seconds."""

    name: str
    arm: str
    values: list[float | None]
    references: list[Reference]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """One arm's answers; the run that agreed least, alone and under load."""

    arm: str
    num_runs: int
    alone: RunRecord
    under_load: RunRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """One validity gate over all runs."""

    name: str
    num_runs: int
    failed: list[RunRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme:
    """The largest value of a kind, and the run it comes from."""

    value: float
    run_id: str


def references(state: CampaignState, run_ids: Iterable[str]) -> list[Reference]:
    """Links to runs, neighbours drawn together."""
    wanted = set(run_ids)
    groups: list[list[str]] = [[]]
    for run in state.runs:
        if run.intent.run_id in wanted:
            groups[-1].append(run.intent.run_id)
        elif groups[-1]:
            groups.append([])
    if len(groups) > MAX_LINKS:
        names = [name for group in groups for name in group]
        words = f"{len(names)} runs, {names[0]} to {names[-1]}"
        return [Reference(words=words, target=f"run-{names[0]}", title=", ".join(names))]
    found = []
    for group in groups:
        whole = [group] if len(group) >= MIN_RANGE else [[name] for name in group]
        for names in whole:
            words = names[0] if len(names) == 1 else f"{names[0]}\N{EN DASH}{names[-1]}"
            found.append(Reference(words=words, target=f"run-{names[0]}", title=", ".join(names)))
    return found


def references_to(state: CampaignState, runs: Iterable[RunRecord]) -> list[Reference]:
    """The same, for runs."""
    return references(state, [run.intent.run_id for run in runs])


def todo_rows(state: CampaignState) -> list[TodoRow]:
    """Every hypothesis in the plan's order."""
    status = {item.id: item.status.replace("_", " ") for item in todo(state)}
    open_ones = so_far(state)
    rows = []
    for hypothesis in state.hypotheses:
        verdict, found = state.verdicts.get(hypothesis.id), open_ones.get(hypothesis.id)
        links = references(state, verdict.runs if verdict else found.runs if found else [])
        rows.append(
            TodoRow(
                hypothesis=hypothesis,
                status=status[hypothesis.id],
                verdict=verdict,
                so_far=found,
                screened=_screened(state, verdict),
                references=links,
            )
        )
    return rows


def _screened(state: CampaignState, verdict: Verdict | None) -> Effect | None:
    """What the screen saw of a candidate that went on to another test."""
    screened = state.screened.get(verdict.candidate) if verdict is not None else None
    return screened.effect if verdict and screened and screened.effect != verdict.effect else None


def failure_rows(state: CampaignState) -> list[FailureRow]:
    """Every hypothesis that failed, with stage, cause, the engine's own line, and where its log is."""
    by_id = {run.intent.run_id: run for run in state.runs}
    rows = []
    for verdict in state.verdicts.values():
        if verdict.kind not in FAILED_KINDS:
            continue
        own = [by_id[name] for name in verdict.runs if name in by_id and by_id[name].intent.candidate is not None]
        ended = [run.outcome for run in own]
        failure = next((outcome.failure for outcome in reversed(ended) if outcome and outcome.failure), None)
        default = f"runs/{verdict.runs[-1]}/server.log" if verdict.runs else None
        rows.append(
            FailureRow(
                verdict=verdict,
                stage=failure.stage if failure else None,
                exit_code=failure.exit_code if failure else None,
                log=failure.log if failure else default,
                references=references(state, verdict.runs),
            )
        )
    return rows


def other_failures(state: CampaignState) -> list[RunRecord]:
    """Runs that failed or were abandoned without deciding a verdict: they were made again."""
    told = {name for row in failure_rows(state) for name in row.verdict.runs}
    kinds = {RunStatus.FAILED, RunStatus.ABANDONED}
    return [r for r in state.runs if r.outcome and r.outcome.status in kinds and r.intent.run_id not in told]


def waiting_runs(state: CampaignState) -> list[RunRecord]:
    """Runs before which Assay waited for a quiet machine."""
    return [run for run in state.runs if run.outcome and run.outcome.waited_s]


def baseline_runs(state: CampaignState) -> list[RunRecord]:
    """Every run of the baseline that counts, in time order: the screen's, those that composition stood on, the last."""
    return [run for run in state.runs if not run.intent.arm.deltas and why_not_counted(state, run) is None]


def calibration_runs(state: CampaignState) -> list[RunRecord]:
    """The runs that the noise was learned from."""
    return [run for run in valid_runs(state, MAIN) if run.intent.purpose is Purpose.CALIBRATION]


def median_value(state: CampaignState, runs: Sequence[RunRecord]) -> float | None:
    """Median of the objective over runs; None without any."""
    values = [value for run in runs if (value := objective(state, run)) is not None]
    return statistics.median(values) if values else None


def objective(state: CampaignState, run: RunRecord) -> float | None:
    """The run's value of what is judged."""
    measures = run.outcome.measures if run.outcome else None
    return metric_value(measures, state.spec.objective.metric) if measures else None


def quantile_rows(state: CampaignState) -> list[QuantileRow]:
    """Latencies of the confirmation's two arms; before it, of the baseline."""
    return [
        QuantileRow(
            name=label,
            arm=arm,
            values=[_median_quantile(runs, name, quantile) for quantile in QUANTILES],
            references=references_to(state, runs),
        )
        for name, label in LATENCIES.items()
        for arm, runs in latency_arms(state).items()
        if runs
    ]


def latency_arms(state: CampaignState) -> dict[str, list[RunRecord]]:
    """The runs whose latencies are shown, by arm; none of the stack before the confirmation."""
    confirmation = valid_runs(state, CONFIRMATION)
    return {
        "baseline": [run for run in confirmation if not run.intent.arm.deltas] or baseline_runs(state),
        "stack": [run for run in confirmation if run.intent.arm.deltas],
    }


def answer_rows(state: CampaignState) -> list[AnswerRow]:
    """The answer checks, an arm a row."""
    arms: dict[str, list[RunRecord]] = {}
    for run in state.runs:
        if run.outcome and run.outcome.answers:
            arms.setdefault(run.intent.arm.label, []).append(run)
    rows = []
    for arm, runs in arms.items():
        loaded = [run for run in runs if _agreement_under_load(run) is not None]
        rows.append(
            AnswerRow(
                arm=arm,
                num_runs=len(runs),
                alone=min(runs, key=_agreement),
                under_load=min(loaded, key=lambda run: _agreement_under_load(run) or 0.0) if loaded else None,
            )
        )
    return rows


def gate_rows(state: CampaignState) -> list[GateRow]:
    """Every gate: how often it was checked, and which runs it stopped."""
    seen: dict[str, list[tuple[RunRecord, bool]]] = {}
    for run in state.runs:
        for gate in run.outcome.gates if run.outcome else []:
            seen.setdefault(gate.name, []).append((run, gate.passed))
    return [
        GateRow(name=name, num_runs=len(checks), failed=[run for run, passed in checks if not passed])
        for name, checks in seen.items()
    ]


def largest(state: CampaignState, name: str) -> Extreme | None:
    """The largest of one of the client's own measures (`client_cpu_share`, `client_max_lag_s`)."""
    values = [
        Extreme(value=getattr(run.outcome.measures, name), run_id=run.intent.run_id)
        for run in state.runs
        if run.outcome and run.outcome.measures
    ]
    return max(values, key=lambda extreme: extreme.value, default=None)


def _agreement(run: RunRecord) -> float:
    assert run.outcome is not None
    assert run.outcome.answers is not None
    return run.outcome.answers.agreement


def _agreement_under_load(run: RunRecord) -> float | None:
    check = run.outcome.answers if run.outcome else None
    if check is None or not check.under_load_probes or check.under_load_agreed is None:
        return None
    return check.under_load_agreed / check.under_load_probes


def _median_quantile(runs: Sequence[RunRecord], name: str, quantile: str) -> float | None:
    measured: list[Measures] = [run.outcome.measures for run in runs if run.outcome and run.outcome.measures]
    values = [value for m in measured if (value := getattr(getattr(m, name), quantile)) is not None]
    return statistics.median(values) if values else None
