"""SAMPLE DATA: a made-up campaign with every kind of verdict, for tests and for looking at reports.

Nothing in it was measured. Its name and its machine say so wherever they are shown.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any

from assay.records.hypothesis import Hypothesis, Optimization
from assay.records.machine import EngineBuild, FlagInfo, Machine, ModelFacts
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
from assay.records.spec import CampaignSpec
from assay.records.state import CampaignState, RunRecord, ScreenResult
from assay.records.verdict import Calibration, Effect, Headline, Verdict, VerdictKind
from assay.units import MIB_BYTES, NS_PER_S

BEGAN_NS = 1_790_000_000 * NS_PER_S
BASE_TOKENS_PER_S = 86.1
FLAGS = {"--ctx-size": 4096, "--parallel": 1}
NUM_URGENT = 3
NOT_A_FLAG = "error: invalid argument: --mlock-all"
NO_FLASH = "llama_init_from_model: quantized V cache requires flash_attn to be enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What one hypothesis is made to be: percent values."""

    name: str
    title: str
    predicted: tuple[float, float]
    kind: str
    effect: tuple[float, float, float] | None = None
    reason: str = ""
    tier: int = 1
    more: dict[str, Any] = field(default_factory=dict)
    """Cause and line of the verdict."""


CASES = [
    Case(name="parallel-slots", title="Serve eight slots at once", predicted=(0.1, 0.8), kind="adopted",
         effect=(32.1, 21.4, 43.8), reason="gain on top of the baseline, on fresh runs"),
    Case(name="threads-batch", title="All cores for prompt processing", predicted=(0.0, 0.15), kind="adopted",
         effect=(7.9, 1.2, 15.0), reason="gain on top of parallel-slots, on fresh runs"),
    Case(name="ubatch-large", title="Larger physical batch", predicted=(-0.05, 0.1), kind="no-effect",
         effect=(0.4, -3.2, 4.1), reason="the interval lies within ±5.0%"),
    Case(name="poll-busy", title="Busy polling between batches", predicted=(0.05, 0.1), kind="no-effect",
         effect=(-1.1, -4.6, 2.5), reason="the interval lies within ±5.0%"),
    Case(name="one-thread", title="A single thread (control)", predicted=(-0.6, -0.2), kind="worse",
         effect=(-41.7, -48.0, -34.6), reason="the interval lies below zero"),
    Case(name="threads-oversubscribed", title="Twice as many threads as cores", predicted=(-0.1, 0.05), kind="worse",
         effect=(-62.4, -70.2, -52.5), reason="the interval lies below zero"),
    Case(name="speculation-ngram", title="n-gram speculation", predicted=(-0.1, 0.4), kind="undecided",
         effect=(6.2, -4.9, 18.6), reason="cannot tell from noise: the budget ended after 4 brackets"),
    Case(name="lock-memory", title="Lock all memory", predicted=(0.0, 0.02), kind="blocked",
         reason="this build has no flag --mlock-all (nearest: --mlock)", more={"cause": "plan"}),
    Case(name="kv-q8-0-without-flash-attention", title="8-bit KV cache, flash attention off", tier=2,
         predicted=(-0.05, 0.05), kind="blocked", reason=f"incompatible-combination at stage load: {NO_FLASH}",
         more={"cause": "incompatible-combination", "line": NO_FLASH}),
    Case(name="mlock-everything", title="An older spelling", predicted=(0.0, 0.02), kind="blocked",
         reason=f"unknown-flag at stage arguments: {NOT_A_FLAG}", more={"cause": "unknown-flag", "line": NOT_A_FLAG}),
    Case(name="cache-reuse", title="Reuse shifted prefixes", predicted=(0.0, 0.05), kind="not-applied",
         reason="the server says: cache_reuse is not supported by this context",
         more={"line": "srv load_model: cache_reuse is not supported by this context, it will be disabled"}),
    Case(name="requantize-q4-0", title="Weights in 4 bits", tier=2, predicted=(0.1, 0.5), kind="wrong-output",
         reason="31 of 48 next tokens agree with the baseline's: below the floor of 90%"),
    Case(name="context-cap", title="Smaller context", tier=2, predicted=(0.0, 0.1), kind="unstable",
         effect=(2.0, -9.8, 15.3), reason="crashed under load in 2 of 3 runs",
         more={"cause": "crashed", "line": "GGML_ASSERT(n_tokens <= n_batch) failed"}),
    Case(name="numa-distribute", title="Spread over <NUMA> nodes | one node here", predicted=(0.0, 0.1), tier=3,
         kind="cancelled"),
]  # fmt: skip


def sample_state() -> CampaignState:
    """A finished campaign: two of fourteen hypotheses adopted and confirmed, everything else ended otherwise."""
    runs = _Runs()
    runs.series(Purpose.CALIBRATION, "main", "baseline", 4, 0.0, ())
    runs.add(Purpose.SCREEN, "main", None, (), status=RunStatus.INVALID)
    ids = {case.name: _screen(runs, case) for case in CASES if case.kind != "cancelled"}
    runs.add(Purpose.SCREEN, "main", None, (), status=RunStatus.ABANDONED)
    for i, name in enumerate(("parallel-slots", "threads-batch")):
        runs.now_ns += 3600 * NS_PER_S
        below = ("parallel-slots",) if i else ()
        ids[name] = runs.series(
            Purpose.COMPOSITION, f"composition:{name}", name, 4, 0.28 + 0.076 * i, below, log_below=0.28 * i
        )
    final = runs.series(Purpose.CONFIRMATION, "confirmation", "stack", 5, 0.34, ())
    verdicts = {case.name: _verdict(case, ids[case.name]) for case in CASES if case.kind != "cancelled"}
    effect = _effect((40.2, 31.9, 49.1))
    sentence = "parallel-slots + threads-batch: +40.2% [+31.9, +49.1] in output_tokens_per_s, confirmed on fresh runs."
    first = verdicts["parallel-slots"].effect
    assert first is not None
    return CampaignState(
        created_at_ns=BEGAN_NS, spec=CampaignSpec.model_validate({"name": "sample campaign (made-up data)",
        "target": {"model": "embedded", "flags": FLAGS}}), spec_hash="5a" * 32, machine=sample_machine(),
        build=_build(), model=_model(), assay_version="0.1.0", planned=True,
        hypotheses=[_hypothesis(i, case) for i, case in enumerate(CASES, start=1)], runs=runs.records,
        calibration=Calibration(bracket_sd=0.031, degrees_of_freedom=3, bias=0.004, min_detectable_effect=0.084,
                                drift_per_hour=-0.42),
        screened={"parallel-slots": ScreenResult(candidate="parallel-slots", effect=first, promising=True)},
        verdicts=verdicts, stack=["parallel-slots", "threads-batch"],
        headline=Headline(stack=["parallel-slots", "threads-batch"], flags={**FLAGS, "--parallel": 8}, effect=effect,
                          baseline_median=86.2, stack_median=120.9, confirmed=True, sentence=sentence, runs=final),
        num_events=3 * len(runs.records) + 20, last_hash="c0ffee" * 10 + "beef",
    )  # fmt: skip


def sample_variants() -> dict[str, CampaignState]:
    """The sample at other moments and with other ends, by name."""
    whole = sample_state()
    nothing: dict[str, Any] = {"verdicts": {}, "stack": [], "headline": None, "screened": {}}
    planned = whole.model_copy(update={**nothing, "runs": [], "calibration": None})
    blocked = [h for h in whole.hypotheses if whole.verdicts.get(h.id, None) and whole.verdicts[h.id].cause == "plan"]
    effect = _effect((8.0, -2.0, 19.0))
    assert whole.headline is not None
    sentence = "parallel-slots + threads-batch was adopted, but the fresh runs do not confirm it: +8.0% [-2.0, +19.0]."
    doubtful = whole.headline.model_copy(update={"effect": effect, "confirmed": False, "sentence": sentence})
    stands = Headline(
        stack=[], flags=dict(FLAGS), effect=None, baseline_median=86.2, stack_median=None, confirmed=False,
        sentence="Nothing was adopted: the launch command in use today stands.", runs=["r0001", "r0003"],
    )  # fmt: skip
    return {
        "finished": whole,
        "no-hypotheses": planned.model_copy(update={"hypotheses": [], "planned": False}),
        "planned": planned,
        "only-blocked": planned.model_copy(
            update={"hypotheses": blocked, "verdicts": {h.id: whole.verdicts[h.id] for h in blocked}}
        ),
        "first-run-in-flight": planned.model_copy(
            update={"runs": [whole.runs[0].model_copy(update={"outcome": None, "ended_at_ns": None})]}
        ),
        "baseline-only": planned.model_copy(update={"runs": whole.runs[:3]}),
        "calibrated": whole.model_copy(update={**nothing, "runs": whole.runs[:9]}),
        "unfinished": whole.model_copy(update={"headline": None}),
        "nothing-adopted": whole.model_copy(update={"stack": [], "headline": stands}),
        "not-confirmed": whole.model_copy(update={"headline": doubtful}),
    }


def sample_latencies() -> dict[str, dict[str, list[float]]]:
    """Seconds of single requests by arm and metric."""
    rng = random.Random(7)
    return {
        arm: {
            "ttft_s": [scale * rng.lognormvariate(0, 0.35) for _ in range(400)],
            "tpot_s": [each * rng.lognormvariate(0, 0.12) for _ in range(400)],
        }
        for arm, scale, each in (("baseline", 1.5, 0.0097), ("stack", 1.08, 0.007))
    }


def sample_commands() -> dict[str, str]:
    """The launch commands of both arms."""
    common = "llama-server --model /models/sample.gguf --host 127.0.0.1 --port 8080 --ctx-size 4096"
    return {"baseline": f"{common} --parallel 1", "stack": f"{common} --parallel 8 --threads-batch 2"}


def sample_machine() -> Machine:
    """A machine that does not exist."""
    return Machine(
        cpu_model="Sample CPU (made-up)", physical_cores=2, logical_cores=4, usable_cores=2, isa=["avx2", "fma"],
        memory_bytes=16 * 1024 * MIB_BYTES, numa_nodes=1, kernel="Linux 6.1", os="Debian GNU/Linux 12",
        python="3.11.9", hypervisor=True,
    )  # fmt: skip


class _Runs:
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


def _screen(runs: _Runs, case: Case) -> list[str]:
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


def _effect(percent: tuple[float, float, float]) -> Effect:
    middle, low, high = (math.log1p(value / 100) for value in percent)
    return Effect(
        log_ratio=middle, low=low, high=high, num_brackets=3, standard_error=(high - low) / 4, degrees_of_freedom=6,
        confidence=0.95,
    )  # fmt: skip


def _verdict(case: Case, runs: list[str]) -> Verdict:
    effect = _effect(case.effect) if case.effect else None
    held = None
    if effect is not None and case.kind != "unstable":
        held = effect.percent_low <= 100 * case.predicted[1] and effect.percent_high >= 100 * case.predicted[0]
    shown = f"{effect.percent:+.1f}% [{effect.percent_low:+.1f}, {effect.percent_high:+.1f}]: " if effect else ""
    return Verdict(
        candidate=case.name, kind=VerdictKind(case.kind), reason=shown + case.reason, effect=effect, runs=runs,
        predicted=case.predicted if held is not None else None, prediction_held=held, **case.more,
    )  # fmt: skip


def _hypothesis(number: int, case: Case) -> Hypothesis:
    optimization = Optimization(
        id=case.name, title=case.title, tier=case.tier, engine="llamacpp", flags={f"--{case.name}": True},
        mechanism="made up", predicted=case.predicted, numerics="exact", risk="none: made up",
    )  # fmt: skip
    blocked = case.more.get("cause") == "plan"
    return Hypothesis(
        number=number, optimization=optimization, priority="high" if number <= NUM_URGENT else "medium",
        status="cancelled" if case.kind == "cancelled" else "blocked" if blocked else "planned",
        blocked_reason=case.reason if blocked else None, predicted=case.predicted,
        document=f"improvements/{number:02d}-{case.name}.md",
    )  # fmt: skip


def _build() -> EngineBuild:
    flags = [FlagInfo(names=["--parallel", "-np"], value="N"), FlagInfo(names=["--ctx-size", "-c"], value="N")]
    return EngineBuild(
        engine="llamacpp", argv=["llama-server"], version="llama.cpp b0000 (made-up)", source="PATH", flags=flags
    )


def _model() -> ModelFacts:
    return ModelFacts(
        path="/models/sample.gguf", sha256="ab" * 32, size_bytes=94 * MIB_BYTES, architecture="llama",
        quantization="Q4_1", num_layers=30, context_length=8192, name="Sample 135M", license="apache-2.0",
    )  # fmt: skip
