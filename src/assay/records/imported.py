"""What another load tester measured, read from its file and put under our definitions where its raw data allows."""

from __future__ import annotations

from typing import Literal, Self, get_args

from pydantic import Field, model_validator

from assay.records.base import Frozen

Format = Literal["vllm", "sglang", "guidellm", "aiperf", "llama-bench"]
LatencyName = Literal["ttft", "tpot", "itl", "e2e"]
Statistic = Literal["mean", "p50", "p90", "p95", "p99"]

FORMATS: tuple[Format, ...] = get_args(Format)
LATENCIES: tuple[LatencyName, ...] = get_args(LatencyName)
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)


class Summary(Frozen):
    """Statistics of one latency. Seconds; None: not told."""

    num_samples: int | None = None
    mean_s: float | None = None
    p50_s: float | None = None
    p90_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    """Below 1,000 samples fewer than ten lie beyond it: `ImportedResult.warnings` says so."""

    def value(self, statistic: Statistic) -> float | None:
        """One of the statistics, seconds."""
        found: float | None = getattr(self, f"{statistic}_s")
        return found


class Compared(Frozen):
    """One statistic, ours beside the tool's own."""

    statistic: Statistic
    ours_s: float
    theirs_s: float
    agrees: bool
    """Whether they are equal to the last digit that such tools print: a hundredth of a millisecond, rounded."""


class ImportedLatency(Frozen):
    """One latency of a run: ours where it could be recomputed, and what the tool said itself."""

    name: LatencyName
    recomputed: bool
    values: Summary | None
    """Recomputed from the file's raw data; None when it has none, and `why_not` says what is missing."""
    definition: str
    """What `values` are, or would be."""
    why_not: str | None = None
    tool_said: Summary | None
    tool_definition: str | None
    """What the tool's own numbers are, under which name of its own; None when it has no such number."""
    comparison: list[Compared] = Field(default_factory=list)
    agrees: bool | None = None
    """Whether all compared statistics agree; None: there is nothing to compare."""

    @model_validator(mode="after")
    def _recomputed_or_why_not(self) -> Self:
        if self.recomputed != (self.values is not None) or self.recomputed == (self.why_not is not None):
            raise ValueError("a recomputed latency has values, any other has why_not")
        return self

    @property
    def shown(self) -> Summary | None:
        """Our values, else the tool's own."""
        return self.values or self.tool_said


class Rates(Frozen):
    """Throughputs, per second; None: not told."""

    requests_per_s: float | None = None
    output_tokens_per_s: float | None = None
    total_tokens_per_s: float | None = None
    goodput_per_s: float | None = None
    """Requests per second that met the tool's own SLOs; never recomputed."""


class Repetitions(Frozen):
    """The same test several times over: llama-bench."""

    what: Literal["prompt tokens/s", "output tokens/s", "tokens/s"]
    """"tokens/s": prompt and output together."""
    values_per_s: list[float]
    mean_per_s: float | None
    sd_per_s: float | None
    """Sample standard deviation; None from one repetition."""
    tool_mean_per_s: float | None
    tool_sd_per_s: float | None
    agrees: bool | None
    """Whether our mean is the tool's; None: one of them is missing."""


class ImportedResult(Frozen):
    """One run of another tool."""

    file: str
    index: int
    """Which run of the file, from 0."""
    kind: Format
    tool: str
    """As one would type it: "vllm bench serve"."""
    tool_version: str | None
    """None: the file does not tell."""
    model: str | None
    settings: dict[str, str | int | float]
    """What the file tells of the load: `rate_per_s` (a number, "inf" or "trace"), `concurrency`, `dataset` ..."""
    num_requests: int | None
    """All that were sent."""
    completed: int | None
    failed: int | None
    duration_s: float | None
    rates: Rates
    """Counts of the file over its duration, whose meaning `warnings` gives."""
    tool_rates: Rates
    latencies: list[ImportedLatency]
    """All four, in the order of `LATENCIES`."""
    repetitions: Repetitions | None = None
    warnings: list[str]
    """What to know before these numbers are set beside others."""

    def latency(self, name: LatencyName) -> ImportedLatency:
        """One of the four."""
        return next(latency for latency in self.latencies if latency.name == name)
