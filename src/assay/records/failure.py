"""Why a server failed, as its log tells it: stage, cause, the line to quote, what to do, what follows for others.

>>> Explanation(stage="under-load", cause=Cause.HANG, certainty="stated", quote="watchdog", line=7).is_explained
True
>>> Explanation(stage="load", cause=Cause.UNKNOWN).is_explained
False
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from assay.records.base import Frozen

Stage = Literal[
    "artifact",
    "arguments",
    "load",
    "weights",
    "compile",
    "graph-capture",
    "kv-cache",
    "warm-up",
    "under-load",
    "shutdown",
    "unknown",
]
"""How far it came: making a model file before any launch; imports and flags; processes, devices and configuration;
weights; kernels and torch.compile; CUDA graphs; the cache's allocation; profiling and first steps; requests; the end.
Unknown where nothing tells."""


class Cause(StrEnum):
    """What went wrong first. One word each; what they mean and what to do is in data/failures/causes.toml."""

    UNKNOWN_FLAG = "unknown-flag"
    BAD_VALUE = "bad-value"
    INCOMPATIBLE = "incompatible-combination"
    UNSUPPORTED_ARCHITECTURE = "unsupported-architecture"
    UNSUPPORTED_MODEL = "unsupported-model-architecture"
    MISSING_DEPENDENCY = "missing-dependency"
    JIT_COMPILE = "jit-compile-failure"
    GRAPH_BREAK = "graph-break"
    OOM_AT_LOAD = "oom-at-load"
    OOM_AT_CAPTURE = "oom-at-capture"
    OOM_UNDER_LOAD = "oom-under-load"
    HOST_OOM = "host-oom"
    KV_CACHE_TOO_SMALL = "kv-cache-too-small"
    COMMUNICATION = "communication"
    ILLEGAL_ACCESS = "illegal-memory-access"
    HANG = "hang"
    PORT_IN_USE = "port-in-use"
    MODEL_NOT_FOUND = "model-not-found"
    MODEL_CORRUPT = "model-corrupt"
    MISSING_WEIGHTS = "missing-weights"
    WEIGHT_SHAPE = "weight-shape-mismatch"
    TOKENIZER = "tokenizer-template"
    DRIVER_MISMATCH = "driver-mismatch"
    MEMORY_LOCK_LIMIT = "memory-lock-limit"
    ENGINE_ASSERTION = "engine-assertion"
    KERNEL_ASSERTION = "kernel-assertion"
    WORKSPACE_TOO_SMALL = "workspace-too-small"
    DISK_FULL = "disk-full"
    ILLEGAL_INSTRUCTION = "illegal-instruction"
    KILLED = "killed"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    """Not ready in the time it was given, and its log does not say why."""
    REQUESTS_REFUSED = "requests-refused"
    """It serves, and refused what it was asked."""
    ARTIFACT = "artifact"
    """A model file could not be made of the target's."""
    UNKNOWN = "unknown"
    NONE = "none"
    """Nothing failed: it served, and was stopped."""


Direction = Literal["above", "below", "same"]
"""Which other values of a knob must fail the same way."""
Certainty = Literal["stated", "inferred", "none"]
"""`stated`: the log says it. `inferred`: the log stops short of saying it, and where it stopped, or the exit status,
points to it. `none`: it cannot be told."""


OLD_CAUSES = {
    "incompatible": Cause.INCOMPATIBLE,
    "oom": Cause.OOM_AT_LOAD,
    "illegal-access": Cause.ILLEGAL_ACCESS,
    "compile": Cause.JIT_COMPILE,
}
"""Words that runs were recorded with before there was one vocabulary."""


def todays_words(stage: Any, cause: Any) -> dict[str, Any]:
    """Stage and cause of an older record in today's words; today's own stay as they are.

    >>> todays_words("under-load", "oom")
    {'stage': 'under-load', 'cause': <Cause.OOM_UNDER_LOAD: 'oom-under-load'>}
    """
    if stage == "ready":
        stage = "under-load" if cause == Cause.REQUESTS_REFUSED else "load"
    if cause == "oom" and stage == "under-load":
        cause = Cause.OOM_UNDER_LOAD
    return {"stage": stage, "cause": OLD_CAUSES.get(cause, cause) if isinstance(cause, str) else cause}


class Implication(Frozen):
    """What one failure says about arms that were not tried."""

    scope: Literal["value", "flag", "combination", "family", "backend", "machine", "model", "arm"]
    """What must fail the same way: values of a knob, every arm with the flag or combination, every model of the
    architecture, every arm with the backend, every arm on this machine or of this model, or this arm alone."""
    text: str
    """As a sentence, with the values."""
    knob: str | None = None
    """The quantity or flag, where there is one: `max_model_len`, `--omni`."""
    direction: Direction | None = None
    value: str | None = None
    """As the log wrote it."""


class LogLine(Frozen):
    """A line and where it is."""

    number: int = Field(ge=1)
    text: str


class Explanation(Frozen):
    """What a log says about a failure."""

    stage: Stage
    cause: Cause
    certainty: Certainty = "none"
    quote: str | None = None
    """The line that a good engineer would quote; None: the log has none."""
    line: int | None = Field(default=None, ge=1)
    """Its number in the file, the first is 1."""
    file: str | None = None
    around: list[LogLine] = Field(default_factory=list)
    """Up to three lines before it, it, and up to three after it."""
    meaning: str = ""
    """The cause in a few words."""
    remedy: str = ""
    """What to do, in one sentence, with the values of the quoted line."""
    implies: list[Implication] = Field(default_factory=list)
    rule: str | None = None
    """Id of the rule in data/failures that matched."""
    notes: list[str] = Field(default_factory=list)
    """What else the log says that is worth knowing and is no failure: an option that was ignored."""
    exit_code: int | None = None
    num_lines: int = 0
    """Lines read, of all files."""

    @property
    def is_explained(self) -> bool:
        """Whether a cause was found, or that nothing failed."""
        return self.cause is not Cause.UNKNOWN

    @property
    def is_failure(self) -> bool:
        """False where the log shows a server that served and was stopped."""
        return self.cause is not Cause.NONE
