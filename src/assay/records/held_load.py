"""One operating point of a run: what its load was, what was measured there, and the estimate held against that.

>>> step = Range(low=0.004, mid=0.005, high=0.008)
>>> load = MeasuredLoad(name="main", sequences=64, input_tokens=256, output_tokens=224, tpot_s=0.01)
>>> held = HeldLoad(load=load, running=64, step=step, floor_s=0.003, expected_s=step)
>>> held.ratio, held.inside
(0.5, False)
"""

from __future__ import annotations

from pydantic import Field

from assay.records.base import Frozen
from assay.records.estimate import Range


class MeasuredLoad(Frozen):
    """A load, and the time per output token (TPOT) that was measured under it."""

    name: str
    """Of the operating point."""
    sequences: int = Field(ge=1)
    """Requests in flight, as far as the engine lets them run at once."""
    input_tokens: int = Field(ge=0)
    """Of a prompt, mean; without what it shares with others and the cache holds."""
    cached_tokens: int = Field(default=0, ge=0)
    """Of a prompt, held by the cache before the request comes."""
    output_tokens: int = Field(ge=1)
    """Of an answer, mean."""
    one_length: bool = False
    """All requests have the same lengths: those that begin together end together."""
    tpot_s: float = Field(gt=0)
    """Median over the requests; over several runs, the median of their medians."""
    spread_s: tuple[float, float] | None = None
    """Lowest and highest of several runs; None: one run."""
    runs: list[str] = Field(default_factory=list)
    """That it was measured in; empty for a load test."""


class HeldLoad(Frozen):
    """The estimate of a load beside its measurement."""

    load: MeasuredLoad
    running: int = Field(ge=1)
    """Sequences that run at once according to the estimate."""
    step: Range
    """A step of decode alone, mean over an answer."""
    shared_steps: bool = False
    """Prompts are computed in steps of decode; else in steps of their own, which the others wait for."""
    floor_s: float
    """Of a step of decode: every operation at its floor. A request may meet no other's prompt."""
    expected_s: Range
    """Expected TPOT: the step, and what the prompts of others add to it."""

    @property
    def ratio(self) -> float:
        """Expected over measured."""
        return self.expected_s.mid / self.load.tpot_s

    @property
    def inside(self) -> bool:
        """Whether the expected range holds the measurement."""
        return self.expected_s.low <= self.load.tpot_s <= self.expected_s.high

    @property
    def below_floor(self) -> bool:
        """The measurement refutes the estimate, or the operating point is another one."""
        return self.load.tpot_s < self.floor_s
