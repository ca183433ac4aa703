"""A soak: a server at its peak load for longer than it is measured, and whether it stays as it is.

>>> soak = Soak(point="c64", concurrency=64, soaked_s=60.0, requests=900, failed=0)
>>> soak.passed, soak.model_copy(update={"failed": 1}).passed, soak.model_copy(update={"problem": "cut short"}).passed
(True, False, None)
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.records.base import Frozen

Where = Literal["server", "GPU"]
"""server: resident memory of its process tree; GPU: memory in use on this machine's GPUs."""


class MemoryTrend(Frozen):
    """How memory changed under steady load, once the warm-up was over (`assay.stats.growth.growth`)."""

    where: Where
    num_samples: int
    """Those that were judged."""
    span_s: float
    """From the first of them to the last."""
    begin_bytes: int
    end_bytes: int
    bytes_per_s: float
    """Growth of the judged part."""
    low_bytes_per_s: float
    high_bytes_per_s: float
    """Each bound is wrong at `assay.stats.growth.ALPHA`."""
    tolerated_bytes_per_s: float
    levels_off: bool
    """Whether the later half of it grew by less than half of what the earlier half did: a pool that fills."""

    @property
    def grows(self) -> bool:
        """Shown to grow by more than is tolerated, and not seen to level off."""
        return self.low_bytes_per_s > self.tolerated_bytes_per_s and not self.levels_off


class Soak(Frozen):
    """What was seen of a server in its soak."""

    point: str
    """The operating point at which most tokens are in flight."""
    concurrency: int
    soaked_s: float
    """Of steady load."""
    requests: int
    """Ended before the load was stopped, those of the warm-up included."""
    failed: int
    """Those of them that failed."""
    requests_per_s: float = 0.0
    """Ended whole in the soaked time, over it; 0 where none did."""
    first_error: str = ""
    silent_s: float = 0.0
    """From the last token of any stream to the end of the load."""
    stalled: bool = False
    """Whether it fell silent for good: for half of the soak, and for longer than any request took before."""
    died: str = ""
    """What the server died of in there. Its run counts: what was measured before it was whole. In records of an Assay
    that blamed a candidate for that at once, its run failed instead."""
    memory: list[MemoryTrend] = Field(default_factory=list)
    unknown: dict[Where, str] = Field(default_factory=dict)
    """Memory of which nothing can be said, with the reason."""
    problem: str | None = None
    """Why it says nothing of the server (the load never became steady); None: it was a soak."""

    @property
    def fell(self) -> bool:
        """Whether its server died in it, or fell silent for good."""
        return self.stalled or bool(self.died)

    @property
    def grows(self) -> bool:
        """Whether any memory does."""
        return any(trend.grows for trend in self.memory)

    @property
    def passed(self) -> bool | None:
        """None where it says nothing."""
        if self.failed or self.fell:
            return False
        return None if self.problem else not self.grows
