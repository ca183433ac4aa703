"""Optimizations (known to the world) and hypotheses (applied to this target)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from assay.records.base import Flags, Frozen
from assay.records.dials import Dial

Numerics = Literal["exact", "reordered", "approximate"]
"""exact: same arithmetic; reordered: same mathematics, sums in another order; approximate: another computation."""
Priority = Literal["high", "medium", "low"]
TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]
MechanismId = Literal[
    "weight-bytes", "kv-bytes", "batch", "launch", "communication", "overlap", "host", "speculation", "parallelism",
    "kernel", "placement", "reuse",
]  # fmt: skip
"""What an optimization changes in the sum of a step's time: entries of one mechanism are right or wrong together.

weight-bytes and kv-bytes: bytes read per step; batch: tokens per step and who waits for whom; launch: fixed cost of
kernels and graphs; communication, overlap: between devices; host: threads' sleep, priority and memory on the CPU side;
speculation: tokens per step by guessing; parallelism: over how many cores or devices a step is split; kernel: the same
work by another implementation; placement: which device or memory node holds and computes what; reuse: work that an
earlier request did already."""


CeilingId = Literal[
    "expert-parallel", "mscclpp", "one-shot-all-reduce", "quantized-all-reduce", "fuse-allreduce-rmsnorm",
    "single-batch-overlap", "two-batch-overlap", "dp-attention", "persistent-kernel", "moe-kernel-tuning",
    "attention-backend", "gemm-backend", "l2-persistence", "cuda-graphs", "torch-compile", "async-scheduling",
    "weights-fp8", "weights-nvfp4", "weights-int4", "kv-fp8", "spec-decoding", "max-concurrency",
    "chunked-prefill-size", "serial-scheduling", "no-graphs", "graphs-for-decode-alone",
]  # fmt: skip
"""Mechanisms whose ceiling `assay.roofline.mechanisms.ceilings` calculates: the term of the estimate that changes; the
last three are controls (`assay.roofline.mechanisms.controls`), whose gain lies below zero."""

RESERVED = frozenset({"baseline", "stack"})
"""Names of arms, which no optimization may have."""


class Reported(Frozen):
    """Somebody else's claim: a prior, never a result."""

    gain: str
    where: str = ""
    """Model, machine, engine, load; empty: they did not say."""
    source: str
    """Issue, pull request or document; "no source: ..." for what everybody says."""


class Risk(Frozen):
    """One thing that is known to go wrong."""

    what: str
    source: str = ""
    """Issue, pull request or document (`sgl-project/sglang#5285`); empty: nobody wrote it down."""


class Requantize(Frozen):
    """A model artifact that has to be made before the arm can be launched."""

    kind: Literal["requantize"] = "requantize"
    type: Literal["Q8_0", "Q4_0", "F16"]
    """GGUF type that every two-dimensional tensor is converted to."""


class Optimization(Frozen):
    """One catalogue entry, resolved for one engine."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    tier: int = Field(ge=1, le=3)
    engine: str
    flags: Flags = Field(default_factory=dict)
    """Flags added to (or replacing those of) the baseline."""
    remove_flags: list[str] = Field(default_factory=list)
    """Baseline flags that the arm drops."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables of the server, added to (or replacing those of) the target."""
    versions: str = ""
    """Versions of the engine that have it, as a PEP 440 specifier (`>=0.5.4,<0.5.14`); empty: any."""
    needs_work: str = ""
    """What has to be made before it can run; such an entry is written up and priced, and not run."""
    dial: Dial | None = None
    """Knobs whose best setting is searched first (`assay.plan.dials`); the entry then names no values itself."""
    artifact: Requantize | None = None
    """Model artifact used in place of the baseline's model."""
    applies_when: str = "true"
    """Condition over the records, in the small expression language of `assay.plan.expression`."""
    mechanism: str
    """What it changes in the sum of a step's time, in one or two sentences."""
    mechanism_id: MechanismId | None = None
    """The same in a word, for scores; None: scored by itself."""
    ceiling: CeilingId | None = None
    """The mechanism of the roofline that bounds its gain (Amdahl); None: no term of the estimate bounds it."""
    predicted: tuple[float, float]
    """Predicted relative effect on the objective, [low, high]: 0.1 is +10%."""
    numerics: Numerics
    risk: str = ""
    """What can go wrong, in prose."""
    risks: list[Risk] = Field(default_factory=list)
    """The same one by one, with who met it."""
    rationale: str = ""
    regime: str = ""
    """At which load it pays and at which it does not, in words."""
    regime_when: str = "true"
    """The same as a condition; where it is false the entry is planned all the same, and the plan says so."""
    verify: str = ""
    """Proof that it is in force: `path = value` in the effective configuration, or several (`assay.plan.proof`); empty
    when there is none."""
    excludes: list[str] = Field(default_factory=list)
    """Ids of optimizations of the same family: at most one of them can be in the stack."""
    requires: list[str] = Field(default_factory=list)
    """Ids of optimizations without which this one does nothing or does not start: it waits until they are adopted."""
    expectation: str = ""
    """A warning for the reader: "known to do nothing", "control: should be worse"."""
    reported: list[Reported] = Field(default_factory=list)

    @field_validator("id")
    @classmethod
    def _id_is_not_reserved(cls, value: str) -> str:
        if value in RESERVED:
            raise ValueError(f"the id {value!r} names an arm of every campaign: choose another")
        return value


class Hypothesis(Frozen):
    """An optimization applied to this target: what an improvement document holds, parsed."""

    number: int = Field(ge=1)
    """Its place in the plan, also the document's prefix."""
    optimization: Optimization
    priority: Priority = "medium"
    status: Literal["planned", "blocked", "cancelled"] = "planned"
    """blocked: cannot be tried on this build or target; cancelled: a person said so in the document."""
    blocked_reason: str | None = None
    approved: bool = False
    predicted: tuple[float, float]
    """Predicted relative effect as edited for this target, scored after the verdict."""
    waits_for: list[str] = Field(default_factory=list)
    """Hypotheses that have to be adopted first, because it requires them and the baseline does not have them."""
    document: str
    """Path of the improvement document, relative to the campaign."""

    @property
    def id(self) -> str:
        """The optimization's id: unique in a campaign."""
        return self.optimization.id

    def rivals(self, other: Hypothesis) -> bool:
        """Whether the two are of one family, of which at most one can be in the stack; either may say so."""
        return other.id in self.optimization.excludes or self.id in other.optimization.excludes
