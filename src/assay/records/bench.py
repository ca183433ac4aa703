"""A load test of one server: what is asked of it, and what came of it. For `assay bench` and `assay compare`."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from assay.records.base import Frozen
from assay.records.run import Gate, Quantiles

Endpoint = Literal["chat", "completions"]
StampSource = Literal["kernel", "event-loop"]
"""Where arrival stamps come from: the kernel's receive timestamps, or the moment the event loop read the bytes."""


class Lengths(Frozen):
    """A distribution of token counts; draws are rounded and clipped to [low, high]."""

    kind: Literal["fixed", "uniform", "normal", "lognormal"]
    mean: float = Field(gt=0)
    """Of the distribution before clipping (uniform: the middle)."""
    sd: float = Field(default=0.0, ge=0)
    """Standard deviation in tokens before clipping; normal and lognormal only."""
    low: int = Field(default=1, ge=1)
    high: int = Field(default=1_048_576, ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low = {self.low} is above high = {self.high}")
        return self


class Synthetic(Frozen):
    """Prompts made here: natural text, no shared beginnings unless asked for."""

    kind: Literal["synthetic"] = "synthetic"
    input: Lengths = Lengths(kind="fixed", mean=256)
    """Prompt tokens, the shared prefix not counted."""
    output: Lengths = Lengths(kind="fixed", mean=128)
    prefix_groups: int = Field(default=0, ge=0)
    """Each request opens with the prefix of one of so many groups, drawn at random; 0: none."""
    prefix_tokens: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _prefix_is_whole(self) -> Self:
        if (self.prefix_groups == 0) != (self.prefix_tokens == 0):
            raise ValueError("prefix_groups and prefix_tokens go together: give both or none")
        return self


class Dataset(Frozen):
    """Requests read from a file."""

    kind: Literal["sharegpt", "mooncake", "burstgpt", "azure", "jsonl", "conversations"]
    path: str
    sha256: str = ""
    """Of the file; filled in when it is read."""
    max_requests: int | None = Field(default=None, ge=1)


BenchWorkload = Annotated[Synthetic | Dataset, Field(discriminator="kind")]


class Arrival(Frozen):
    """When requests are due."""

    kind: Literal["closed", "constant", "poisson", "gamma", "trace", "ramp"] = "closed"
    concurrency: int | None = Field(default=None, ge=1, le=65_536)
    """Closed: streams that are always in flight. Open laws: the most in flight at once; None: no limit."""
    rate_per_s: float | None = Field(default=None, gt=0)
    """Open laws: mean requests per second (ramp: at the end). Trace: None keeps the file's own instants, a rate
    rescales them to this mean."""
    start_rate_per_s: float | None = Field(default=None, gt=0)
    """Ramp: requests per second at its beginning."""
    ramp_s: float = Field(default=60.0, gt=0)
    """Ramp: how long the rate rises before it stays."""
    cv: float = Field(default=1.0, gt=0)
    """Gamma: coefficient of variation of the gaps (1 is Poisson, above 1 is bursty)."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needs_rate = self.kind in {"constant", "poisson", "gamma", "ramp"}
        if self.kind == "closed" and (self.concurrency is None or self.rate_per_s is not None):
            raise ValueError("closed-loop arrival wants a concurrency and no rate")
        if needs_rate and self.rate_per_s is None:
            raise ValueError(f"{self.kind} arrival wants rate_per_s")
        if (self.kind == "ramp") != (self.start_rate_per_s is not None):
            raise ValueError("start_rate_per_s belongs to ramp arrival, and ramp arrival wants it")
        return self


class Slo(Frozen):
    """What a good request must keep to; goodput counts those that meet every bound. Seconds."""

    ttft_s: float | None = Field(default=None, gt=0)
    tpot_s: float | None = Field(default=None, gt=0)
    e2e_s: float | None = Field(default=None, gt=0)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked."""
        return self.ttft_s is None and self.tpot_s is None and self.e2e_s is None


class BenchSpec(Frozen):
    """One load test of one server at one operating point."""

    url: str
    """The server's base, without `/v1`."""
    model: str
    endpoint: Endpoint = "completions"
    workload: BenchWorkload = Field(default_factory=Synthetic)
    arrival: Arrival = Field(default_factory=lambda: Arrival(concurrency=8))
    window_s: float = Field(default=10.0, gt=0)
    windows: int = Field(default=3, ge=1)
    warmup_min_s: float = Field(default=2.0, ge=0)
    warmup_max_s: float = Field(default=60.0, gt=0)
    seed: int = 1
    slo: Slo = Field(default_factory=Slo)
    force_length: bool = True
    """Ask for exactly the output length (`ignore_eos`, `min_tokens`); off for servers that refuse such fields."""
    processes: int | None = Field(default=None, ge=1)
    """Load processes; None: from a calibration of this machine."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; the key itself is stored nowhere."""
    extra_body: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """More fields of every request."""
    max_error_share: float = Field(default=0.0, ge=0, lt=1)
    """Share of failed requests up to which a result counts."""
    ceiling_tokens_per_s: float | None = Field(default=None, gt=0)
    """Output tokens per second above which no result can be true; None: no such bound is known."""
    ceiling_source: str | None = None
    """Where the ceiling comes from, in words."""


class Distribution(Frozen):
    """A latency distribution with the interval of each percentile. Seconds."""

    quantiles: Quantiles
    intervals: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """95% interval of "p50", "p90", "p95", "p99": order statistics over requests of this run (within-run only: it says
    nothing about another launch). A percentile without enough samples has none."""
    histogram_edges_s: list[float] = Field(default_factory=list)
    """Edges of the bins, ascending; one more than there are counts."""
    histogram_counts: list[int] = Field(default_factory=list)


class BenchMeasures(Frozen):
    """What was measured in the windows. Definitions: `assay.load.metrics`."""

    duration_s: float
    """Total length of the measured windows."""
    window_tokens_per_s: list[float]
    """Output tokens per second of each window."""
    output_tokens_per_s: float
    total_tokens_per_s: float
    requests_per_s: float
    goodput_per_s: float | None
    """Requests per second that met every SLO; None without SLOs."""
    requests_completed: int
    output_tokens: float
    input_tokens: float
    ttft: Distribution
    ttft_from_intended: Distribution
    """From the instant at which it was due: what a user of an open-loop system feels (coordinated omission)."""
    tpot: Distribution
    itl: Distribution
    """Gaps between chunks, pooled over requests: what a reader of the stream sees."""
    itl_per_token: Distribution
    """The same gaps, each divided by the tokens of its later chunk where the stream tells them, else by the request's
    tokens per chunk; weighted by those tokens."""
    e2e: Distribution
    e2e_from_intended: Distribution
    tokens_per_chunk: float
    mean_input_tokens: float | None
    mean_output_tokens: float | None
    mean_in_flight: float
    max_in_flight: int
    offered_per_s: float | None
    """Requests per second that the arrival law asked for in the windows; None for a closed loop."""
    sent_per_s: float
    """Requests per second that were sent in the windows."""
    arrival_cv: float | None
    """Coefficient of variation of the gaps between actual sends, where the law is open and 10 or more were sent."""


class Client(Frozen):
    """What the measuring cost, and how far it can be believed."""

    processes: int
    stamps: StampSource
    cpu_share: float
    """CPU seconds of all load processes over the measured seconds (2.0: two cores)."""
    busiest_share: float
    """The same of the busiest process: at 1.0 it could take no more."""
    cpu_s_per_million_tokens: float | None
    lag_p50_s: float | None
    """How late the event loop woke."""
    lag_p99_s: float | None
    lag_max_s: float | None
    read_delay_p50_s: float | None = None
    """How long bytes had waited in the socket when they were read, to a millisecond; known with kernel stamps alone."""
    read_delay_p99_s: float | None = None
    schedule_error_p50_s: float | None
    """Actual minus intended send instant."""
    schedule_error_p99_s: float | None
    schedule_error_max_s: float | None
    merged_share: float
    """Share of content chunks that were read together with the one before, and so share its stamp."""
    rss_bytes: int | None
    """Largest resident memory of all load processes together."""
    rss_growth_bytes_per_s: float | None
    ceiling_tokens_per_s: float | None
    """What this many load processes could take from the null server here; None when not calibrated."""
    null_server_tokens_per_s: float | None
    """What the null server could send meanwhile: the ceiling is at most this."""


class SeriesPoint(Frozen):
    """One stretch of the load, warm-up included."""

    at_s: float
    """Middle of the stretch, since the load began."""
    output_tokens_per_s: float
    ttft_p50_s: float | None
    ttft_p99_s: float | None
    itl_p50_s: float | None
    itl_p99_s: float | None
    in_flight: float
    measured: bool
    """Whether it lies in the windows."""


class BenchResult(Frozen):
    """One load test as it ended."""

    spec: BenchSpec
    started_at_ns: int
    """Wall clock, nanoseconds since the epoch."""
    assay_version: str
    engine: str | None
    """What the server says it is ("vllm 0.11.0"); None when it does not say."""
    machine: str
    """The client's machine, in words."""
    measures: BenchMeasures | None
    """None when nothing could be measured; `gates` says why."""
    client: Client
    gates: list[Gate]
    errors: dict[str, int]
    """Failed requests by kind, over warm-up and windows."""
    first_error: str | None
    num_requests: int
    """Requests sent before the drain."""
    series: list[SeriesPoint]
    workload_sha256: str
    """Over the realised requests (index, prompt, output length) in order of index."""
    realised: dict[str, float | None]
    """Of whole requests: `input_tokens_mean`, `input_tokens_p50`, `input_tokens_max`, and the same of output."""
    folder: str
    """Where requests.parquet and the other files lie."""
    left_out: dict[str, int] = Field(default_factory=dict)
    """Requests of the workload's file that were not used, by reason."""
    notes: list[str] = Field(default_factory=list)
    """What was decided for the user, and may have been meant otherwise."""
    windows_ns: tuple[int, int] | None = None
    """Begin and end of the measured windows on the monotonic clock of requests.parquet."""

    @property
    def valid(self) -> bool:
        """Whether the numbers may be used."""
        return self.measures is not None and all(gate.passed for gate in self.gates)


class SweepResult(Frozen):
    """The same test at several loads."""

    points: list[BenchResult]
    knee: int | None
    """Index of the point beyond which latency outgrows throughput (`assay.stats.knee`); None: none found."""
    knee_reason: str


class Side(Frozen):
    """One side of a comparison."""

    label: str
    """"A", "B" ..."""
    target: str
    """The URL, or the launch command as given (secrets masked)."""
    launched: bool
    """Whether we started it."""


class Comparison(Frozen):
    """A against B: the verdict, and what it rests on."""

    sides: list[Side]
    metric: str
    higher_is_better: bool
    values: dict[str, list[float]]
    """Each side's value per valid run, in the order of measuring."""
    invalid: dict[str, list[str]]
    """Each side's runs that do not count, with the reason."""
    effects: dict[str, tuple[float, float, float]]
    """Of each side but the first against it: log ratio, low, high (valid at every look)."""
    verdicts: dict[str, Literal["better", "worse", "same", "undecided"]]
    sentences: dict[str, str]
    """What a person can quote, with the numbers."""
    min_effect: float
    alpha: float
    num_rounds: int

    def percent(self, label: str) -> tuple[float, float, float]:
        """The effect of a side against the first in percent: estimate, low, high."""
        estimate, low, high = (100 * math.expm1(value) for value in self.effects[label])
        return estimate, low, high
