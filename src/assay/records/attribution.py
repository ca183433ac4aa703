"""Where the time of a measured run went: floor, what kernels lose, what happens between them, and what nobody explains.

>>> Part(cause="queueing", seconds=0.2, basis="measured", evidence="the server's histogram").seconds
0.2
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.records.base import Frozen
from assay.records.ceilings import Ceilings, GpuCeilings
from assay.records.estimate import MechanismCeiling, StepEstimate
from assay.records.held_load import HeldLoad, MeasuredLoad
from assay.records.traced_step import HeldStep, TracedSteps

Cause = Literal[
    "floor",
    "kernels",
    "launch gaps",
    "communication",
    "scheduling, CPU",
    "prefill in between",
    "queueing",
    "client",
    "unexplained",
]
"""floor: what the roofline says cannot be undercut. kernels: they run longer than their floor. launch gaps: short times
with no kernel between two. communication: collectives that nothing overlaps. scheduling, CPU: longer times with no
kernel, the host at work. prefill in between: prompts of other requests, between two decode steps or in them. queueing:
requests wait for their turn. client: bytes wait to be read, or requests are sent late."""
PartBasis = Literal["measured", "predicted", "rest"]
"""measured on this run; predicted by the roofline; what is left over."""


class Part(Frozen):
    """One cause's part of a time."""

    cause: Cause
    seconds: float
    basis: PartBasis
    evidence: str
    """What says so, with the numbers."""


class Attribution(Frozen):
    """A measured time, split; the parts sum up to it."""

    what: str
    """`time per output token`, `time to first token`."""
    measured_s: float
    floor_s: float | None
    """None: without a model and ceilings there is none."""
    parts: list[Part]
    notes: list[str] = Field(default_factory=list)

    def share(self, part: Part) -> float:
        """Of the measured time."""
        return part.seconds / self.measured_s if self.measured_s > 0 else 0.0


class KernelTime(Frozen):
    """One kernel in a trace."""

    name: str
    seconds: float
    calls: int


class TraceFacts(Frozen):
    """A profiler's trace of an engine, as times of one device (the mean over devices)."""

    tool: Literal["torch-profiler", "nsys"]
    file: str
    devices: int
    device_name: str = ""
    span_s: float = Field(gt=0)
    """From the first kernel to the end of the last."""
    kernels_s: float
    """At least one kernel or copy ran that is no communication."""
    communication_s: float
    """Communication ran, and nothing else."""
    overlapped_s: float
    """Communication ran beside something else: in `kernels_s`."""
    launch_gaps_s: float
    """Nothing ran, for a moment shorter than `gap_limit_s`."""
    idle_s: float
    """Nothing ran, for longer."""
    gap_limit_s: float
    num_kernels: int
    """Of all devices."""
    top: list[KernelTime]
    """Longest first, over all devices."""
    decode: TracedSteps | None = None
    """Its decode steps, operation by operation, on the device with the most kernels; None where none is told apart."""
    notes: list[str] = Field(default_factory=list)


class ServerTimes(Frozen):
    """What a server's own counters say: means since it started, or over a watched stretch; None where it has none."""

    engine: str
    watched_s: float | None
    """Stretch that the means are of; None: since the server started."""
    requests: float | None = None
    queue_s: float | None = None
    """Mean wait of a request before it was taken up."""
    prefill_s: float | None = None
    """Mean time of a request in prefill."""
    ttft_s: float | None = None
    tpot_s: float | None = None
    """Mean time per output token after the first."""
    running: float | None = None
    """Requests in a decode step, mean."""
    waiting: float | None = None
    """Requests that wait, now."""
    steps: float | None = None
    """Decode steps."""
    output_tokens_per_s: float | None = None
    input_tokens: float | None = None
    """Mean prompt."""
    output_tokens: float | None = None
    """Mean answer."""
    preemptions: float | None = None


class MeasuredRun(Frozen):
    """What is known of a run that is to be explained; None where it was not measured."""

    source: str
    """The run, the file or the server."""
    sequences: float | None
    """Requests in a decode step, mean: those in flight, as far as the server has room for them."""
    in_flight: float | None = None
    """Requests in flight, mean (the concurrency of a closed loop)."""
    output_tokens_per_s: float | None = None
    tpot_s: float | None = None
    gap_s: float | None = None
    """Median gap between two tokens of a stream: a decode step, as long as most steps hold no prompts."""
    ttft_s: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    threads: int | None = None
    """That a CPU engine computed with."""
    client_lag_s: float | None = None
    """How late the client read, typically; in every TTFT, and not in the time between tokens."""
    requests_per_s: float | None = None
    loads: list[MeasuredLoad] = Field(default_factory=list)
    """Its operating points, with the time per token measured at each."""
    engine: str | None = None
    """What a load test's server said that it is ("vllm 0.26.0"); a campaign's run has its flags as well, elsewhere."""
    shares_steps: bool = False
    """The engine computes prompts in the steps of decode."""
    step_tokens: int | None = None
    """Tokens of prompts that it computes in a step at most; None: not told."""
    notes: list[str] = Field(default_factory=list)


class Efficiency(Frozen):
    """How much of the machine a measured decode used."""

    tokens_per_s: float
    mbu: float
    """Model bandwidth utilization: bytes that a step must move / step time / best measured (or stated) bandwidth."""
    mfu: float
    """Model FLOP utilization: operations that a token needs * tokens/s / best rate of arithmetic."""
    ceiling_share: float
    """Measured over the ceiling of this operating point."""


class Characterization(Frozen):
    """The answer of `assay characterize`."""

    machine: str
    ceilings: Ceilings | None = None
    gpu_ceilings: GpuCeilings | None = None
    threads: int | None = None
    """Of the estimates, for CPUs."""
    model: str | None = None
    model_facts: dict[str, str | float | int] = Field(default_factory=dict)
    """Parameters, bytes, cache: names with units."""
    points: list[StepEstimate] = Field(default_factory=list)
    memory_floors_s: list[float] = Field(default_factory=list)
    """Of each point, where kernels are the ceiling: its time if only memory traffic counted."""
    mechanisms: list[MechanismCeiling] = Field(default_factory=list)
    run: MeasuredRun | None = None
    run_point: StepEstimate | None = None
    """The roofline at the run's own operating point."""
    efficiency: Efficiency | None = None
    server: ServerTimes | None = None
    trace: TraceFacts | None = None
    held: HeldStep | None = None
    """The estimate held against the decode steps of the trace, operation by operation."""
    held_loads: list[HeldLoad] = Field(default_factory=list)
    """The estimate held against the run, operating point by operating point."""
    attributions: list[Attribution] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
