"""A campaign without servers: the real planner, events folded in memory, and a world that answers each run.

What a run gives depends on the arm and on how many runs ended before it, never on ids or on how often Assay was
killed: two campaigns in one world can be compared run by run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.plan.fold import advance, fold
from assay.plan.next_step import next_step
from assay.plan.steps import (
    AskApproval,
    Done,
    Finish,
    GiveUp,
    MakeRun,
    RecordAblation,
    RecordCalibration,
    RecordDial,
    RecordScreen,
    RecordVerdict,
    Step,
)
from assay.records.event import Event, EventKind
from assay.records.hypothesis import Hypothesis, Optimization
from assay.records.machine import EngineBuild, Machine, ModelFacts
from assay.records.run import Failure, Measures, Quantiles, RunIntent, RunOutcome, RunStatus, Window
from assay.records.soak import Soak
from assay.records.spec import MAIN_POINT, CampaignSpec
from assay.records.state import CampaignState
from assay.units import NS_PER_S

Trouble = RunStatus | Failure | None
MACHINE = Machine(
    cpu_model="simulated", physical_cores=2, logical_cores=2, usable_cores=2, isa=[], memory_bytes=2**33, numa_nodes=1,
    kernel="6.1", os="Debian 12", python="3.11", hypervisor=False,
)  # fmt: skip
BUILD = EngineBuild(engine="llamacpp", argv=["server"], version="1", source="PATH", flags=[])
MODEL = ModelFacts(path="m.gguf", sha256="0" * 64, size_bytes=1, architecture="llama", quantization="Q8_0")
MAX_STEPS = 3000
"""More than any campaign here can need: a planner that goes on beyond it goes on for ever."""


def no_trouble(intent: RunIntent, nth: int) -> Trouble:  # noqa: ARG001 - the shape of `World.trouble`
    """Every run succeeds."""
    return None


def stands(intent: RunIntent, nth: int) -> Soak:  # noqa: ARG001 - the shape of `World.soak`
    """Every soak shows a stable server."""
    return Soak(point=MAIN_POINT, concurrency=1, soaked_s=intent.soak_s, requests=1, failed=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The hidden truth."""

    effects: dict[str, float] = field(default_factory=dict)
    """Log ratio of each optimization; effects add up."""
    at_points: dict[str, dict[str, float]] = field(default_factory=dict)
    """The same for further operating points, where they differ there: point, optimization, log ratio."""
    instead: dict[frozenset[str], float] = field(default_factory=dict)
    """Interactions: what these optimizations together add to the sum of their own effects."""
    run_sd: float = 0.02
    """Run-to-run standard deviation of the log value."""
    drift_per_run: float = 0.0
    seed: int = 0
    duration_s: float = 10.0
    trouble: Callable[[RunIntent, int], Trouble] = no_trouble
    """What goes wrong, given the intent and how many runs of this arm and series have ended before."""
    soak: Callable[[RunIntent, int], Soak | None] = stands
    """What a soak shows, where one is asked for; given the same. None: it was interrupted."""

    def answer(self, intent: RunIntent, state: CampaignState) -> RunOutcome:
        """How this run ends."""
        ended = [r for r in state.runs if r.outcome and r.outcome.status is not RunStatus.ABANDONED]
        same = [r for r in ended if (r.intent.series, r.intent.candidate) == (intent.series, intent.candidate)]
        common: dict[str, Any] = {"run_id": intent.run_id, "duration_s": self.duration_s}
        trouble = self.trouble(intent, len(same))
        if isinstance(trouble, Failure):
            return RunOutcome(status=RunStatus.FAILED, reason=trouble.line, failure=trouble, **common)
        if trouble is not None and trouble is not RunStatus.OK:
            return RunOutcome(status=trouble, reason=f"made to be {trouble}", **common)
        rng = np.random.default_rng([self.seed, len(ended)])
        common_part = self.drift_per_run * len(ended) + self.run_sd * rng.standard_normal()
        common_part += sum(log for together, log in self.instead.items() if together <= set(intent.arm.deltas))

        def value(effects: dict[str, float]) -> float:
            return 100 * math.exp(common_part + sum(effects.get(name, 0.0) for name in intent.arm.deltas))

        further = {
            point.name: self.effects | self.at_points.get(point.name, {}) for point in state.spec.workload.points
        }
        return RunOutcome(
            status=RunStatus.OK,
            reason="every gate passed",
            measures=measures(value(self.effects), with_latency=trouble is None),
            points={name: measures(value(effects)) for name, effects in further.items()},
            soak=self.soak(intent, len(same)) if intent.soak_s else None,
            **common,
        )


def measures(tokens_per_s: float, *, with_latency: bool = True) -> Measures:
    """Measures whose latencies are the reciprocal of the throughput."""
    p50 = 1 / tokens_per_s if with_latency else None
    latency = Quantiles(num_samples=50, mean_s=p50, p50_s=p50, p90_s=p50, p95_s=p50 and 2 * p50, p99_s=None)
    return Measures(
        windows=[Window(start_s=1, duration_s=1, output_tokens=int(tokens_per_s), output_tokens_per_s=tokens_per_s)],
        output_tokens_per_s=tokens_per_s, total_tokens_per_s=2 * tokens_per_s, requests_per_s=tokens_per_s / 10,
        requests_completed=50, ttft=latency, tpot=latency, itl=latency, e2e=latency, mean_input_tokens=40,
        mean_output_tokens=30, warmup_s=1, client_cpu_share=0.01, client_max_lag_s=0.001, server_rss_bytes=None,
    )  # fmt: skip


class Journal:
    """An in-memory record."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = list(events)
        self.state = fold(self.events)

    def note(self, kind: EventKind, payload: dict[str, Any], *, after_s: float = 0.001) -> None:
        """Write an event, and let the state follow."""
        last = self.events[-1]
        event = Event(
            seq=last.seq + 1, at_ns=last.at_ns + round(after_s * NS_PER_S), kind=kind, payload=payload,
            previous_hash=last.hash, hash=f"hash-{last.seq + 1}",
        )  # fmt: skip
        self.events.append(event)
        self.state = advance(self.state, event)


def hypothesis(name: str, number: int = 1, **changes: Any) -> Hypothesis:
    """A hypothesis whose flag is its own name; changes go to the optimization or the hypothesis."""
    own = {key: changes.pop(key) for key in list(changes) if key in Hypothesis.model_fields}
    fields: dict[str, Any] = {
        "id": name, "title": name, "tier": 1, "engine": "llamacpp", "flags": {f"--{name}": True}, "mechanism": "none",
        "predicted": (-0.05, 0.05), "numerics": "exact", "risk": "none",
    }  # fmt: skip
    optimization = Optimization.model_validate({**fields, **changes})
    return Hypothesis.model_validate(
        {"number": number, "optimization": optimization, "predicted": (-0.05, 0.05), "document": f"{name}.md", **own}
    )


def start(hypotheses: Iterable[Hypothesis], spec: CampaignSpec) -> Journal:
    """A campaign created and planned."""
    created = Event(
        seq=1, at_ns=NS_PER_S, kind=EventKind.CAMPAIGN_CREATED, previous_hash="0" * 64, hash="hash-1",
        payload={
            "spec": spec.model_dump(mode="json"), "spec_hash": "s", "machine": MACHINE.model_dump(mode="json"),
            "build": BUILD.model_dump(mode="json"), "model": MODEL.model_dump(mode="json"), "assay_version": "0",
        },
    )  # fmt: skip
    journal = Journal([created])
    replan(journal, hypotheses)
    return journal


def replan(journal: Journal, hypotheses: Iterable[Hypothesis]) -> None:
    """The documents, read again."""
    dumped = [h.model_dump(mode="json") for h in hypotheses]
    journal.note(EventKind.PLAN_WRITTEN, {"hypotheses": dumped, "passed_over": {}})


def drive(journal: Journal, world: World, *, pause_s: float = 0.001) -> Step:
    """Carry the campaign on until it is done, gives up or asks; return that step.

    Raises:
        RuntimeError: the planner found no end.
    """
    abandon_open_runs(journal, pause_s)
    first_run = len(journal.state.runs)
    for _ in range(MAX_STEPS):
        step = next_step(journal.state, first_run=first_run)
        if isinstance(step, Done | GiveUp | AskApproval):
            return step
        perform(journal, step, world)
    raise RuntimeError(f"no end after {MAX_STEPS} steps; the last was {step}")


def abandon_open_runs(journal: Journal, pause_s: float = 0.001) -> None:
    """What Assay does first when it is started again."""
    for run in journal.state.runs:
        if run.outcome is None:
            outcome = RunOutcome(run_id=run.intent.run_id, status=RunStatus.ABANDONED, reason="killed", duration_s=0)
            journal.note(EventKind.RUN_ENDED, {"outcome": outcome.model_dump(mode="json")}, after_s=pause_s)


def perform(journal: Journal, step: Step, world: World) -> None:
    """Do a step and record it, intent before action.

    Raises:
        TypeError: the step is not one that is recorded.
    """
    match step:
        case MakeRun(intent=intent):
            outcome = world.answer(intent, journal.state)
            journal.note(EventKind.RUN_INTENDED, {"intent": intent.model_dump(mode="json")})
            server = {"pid": 1, "create_time": 1.0, "port": 1024, "argv": ["server"]}
            journal.note(EventKind.SERVER_STARTED, {"run_id": intent.run_id, "server": server})
            ended = {"outcome": outcome.model_dump(mode="json")}
            journal.note(EventKind.RUN_ENDED, ended, after_s=outcome.duration_s)
        case RecordCalibration(calibration=calibration):
            journal.note(EventKind.CALIBRATED, {"calibration": calibration.model_dump(mode="json")})
        case RecordDial(result=result):
            journal.note(EventKind.DIAL_SETTLED, {"result": result.model_dump(mode="json")})
        case RecordScreen(result=result):
            journal.note(EventKind.SCREENED, {"result": result.model_dump(mode="json")})
        case RecordAblation(ablation=ablation):
            journal.note(EventKind.ABLATED, {"ablation": ablation.model_dump(mode="json")})
        case RecordVerdict(verdict=verdict):
            journal.note(EventKind.VERDICT_REACHED, {"verdict": verdict.model_dump(mode="json")})
        case Finish(headline=headline):
            journal.note(EventKind.CAMPAIGN_FINISHED, {"headline": headline.model_dump(mode="json")})
        case _:
            raise TypeError(f"nothing to record for {step}")
