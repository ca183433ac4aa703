"""The campaign's question: `assay.toml`, parsed."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from assay.records.base import Flags, Frozen
from assay.records.launch import LaunchPrefix

LatencyName = Literal[
    "ttft_p50_s", "ttft_p90_s", "ttft_p95_s", "ttft_p99_s", "tpot_p50_s", "tpot_p90_s", "tpot_p95_s", "tpot_p99_s",
    "e2e_p50_s", "e2e_p90_s", "e2e_p95_s", "e2e_p99_s",
]  # fmt: skip
RateName = Literal["output_tokens_per_s", "requests_per_s"]
MetricName = Literal[RateName, LatencyName]
MAIN_POINT = "main"
"""The name of the operating point that the workload itself is."""
EMBEDDED = "embedded"
"""The model name (and executable) that stands for the packaged engine and model."""
RANDOM_WEIGHTS = "the weights are random, so agreement tells whether the computation changed, and nothing about quality"
"""What is said wherever answers were compared, and there was nothing to answer with."""


class Target(Frozen):
    """What is optimized: an engine, a model, and the configuration in use today."""

    engine: str = "llamacpp"
    """Engine adapter."""
    model: str = EMBEDDED
    """Path of a GGUF file (llamacpp) or of a model's folder, or a hub name that is in the local cache; for openai
    the name that the server lists. "embedded": the packaged SmolLM2-135M-Instruct."""
    executable: str | None = None
    """The engine's program, or the folder of its Python environment; absent: the one in PATH, for llamacpp else the
    embedded one. "embedded" forces the embedded one."""
    engine_version: str | None = Field(default=None, pattern=r"^[bv]?\d[A-Za-z0-9.+]{0,60}$", examples=["0.5.9"])
    """Of an engine that is somewhere else: whose recorded flags `assay plan --on` and `--machine` take where
    they name none. On the machine itself, the installed one decides."""
    flags: Flags = Field(default_factory=dict)
    """The baseline: flags of today's launch command, in any spelling that the engine takes."""
    env: dict[str, str] = Field(default_factory=dict)
    """Extra environment of the server."""
    start_timeout_s: float = Field(default=300.0, gt=0)
    """How long a launch may take until it is ready."""
    url: str | None = Field(default=None, pattern=r"^https?://[A-Za-z0-9.\[\]:_-]+(?:/[A-Za-z0-9._~/-]*)?$")
    """Of engine = "openai": the server that somebody else runs, as "http://127.0.0.1:8000". It is measured, never
    started, changed or stopped."""
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Of engine = "openai": name of the environment variable that holds the key; the key is stored nowhere."""
    launch: LaunchPrefix | None = None
    """How the launch command is wrapped; absent: a plain process here. For example
    launch = { kind = "docker", image = "lmsysorg/sglang:v0.5.9", gpus = "all", options = ["--ipc", "host"] }"""
    random_weights: bool = False
    """Whether the model's weights are random numbers, as of a model that is made to be timed. Reports then say that
    its answers tell nothing about quality. With the flag --load-format dummy it need not be said. The only key that may
    be set to true after the campaign has begun: no number depends on it."""

    @property
    def has_random_weights(self) -> bool:
        """Declared, or asked of the engine: what vLLM and SGLang load as "dummy" is drawn at random.

        Sources: vLLM, `vllm.config.load.LoadConfig`; SGLang, its page "Model Loading".
        """
        return self.random_weights or self.flags.get("--load-format") == "dummy"

    @model_validator(mode="after")
    def _somebody_elses_server_is_left_alone(self) -> Self:
        if self.engine == "openai":
            if self.url is None:
                raise ValueError('engine = "openai" needs url, for example "http://127.0.0.1:8000"')
            given = [name for name in ("flags", "env", "executable", "launch") if getattr(self, name)]
            if given:
                raise ValueError(f'engine = "openai" launches nothing, so it takes no {", ".join(given)}')
        elif self.url is not None or self.api_key_env is not None:
            raise ValueError(f'url and api_key_env belong to engine = "openai", not to {self.engine!r}')
        return self


class LoadPoint(Frozen):
    """One more operating point: another load that every run plays after the workload's own."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """How it is called in the report: "single-stream", "c64"."""
    concurrency: int = Field(ge=1, le=4096)
    """Streams in flight at any time (closed loop)."""
    input_tokens: tuple[int, int] | None = None
    """Prompt lengths; absent: the workload's."""
    output_tokens: tuple[int, int] | None = None
    """Output lengths; absent: the workload's."""
    weight: float = Field(default=1.0, ge=0)
    """Of its log value in the objective, where the workload's own point has `workload.weight`; 0: shown, not judged."""


class Workload(Frozen):
    """What is asked of the server: closed-loop streams with fresh prompts."""

    concurrency: int = Field(default=8, ge=1, le=4096)
    """Streams in flight at any time (closed loop)."""
    input_tokens: tuple[int, int] = (24, 64)
    """Prompt length, uniform in [low, high] tokens; a shared prefix comes before it and is not counted."""
    shared_prefix_tokens: int = Field(default=0, ge=0, le=1_048_576)
    """Tokens that every prompt opens with, word for word those of other prompts: a system prompt, a template, a
    document that many ask about. 0: no prompt shares anything with another."""
    shared_prefix_groups: int = Field(default=1, ge=1, le=1_048_576)
    """How many different prefixes there are; each request opens with one of them, drawn at random."""
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
    weight: float = Field(default=1.0, gt=0)
    """Of this point's log value in the objective, beside those of `points`."""
    points: list[LoadPoint] = Field(default_factory=list)
    """More operating points, played one after the other in every run: what wins at one load can lose at another. For
    example points = [{ name = "single", concurrency = 1 }, { name = "c64", concurrency = 64 }]"""

    @model_validator(mode="after")
    def _ranges_are_ordered(self) -> Self:
        holders: list[Workload | LoadPoint] = [self, *self.points]
        for holder in holders:
            for name, lengths in (("input_tokens", holder.input_tokens), ("output_tokens", holder.output_tokens)):
                if lengths is not None and not 1 <= lengths[0] <= lengths[1]:
                    raise ValueError(f"{name} = [{lengths[0]}, {lengths[1]}]: want 1 <= low <= high")
        names = [MAIN_POINT, *(point.name for point in self.points)]
        if len(set(names)) < len(names):
            raise ValueError(f"operating points {', '.join(names)}: each needs a name of its own")
        if self.warmup_max_s < self.warmup_min_s:
            raise ValueError(f"warmup_max_s = {self.warmup_max_s} is below warmup_min_s = {self.warmup_min_s}")
        return self

    def contradictions(self) -> dict[str, str]:
        """What it asks that cannot be, by key; as `Budget.contradictions`, for new questions only."""
        if self.shared_prefix_tokens or self.shared_prefix_groups == 1:
            return {}
        return {
            "shared_prefix_groups": f"{self.shared_prefix_groups} prefixes of no tokens: "
            "give shared_prefix_tokens, or leave shared_prefix_groups out"
        }

    @property
    def least_load_s(self) -> float:
        """Load of one run at the least: warm-up and windows of every operating point."""
        return (1 + len(self.points)) * (self.warmup_min_s + self.windows * self.window_s)

    @property
    def prompt_tokens(self) -> tuple[int, int]:
        """Length of whole prompts, [low, high] tokens: the shared prefix and what is each one's own."""
        low, high = self.input_tokens
        return low + self.shared_prefix_tokens, high + self.shared_prefix_tokens

    @property
    def shared_share(self) -> float:
        """Share of all prompt tokens that is shared: `prefix / (prefix + mean own)`."""
        return self.shared_prefix_tokens / (self.shared_prefix_tokens + sum(self.input_tokens) / 2)

    def at(self, point: LoadPoint) -> Workload:
        """The workload of one of its further points."""
        changes = {
            "concurrency": point.concurrency,
            "input_tokens": point.input_tokens or self.input_tokens,
            "output_tokens": point.output_tokens or self.output_tokens,
            "points": [],
        }
        return self.model_copy(update=changes)


class Constraint(Frozen):
    """A latency that whatever is adopted must keep to."""

    metric: LatencyName
    max_s: float = Field(gt=0)
    """Seconds."""
    point: str = MAIN_POINT
    """At which operating point."""


class Objective(Frozen):
    """What counts as better, and from how much on it matters.

    With several operating points, the weighted mean of their log ratios is judged.
    """

    metric: MetricName = "output_tokens_per_s"
    """Metric that is judged; throughputs are maximized, latencies minimized."""
    min_effect: float = Field(default=0.05, gt=0, lt=1)
    """Smallest relative effect worth adopting, as 0.05 or "5%"; "no-effect" means: the interval lies within plus or
    minus this."""
    max_loss: float | None = Field(default=None, ge=0, lt=1, examples=[0.02])
    """Largest relative loss at any single operating point that may be adopted, as 0.02 or "2%": the interval there has
    to exclude a larger one, else more pairs are made. Set below the noise of a few pairs, it lets little pass; absent:
    only the mean counts."""
    constraints: list[Constraint] = Field(default_factory=list)
    """Service levels: adopted is only what is shown to keep to them. For example
    constraints = [{ metric = "ttft_p95_s", max_s = 0.5 }]"""

    @field_validator("min_effect", "max_loss", mode="before")
    @classmethod
    def _percent(cls, value: Any) -> Any:
        """`"2%"` is 0.02, as on the command line; what else is a text stays one, and is refused."""
        if not isinstance(value, str) or not value.endswith("%"):
            return value
        try:
            return float(value.removesuffix("%")) / 100
        except ValueError:
            return value


class Budget(Frozen):
    """How much may be spent."""

    total_s: float = Field(default=3600.0, gt=0)
    """Measuring time of the whole campaign. Runs whose gates failed are counted apart; where those of one session take
    as long again, it stops."""
    calibration_brackets: int = Field(default=4, ge=2)
    """A/A brackets (baseline against itself) before the first trial."""
    block: int = Field(default=4, ge=1, le=4)
    """Candidates between two baseline runs of the screen. More of them share it, and lie further from it in time."""
    min_brackets: int = Field(default=2, ge=1)
    """Fewest brackets before any verdict on a measured effect: one disturbed run must not decide by itself."""
    max_brackets: int = Field(default=6, ge=1)
    """Most brackets of one candidate in the screen."""
    composition_brackets: int = Field(default=6, ge=1)
    """Most brackets of one candidate when it is tested again on the stack."""
    confirmation_brackets: int = Field(default=6, ge=2)
    """Brackets of the final stack against the baseline, on fresh runs."""
    soak_s: float = Field(default=60.0, ge=0)
    """For how long what is about to be adopted is kept at its peak load (the operating point with most tokens in
    flight), in a run that is made anyway: no more crashes, failed requests or growing memory than what it stands on,
    which is then soaked too. Not begun without the time of both beside the confirmation. 0: nothing is soaked."""

    def contradictions(self) -> dict[str, str]:
        """What it asks that cannot be, by key; a new question is refused for it.

        No validator of this type: an earlier Assay took the smaller number, and its records must stay readable.
        """
        most = {"max_brackets": self.max_brackets, "composition_brackets": self.composition_brackets}
        name, fewest = min(most.items(), key=lambda item: item[1])
        if self.min_brackets <= fewest:
            return {}
        return {
            "min_brackets": f"{self.min_brackets} brackets are wanted before any verdict, and {name} allows {fewest}: "
            f"raise {name}, or set min_brackets = {fewest}"
            + (" (one disturbed run may then decide by itself)" if fewest == 1 else "")
        }


class Statistics(Frozen):
    """Error rates, declared before anything is measured."""

    screen_alpha: float = Field(default=0.10, gt=0, lt=0.5)
    """Two-sided error rate of each candidate's screening interval, over all its looks."""
    adopt_alpha: float = Field(default=0.05, gt=0, lt=0.5)
    """Chance that the campaign adopts anything useless: shared out over the candidates that reach composition."""
    give_up_below: float = Field(default=0.10, ge=0, lt=0.5)
    """A trial ends as undecided when the chance that its remaining brackets show a gain worth having is below this,
    as predicted from those made; 0: never. It saves runs, and cannot make anything useless be adopted."""
    confirm_alpha: float = Field(default=0.05, gt=0, lt=0.5)
    """Two-sided error rate of the headline interval (one look)."""


class Quality(Frozen):
    """What "same answer" means here."""

    probes: int = Field(default=48, ge=8, le=128)
    """Positions in fixed texts at which the next greedy token is compared (teacher-forced: no compounding)."""
    min_agreement: float = Field(default=0.90, gt=0, le=1)
    """Share that an optimization declared *reordered* or *approximate* must keep, of the next tokens that the baseline
    itself keeps from run to run."""
    alpha: float = Field(default=0.01, gt=0, lt=0.5)
    """Error rate of both tests: an *exact* optimization disagrees more than the baseline with itself; the share that an
    other one keeps is below the floor."""


class Gates(Frozen):
    """What may go on beside a run for it still to count."""

    max_foreign_cores: float = Field(default=0.10, gt=0)
    """CPU of other processes, in cores. Engine threads spin at barriers, so one busy neighbour stalls all of them."""
    max_steal_share: float = Field(default=0.05, gt=0, le=1)
    """Share of CPU time that the hypervisor gives to others."""
    max_memory_growth_per_hour: float = Field(default=0.10, gt=0)
    """Of a server's memory under a soak, as a share of what it held: beyond it, and beyond what an allocator takes at
    once (2 MiB), what is shown to grow and does not level off is a leak."""


class Policy(Frozen):
    """What may be done without asking."""

    ask_before_tier: int = Field(default=4, ge=1, le=4)
    """Stop with exit code 3 before hypotheses of this tier and above, until their document says `approved: true`."""
    catalogue: list[str] = Field(default_factory=list)
    """More folders of catalogue entries (TOML), relative to the campaign."""
    search_dials: bool = False
    """Whether knobs (threads, batch limits ...) are searched for their best setting: up to 30 runs for each entry."""
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

    def contradictions(self) -> dict[tuple[str, str], str]:
        """What it asks that cannot be, by table and key; a new question is refused for it."""
        tables = {"workload": self.workload.contradictions(), "budget": self.budget.contradictions()}
        return {(table, key): problem for table, found in tables.items() for key, problem in found.items()}

    @model_validator(mode="after")
    def _constraints_name_points_that_exist(self) -> Self:
        points = {MAIN_POINT, *(point.name for point in self.workload.points)}
        for constraint in self.objective.constraints:
            if constraint.point not in points:
                raise ValueError(f"a constraint names the point {constraint.point!r}; there are {sorted(points)}")
        return self
