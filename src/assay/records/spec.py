"""The campaign's question: `assay.toml`, parsed."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from assay.records.base import Flags, Frozen

MetricName = Literal["output_tokens_per_s", "requests_per_s", "ttft_p50_s", "tpot_p50_s", "e2e_p50_s"]
EMBEDDED = "embedded"
"""The model name (and executable) that stands for the packaged engine and model."""


class Target(Frozen):
    """What is optimized: an engine, a model, and the configuration in use today."""

    engine: str = "llamacpp"
    """Engine adapter."""
    model: str = EMBEDDED
    """Path of a GGUF file, or "embedded" for the packaged SmolLM2-135M-Instruct."""
    executable: str | None = None
    """The engine's program; absent: the one in PATH, else the embedded one. "embedded" forces the embedded one."""
    flags: Flags = Field(default_factory=dict)
    """The baseline: flags of today's launch command, spelled as the engine spells them."""
    env: dict[str, str] = Field(default_factory=dict)
    """Extra environment of the server."""
    start_timeout_s: float = Field(default=300.0, gt=0)
    """How long a launch may take until it is ready."""


class Workload(Frozen):
    """What is asked of the server: closed-loop streams with fresh prompts."""

    concurrency: int = Field(default=8, ge=1, le=4096)
    """Streams in flight at any time (closed loop)."""
    input_tokens: tuple[int, int] = (24, 64)
    """Prompt length, uniform in [low, high] tokens."""
    output_tokens: tuple[int, int] = (16, 48)
    """Forced output length, uniform in [low, high] tokens."""
    window_s: float = Field(default=1.5, gt=0)
    """Length of one measured window."""
    windows: int = Field(default=3, ge=2)
    """Measured windows a run."""
    warmup_min_s: float = Field(default=1.0, ge=0)
    """Shortest warm-up."""
    warmup_max_s: float = Field(default=6.0, gt=0)
    """Longest warm-up; a run that is not steady by then is invalid."""
    seed: int = 1
    """Root of every random choice: prompts, lengths, trial order."""

    @model_validator(mode="after")
    def _ranges_are_ordered(self) -> Self:
        for name, (low, high) in (("input_tokens", self.input_tokens), ("output_tokens", self.output_tokens)):
            if not 1 <= low <= high:
                raise ValueError(f"{name} = [{low}, {high}]: want 1 <= low <= high")
        if self.warmup_max_s < self.warmup_min_s:
            raise ValueError(f"warmup_max_s = {self.warmup_max_s} is below warmup_min_s = {self.warmup_min_s}")
        return self


class Objective(Frozen):
    """What counts as better, and from how much on it matters."""

    metric: MetricName = "output_tokens_per_s"
    """Metric that is judged; throughputs are maximized, latencies minimized."""
    min_effect: float = Field(default=0.05, gt=0, lt=1)
    """Smallest relative effect worth adopting; "no-effect" means: the interval lies within plus or minus this."""


class Budget(Frozen):
    """How much may be spent."""

    total_s: float = Field(default=3600.0, gt=0)
    """Measuring time of the whole campaign."""
    calibration_brackets: int = Field(default=4, ge=2)
    """A/A brackets (baseline against itself) before the first trial."""
    block: int = Field(default=2, ge=1, le=4)
    """Candidates between two baseline runs of the screen. More of them share it, and lie further from it in time."""
    min_brackets: int = Field(default=2, ge=1)
    """Fewest brackets before any verdict on a measured effect: one disturbed run must not decide by itself."""
    max_brackets: int = Field(default=6, ge=1)
    """Most brackets of one candidate in the screen."""
    composition_brackets: int = Field(default=6, ge=1)
    """Most brackets of one candidate when it is tested again on the stack."""
    confirmation_brackets: int = Field(default=6, ge=2)
    """Brackets of the final stack against the baseline, on fresh runs."""


class Statistics(Frozen):
    """Error rates, declared before anything is measured."""

    screen_alpha: float = Field(default=0.10, gt=0, lt=0.5)
    """Two-sided error rate of each candidate's screening interval, over all its looks."""
    adopt_alpha: float = Field(default=0.05, gt=0, lt=0.5)
    """Chance that the campaign adopts anything useless: shared out over the candidates that reach composition."""
    confirm_alpha: float = Field(default=0.05, gt=0, lt=0.5)
    """Two-sided error rate of the headline interval (one look)."""


class Quality(Frozen):
    """What "same answer" means here."""

    probes: int = Field(default=48, ge=8, le=128)
    """Positions in fixed texts at which the next greedy token is compared (teacher-forced: no compounding)."""
    min_agreement: float = Field(default=0.90, gt=0, le=1)
    """Share of next tokens that an optimization declared *reordered* or *approximate* must keep."""
    alpha: float = Field(default=0.01, gt=0, lt=0.5)
    """Error rate of both tests: an *exact* optimization disagrees more than the baseline with itself; the share that an
    other one keeps is below the floor."""


class Gates(Frozen):
    """What may go on beside a run for it still to count."""

    max_foreign_cores: float = Field(default=0.10, gt=0)
    """CPU of other processes, in cores. Engine threads spin at barriers, so one busy neighbour stalls all of them."""
    max_steal_share: float = Field(default=0.05, gt=0, le=1)
    """Share of CPU time that the hypervisor gives to others."""


class Policy(Frozen):
    """What may be done without asking."""

    ask_before_tier: int = Field(default=4, ge=1, le=4)
    """Stop with exit code 3 before hypotheses of this tier and above, until their document says `approved: true`."""
    catalogue: list[str] = Field(default_factory=list)
    """More folders of catalogue entries (TOML), relative to the campaign."""
    only: list[str] = Field(default_factory=list)
    """Only these optimization ids; empty: all that apply."""
    builtin_catalogue: bool = True
    """Whether Assay's own entries are used."""


class CampaignSpec(Frozen):
    """One question about one target."""

    name: str = "campaign"
    target: Target = Field(default_factory=Target)
    workload: Workload = Field(default_factory=Workload)
    objective: Objective = Field(default_factory=Objective)
    budget: Budget = Field(default_factory=Budget)
    statistics: Statistics = Field(default_factory=Statistics)
    quality: Quality = Field(default_factory=Quality)
    gates: Gates = Field(default_factory=Gates)
    policy: Policy = Field(default_factory=Policy)
