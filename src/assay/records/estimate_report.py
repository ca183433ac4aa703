"""An estimate as it is shown: a model on a box under a load, at several numbers of requests in flight.

>>> load = Load(input_tokens=1024, output_tokens=256, context_tokens=1152, reserved_tokens=1280)
>>> load.reserved_tokens - load.input_tokens
256
"""

from __future__ import annotations

from pydantic import Field

from assay.records.base import Frozen
from assay.records.device import Box
from assay.records.estimate import Layout, MechanismCeiling, MemoryBudget, Range, Routing, StepEstimate


class Load(Frozen):
    """What every request of the estimate is."""

    input_tokens: int | None
    """Of the prompt; None when only a context was given."""
    output_tokens: int | None
    """Of the answer; None when only a context was given: then nothing is said of prompts that come in between."""
    context_tokens: int = Field(ge=0)
    """Tokens of a sequence in the cache during decode, on average: the prompt and half of the answer."""
    reserved_tokens: int = Field(ge=1)
    """Tokens of the cache that a sequence has at its end."""


class ModelFacts(Frozen):
    """What the estimate took the model for."""

    name: str
    architecture: str
    source: str
    parameters: int
    active_parameters: float
    """Of the layers alone, without embedding and head: one convention for all models. Publishers have several
    (`benchmarks/parameter_counts.py` shows which), so that 40 B may be 41.8 B elsewhere."""
    weight_bytes: float
    parameters_by_part: dict[str, int]
    weight_bytes_by_part: dict[str, float]
    cache_bytes_per_token: float
    """Over the whole model, in the cache's format, indexer included; windows not yet full."""
    indexer_bytes_per_token: float
    """The indexer's part of it; 0 for models without one."""
    num_experts: int
    top_k: int
    storage: list[str]
    """Formats of the matrices, by falling bytes."""


class ServingPoint(Frozen):
    """Some number of requests in flight, in a closed loop that is steady."""

    asked: int = Field(ge=1)
    """Requests in flight, as asked for."""
    running: int = Field(ge=1)
    """How many of them decode at once: what the cache holds."""
    held_back: str = ""
    """Why fewer run than were asked for, with the numbers."""
    decode: StepEstimate
    prompts: StepEstimate | None = None
    """The prompts that are computed together, as many as a step takes; None without a prompt."""
    prompts_per_step: float | None = None
    """Prompts that come in for each step of decode, on average: running / output tokens."""
    queue_s: Range | None = None
    """How long a request waits until it may run; None when nothing is known of prompts, 0 when all run."""
    ttft_s: Range | None = None
    """Queue, half a step of decode, and the prefill of the prompts that come together."""
    tpot_s: Range
    """A step of decode and its share of the others' prompts, as load tests count it; without prompts the step alone."""
    output_tokens_per_s: Range | None = None
    """With the prompts in between: what a load test of such requests would report. None when unknown."""
    prompt_share: float | None = None
    """Part of the time that goes into prompts."""
    mbu: float
    """Expected, as `assay.roofline.utilization.mbu` defines it for a measured run."""
    mbu_at_floor: float
    """How much of the floor is memory, counting the bytes that the floor counts: `utilization.mbu_at_floor`."""
    mfu: float
    """Expected, as `assay.roofline.utilization.mfu` defines it."""
    speed_of_light: float
    """Floor / expected time of the decode step."""
    mechanisms: list[MechanismCeiling] = Field(default_factory=list)
    """By their ceiling; those that cannot act here last."""


class EstimateReport(Frozen):
    """A model on a box: memory, speed at each operating point, and what would help at most."""

    model: ModelFacts
    box: Box
    layout: Layout
    layout_reason: str = ""
    """Why this layout, when none was asked for."""
    load: Load
    routing: Routing
    cache_dtype: str
    memory: MemoryBudget
    memory_fraction: float
    points: list[ServingPoint] = Field(min_length=1)
    chosen: int = Field(ge=0)
    """Index of the point whose operations and mechanisms are shown."""
    assumptions: list[str]

    @property
    def point(self) -> ServingPoint:
        """The one shown in detail."""
        return self.points[self.chosen]
