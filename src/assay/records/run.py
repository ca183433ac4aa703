"""One run: its intent, the server it started, what was measured or how it failed."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self

from pydantic import Field, model_validator

from assay.records.base import Flags, Frozen
from assay.records.failure import Cause, Implication, Stage, todays_words
from assay.records.hypothesis import Requantize
from assay.records.soak import Soak


class Purpose(StrEnum):
    """Why a run is made."""

    CALIBRATION = "calibration"
    SEARCH = "search"
    SCREEN = "screen"
    COMPOSITION = "composition"
    ABLATION = "ablation"
    CONFIRMATION = "confirmation"


class Arm(Frozen):
    """A full configuration under test: engine flags, environment and the model file they serve."""

    label: str
    """"baseline", "stack" or the ids of its deltas joined by " + "."""
    flags: Flags
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables that its deltas add to the target's own."""
    artifact: Requantize | None = None
    """Model made from the target's model; None: the target's model itself."""
    deltas: list[str] = Field(default_factory=list)
    """Ids of the optimizations in it."""


class RunIntent(Frozen):
    """Written before anything is started."""

    run_id: str
    purpose: Purpose
    series: str
    """Runs of one series bracket one another in time order: "main", "composition:<id>", "confirmation"."""
    candidate: str | None
    """The hypothesis (or "stack") this run measures; None: the reference arm of its series."""
    arm: Arm
    seed: int
    """Seed of the prompts; neighbours of a bracket share it."""
    attempt: int = 1
    why: str
    """The planner's reason, in one sentence."""
    soak_s: float = 0.0
    """For how long the server is kept at its peak load once everything is measured; 0: it is not."""
    host: str = ""
    """Which machine made it, since its last start (a hash): filled in when the run begins."""
    folder: str = ""
    """Which campaign folder it was made in (device and inode: a copy has another one, a moved folder the same); filled
    in when the run begins, and empty in records of an Assay that did not tell copies apart."""


class ServerIdentity(Frozen):
    """Enough to find, and only ever end, the process we started."""

    pid: int
    create_time: float
    """Start time in seconds since the epoch, as psutil gives it: guards against a reused pid."""
    port: int
    argv: list[str]


class RunStatus(StrEnum):
    """How a run ended.

    Only OK counts; WRONG_OUTPUT may carry measures, to show what the wrong answers would have bought.
    """

    OK = "ok"
    FAILED = "failed"
    NOT_APPLIED = "not-applied"
    WRONG_OUTPUT = "wrong-output"
    INVALID = "invalid"
    ABANDONED = "abandoned"


class Failure(Frozen):
    """Stage and cause of a failed run, the line a good engineer would quote, and what it says of other arms."""

    stage: Stage
    cause: Cause
    line: str
    log: str
    """Path of the log, relative to the campaign."""
    exit_code: int | None = None
    remedy: str = ""
    """What to do, in one sentence."""
    implies: list[Implication] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _in_todays_words(cls, given: Any) -> Any:
        """Records written before stage and cause had one vocabulary are read in it."""
        return {**given, **todays_words(given.get("stage"), given.get("cause"))} if isinstance(given, dict) else given


class Gate(Frozen):
    """One validity check of a run."""

    name: str
    passed: bool
    evidence: str
    remedy: str = ""


class Quantiles(Frozen):
    """A latency distribution over the requests of the measured windows, in seconds."""

    num_samples: int
    mean_s: float | None
    p50_s: float | None
    p90_s: float | None
    p95_s: float | None
    p99_s: float | None
    """None below 1,000 samples: a p99 from fewer is not a p99."""


class Window(Frozen):
    """One measured window."""

    start_s: float
    """Since the load began."""
    duration_s: float
    output_tokens: int
    output_tokens_per_s: float


class Measures(Frozen):
    """What one valid run measured. Definitions: `assay.load.metrics`."""

    windows: list[Window]
    output_tokens_per_s: float
    """Output tokens that arrived in the measured windows over their total length."""
    total_tokens_per_s: float
    """The same, with the prompt tokens of requests whose first content arrived in the windows."""
    requests_per_s: float
    """Requests completed in the windows over their total length."""
    requests_completed: int
    ttft: Quantiles
    tpot: Quantiles
    itl: Quantiles
    e2e: Quantiles
    mean_input_tokens: float | None
    mean_output_tokens: float | None
    warmup_s: float
    client_cpu_share: float
    """Assay's own CPU seconds over the measured seconds: 0.03 is 3% of one core."""
    client_max_lag_s: float
    """Longest delay of the client's event loop in the windows."""
    server_rss_bytes: int | None


class AnswerCheck(Frozen):
    """Next greedy tokens at fixed positions, against the baseline's."""

    probes: int
    agreed: int
    """Positions at which this run chose the token that the reference run chose."""
    under_load_probes: int | None = None
    """Requests of the load whose first content was compared with the reference run's, prompt by prompt."""
    under_load_agreed: int | None = None
    """Those of them that agree."""
    untold: str | None = None
    """Where this comparison tells nothing, because the baseline keeps too little of its own answers, in words; None
    where it does (and for the baseline, and in records of an Assay that did not ask)."""

    @property
    def agreement(self) -> float:
        """Share of positions that agree."""
        return self.agreed / self.probes


class RunOutcome(Frozen):
    """Written once, after the server is gone."""

    run_id: str
    status: RunStatus
    reason: str
    """One sentence: why the status is what it is."""
    duration_s: float
    waited_s: float = 0.0
    """Before it, for a quiet machine: no measuring time, and not in `duration_s`."""
    start_s: float | None = None
    """Launch to ready."""
    measures: Measures | None = None
    points: dict[str, Measures] = Field(default_factory=dict)
    """What the further operating points of the workload measured, by name."""
    soak: Soak | None = None
    """None where none was asked for, or the run ended before it."""
    failure: Failure | None = None
    """Of a run that failed; of one that counts, what its server died of in its soak."""
    gates: list[Gate] = Field(default_factory=list)
    answers: AnswerCheck | None = None
    answer_tokens: list[int] | None = None
    """The tokens themselves (reference runs are compared against)."""
    effective: dict[str, Any] = Field(default_factory=dict)
    """Configuration the server reported, the keys that matter."""
    proofs: dict[str, str] = Field(default_factory=dict)
    """By hypothesis: what the server reported that shows it in force; none where it reports nothing of it."""
    fallbacks: list[str] = Field(default_factory=list)
    """Log lines in which the engine says that it does something else than asked."""
    machine_before: dict[str, float | None] = Field(default_factory=dict)
    machine_after: dict[str, float | None] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _status_decides_what_exists(self) -> Self:
        if self.status is RunStatus.OK and self.measures is None:
            raise ValueError("an ok run needs its measures")
        if self.measures is not None and self.status not in {RunStatus.OK, RunStatus.WRONG_OUTPUT}:
            raise ValueError(f"status {self.status} and measures={'set' if self.measures else 'absent'} contradict")
        if self.status is RunStatus.FAILED and self.failure is None:
            raise ValueError("a failed run needs its failure")
        return self
