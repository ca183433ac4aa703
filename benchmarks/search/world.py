"""A campaign that holds nothing but a search, in a landscape instead of on a server, run by the planner itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from benchmarks.search.landscapes import Landscape

from assay.plan.steps import MakeRun
from assay.records.base import Flags
from assay.records.hypothesis import Hypothesis, Optimization
from assay.records.machine import EngineBuild, Machine, ModelFacts
from assay.records.run import Failure, Measures, Quantiles, RunOutcome, RunStatus, Window
from assay.records.spec import CampaignSpec, Objective, Target
from assay.records.state import CampaignState, RunRecord
from assay.units import NS_PER_S

MACHINE = Machine(
    cpu_model="simulated", physical_cores=2, logical_cores=2, usable_cores=2, isa=[], memory_bytes=2**33, numa_nodes=1,
    kernel="6.1", os="Debian 12", python="3.11", hypervisor=False,
)  # fmt: skip


class World:
    """Answers launches, with noise that depends on the seed and the launch's number alone."""

    def __init__(self, landscape: Landscape, seed: int, drift: float = 0.0) -> None:
        self.landscape, self.drift = landscape, drift
        self._rng = np.random.default_rng([seed, 7])
        self.launches, self.spent_s = 0, 0.0

    def launch(self, settings: Flags) -> float | None:
        """A noisy log value; None where it fails."""
        self.launches += 1
        noise = self.landscape.noise * self._rng.standard_normal() + self.drift * self.launches
        value = self.landscape.truth(settings)
        self.spent_s += self.landscape.failed_s if value is None else self.landscape.run_s
        return None if value is None else math.log(value) + noise


def baseline_settings(landscape: Landscape) -> Flags:
    return {knob.name: landscape.baseline[knob.flag] for knob in landscape.dial.knobs}


def start(landscape: Landscape, seed: int, min_effect: float) -> CampaignState:
    spec = CampaignSpec(
        target=Target(flags=dict(landscape.baseline)),
        workload=landscape.workload.model_copy(update={"seed": seed}),
        objective=Objective(min_effect=min_effect),
    )
    return CampaignState(
        created_at_ns=0, spec=spec, spec_hash="s", machine=MACHINE, assay_version="0",
        build=EngineBuild(engine="llamacpp", argv=["server"], version="1", source="PATH", flags=[]),
        model=ModelFacts(path="m", sha256="0" * 64, size_bytes=1, architecture="llama", quantization="Q8_0"),
    )  # fmt: skip


HYPOTHESIS = Hypothesis(
    number=1, predicted=(0.0, 0.5), document="01-dial.md",
    optimization=Optimization(
        id="dial", title="dial", tier=1, engine="llamacpp", mechanism="none", predicted=(0.0, 0.5),
        numerics="reordered", risk="none",
    ),
)  # fmt: skip


def answered(state: CampaignState, step: MakeRun, value: float | None, run_s: float) -> CampaignState:
    """The state after the run that a step asks for; None: it ran out of memory."""
    number = len(state.runs)
    common: dict[str, Any] = {"run_id": step.intent.run_id, "duration_s": run_s}
    if value is None:
        failure = Failure(stage="load", cause="oom", line="out of memory", log="server.log")
        outcome = RunOutcome(status=RunStatus.FAILED, reason="oom", failure=failure, **common)
    else:
        outcome = RunOutcome(status=RunStatus.OK, reason="every gate passed", measures=measures(value), **common)
    run = RunRecord(
        intent=step.intent, outcome=outcome, intended_at_ns=number * NS_PER_S, ended_at_ns=(number + 1) * NS_PER_S
    )
    return state.model_copy(update={"runs": [*state.runs, run]})


def measures(tokens_per_s: float) -> Measures:
    p50 = 1 / tokens_per_s
    latency = Quantiles(num_samples=50, mean_s=p50, p50_s=p50, p90_s=None, p95_s=None, p99_s=None)
    return Measures(
        windows=[Window(start_s=1, duration_s=1, output_tokens=int(tokens_per_s), output_tokens_per_s=tokens_per_s)],
        output_tokens_per_s=tokens_per_s, total_tokens_per_s=tokens_per_s, requests_per_s=1, requests_completed=50,
        ttft=latency, tpot=latency, itl=latency, e2e=latency, mean_input_tokens=40, mean_output_tokens=30, warmup_s=1,
        client_cpu_share=0.01, client_max_lag_s=0.001, server_rss_bytes=None,
    )  # fmt: skip
