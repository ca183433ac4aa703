"""The hidden truth of a simulated machine and engine, as a TOML file: launch times, noise, flags and what they do.

    seed = 1
    [launch]
    weights_s = 36
    [noise]
    run_sd = 0.006
    [[flags]]
    name = "--enable-mscclpp"
    help = "MSCCL++ for small all-reduces."
    [[flags.truth]]
    ops = ["all_reduce"]
    factor = 0.85
    max_message_bytes = 1048576

Times are seconds of the simulated world; the server divides them by its time scale. Nobody but the server reads it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from assay.errors import UsageError
from assay.records.base import FlagValue, Frozen
from assay.records.estimate import Phase

FaultKind = Literal[
    "rejects",
    "fails-load",
    "fails-kv-allocation",
    "fails-graph-capture",
    "oom-under-load",
    "crash",
    "hang",
    "leak",
    "wrong-answers",
    "ignored",
    "fallback",
    "in-band-errors",
    "stall",
]
"""rejects: refused while the command line is read. fails-*: ends at that stage of the launch. oom-under-load: ends
when `running` sequences run. crash: ends at the `after_requests`-th request. hang: computes nothing from then on, until
its own watchdog ends it. leak: memory really grows with each request, up to a bound, where it is killed. wrong-answers:
other greedy tokens for a share of the prompts. ignored: accepted, and not in the effective configuration. fallback:
only a line of the log says that something else is done. in-band-errors: a share of the streams ends in an error event.
stall: stands still for a while, again and again."""


class Fault(Frozen):
    """What goes wrong with a flag."""

    kind: FaultKind
    line: str = ""
    """What the server's log says of it (several lines may be given); there is a plain default for each kind."""
    after_requests: int = Field(default=8, ge=1)
    """crash, hang: the request at which it happens."""
    running: int = Field(default=1, ge=1)
    """oom-under-load: sequences running at once."""
    rate: float = Field(default=0.5, ge=0, le=1)
    """wrong-answers: share of prompts; in-band-errors: share of streamed requests."""
    every_s: float = Field(default=60.0, gt=0)
    """stall: from one to the next."""
    duration_s: float = Field(default=30.0, gt=0)
    """stall: length."""
    leak_bytes: int = Field(default=2**20, ge=1)
    """leak: of each request."""
    leak_limit_bytes: int = Field(default=2**27, ge=1, le=2**29)
    """leak: where it is killed. Bounded, because the memory is really taken."""


class Truth(Frozen):
    """What a flag does, in some regime. Effects of several truths and flags multiply."""

    value: FlagValue | None = None
    """The value of which this is true; absent: any but the default."""
    phase: Phase | None = None
    """Only in decode or only in prefill."""
    sequences: tuple[int, int] = (1, 1_000_000)
    """Only with so many sequences in the step, both ends included."""
    gain: float = Field(default=0.0, gt=-1)
    """Relative change of the whole step's speed: 0.02 takes 1/1.02 of the time."""
    ops: list[str] = Field(default_factory=list)
    """Operations of the roofline (name, its first word, part, or collective) whose expected time is multiplied."""
    factor: float = Field(default=1.0, gt=0)
    max_message_bytes: float | None = None
    """Of these, only communication with messages up to this size."""
    fault: Fault | None = None


class KnownFlag(Frozen):
    """A flag of the simulated engine, as its help shows it, and the truth that the help does not show."""

    name: str = Field(pattern=r"^--[a-z][a-z0-9-]*$")
    help: str = ""
    value: str | None = None
    """Placeholder of its value; absent: a switch."""
    choices: list[str] = Field(default_factory=list)
    default: FlagValue | None = None
    truth: list[Truth] = Field(default_factory=list)

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value."""
        return self.value is None and not self.choices

    @property
    def key(self) -> str:
        """Its name in the effective configuration."""
        return self.name.removeprefix("--").replace("-", "_")


class Launch(Frozen):
    """How long the stages of a launch take."""

    weights_s: float = Field(default=20.0, ge=0)
    memory_s: float = Field(default=5.0, ge=0)
    capture_s: float = Field(default=15.0, ge=0)


class NoiseSpec(Frozen):
    """How the same configuration differs from itself. Log-normal: 0.01 is about 1%."""

    run_sd: float = Field(default=0.01, ge=0, le=0.5)
    """Between launches."""
    step_sd: float = Field(default=0.01, ge=0, le=0.5)
    """Within a launch, stationary, autocorrelated."""
    correlation_s: float = Field(default=20.0, gt=0)
    """Time after which the autocorrelation within a launch has fallen to 1/e."""
    drift_per_hour: float = 0.0
    """Of the log of the speed, since the world's epoch."""
    drift_limit: float = Field(default=0.05, ge=0)
    """The drift turns around at plus and minus this much."""
    throttle: float = Field(default=0.0, ge=0, lt=0.9)
    """Share of the speed that is lost when hot."""
    heating_s: float = Field(default=300.0, gt=0)
    """Time constant of heating up under load and of cooling down."""
    disagreement: float = Field(default=0.005, ge=0, le=0.5)
    """Share of first tokens that come out otherwise when other sequences share the batch."""


class WorldFile(Frozen):
    """A simulated machine and engine."""

    title: str = "a world without a name"
    seed: int = 1
    epoch_s: float | None = None
    """Unix time at which its drift is zero; absent: when the campaign was created, else when the server starts."""
    launch: Launch = Field(default_factory=Launch)
    noise: NoiseSpec = Field(default_factory=NoiseSpec)
    flags: list[KnownFlag] = Field(default_factory=list)


def read_world(path: Path | None) -> WorldFile:
    """Read a world; without a file, one in which flags do what physics says and nothing else.

    Raises:
        UsageError: there is no such file, or it does not describe a world.
    """
    if path is None:
        return WorldFile()
    hint = "give its full path, or start in its folder; docs/rehearsal.md shows a whole one"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"the world file {path} cannot be read: {error}", hint=hint) from error
    try:
        return WorldFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"the world file {path}: {place}: {first['msg']}", hint="see docs/rehearsal.md") from error
