"""The question of `assay compare`: what is judged, how sure it must be, and on which load."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from assay.records.base import Frozen
from assay.records.bench import Arrival, BenchWorkload, Endpoint, Synthetic
from assay.records.spec import RateName

CompareMetric = Literal[
    RateName, "total_tokens_per_s", "ttft_p50_s", "tpot_p50_s", "itl_p50_s", "e2e_p50_s",
    "ttft_p99_s", "tpot_p99_s", "itl_p99_s", "e2e_p99_s",
]  # fmt: skip


class CompareQuestion(Frozen):
    """What is asked of two or more sides; the first is the one that the others are held against."""

    metric: CompareMetric = "output_tokens_per_s"
    """Throughputs are better higher, latencies lower."""
    min_effect: float = Field(default=0.05, gt=0, lt=1)
    """Relative difference below which two sides are the same."""
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    """Chance that any interval of the comparison misses, over all sides and looks."""
    min_rounds: int = Field(default=3, ge=1)
    """Fewest rounds before a verdict: two runs that happen to agree make a machine look quieter than it is."""
    max_rounds: int = Field(default=10, ge=1)
    """Most rounds; a side that is still open then is undecided. In a round every side is measured once."""
    workload: BenchWorkload = Field(default_factory=Synthetic)
    arrival: Arrival = Field(default_factory=lambda: Arrival(concurrency=8))
    endpoint: Endpoint = "completions"
    model: str | None = None
    """What requests put into `model`; None: whatever each side serves."""
    window_s: float = Field(default=5.0, gt=0)
    windows: int = Field(default=3, ge=1)
    warmup_min_s: float = Field(default=2.0, ge=0)
    """Shortest warm-up of a run."""
    warmup_max_s: float = Field(default=60.0, gt=0)
    seed: int = 1
    start_timeout_s: float = Field(default=600.0, gt=0)
    """How long a launched side may take until it serves."""
    max_foreign_cores: float = Field(default=0.10, gt=0)
    """CPU of other processes beside a server that we launched, in cores, up to which a run counts."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key."""
    labels: list[str] = Field(default_factory=list)
    """One for each side; empty: A, B, C ..."""

    @model_validator(mode="after")
    def _rounds_are_ordered(self) -> Self:
        if self.max_rounds < self.min_rounds:
            raise ValueError(f"max_rounds = {self.max_rounds} is below min_rounds = {self.min_rounds}")
        return self
