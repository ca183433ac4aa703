"""What a search of layouts finds: ways to run a model, and those that miss the service level."""

from __future__ import annotations

from assay.records.base import Frozen
from assay.records.estimate import Bound, Layout, MemoryBudget, Range

AS_STORED = "as stored"


class Miss(Frozen):
    """A way to run the model that fits and does not keep the service level, at one request in flight."""

    layout: Layout
    storage: str
    ttft_s: Range
    tpot_s: Range
    over: float
    """The worse of expected time over bound: 1.2 misses by a fifth."""


class Candidate(Frozen):
    """A way to run the model on the devices, at the concurrency with the most tokens/s that keeps the service level."""

    layout: Layout
    """Of each replica."""
    replicas: int
    devices: int
    """Of all replicas."""
    storage: str
    """`as stored`, or the format that the weights would be converted to."""
    concurrency: int
    """Requests in flight over all replicas."""
    output_tokens_per_s: Range
    """Over all replicas, prompts computed in between."""
    tokens_per_s_per_device: float
    ttft_s: Range
    tpot_s: Range
    """With the prompts that come in between."""
    bound: Bound
    """Of the decode step."""
    memory: MemoryBudget
    """Of each replica."""


class Ranking(Frozen):
    """What a search found."""

    candidates: list[Candidate]
    """Most expected output tokens/s first."""
    misses: list[Miss]
    """Nearest first."""
