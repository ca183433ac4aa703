"""A decode step as a profiler saw it, operation by operation, and the estimate of the same step held against it.

>>> Held(operation="attention", measured_s=2.0, calls=16, expected_s=Range(low=0.5, mid=1.0, high=3.0)).ratio
0.5
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from assay.records.base import Frozen
from assay.records.estimate import Range

Operation = Literal[
    "experts gate-up",
    "experts down",
    "experts sort, sum",
    "router",
    "attention",
    "qkv projection",
    "output projection",
    "rope, cache write",
    "norms",
    "dense gate-up",
    "dense down",
    "activation",
    "quantization",
    "head",
    "sampling",
    "inputs",
    "communication",
    "other",
]
"""Kinds of operations that both an estimate and the names of kernels tell apart. activation: of experts and of dense
layers. dense: shared experts as well. inputs: embedding, positions, tables, copies before the first layer. other: no
rule knows the kernel."""
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


class TracedKernel(Frozen):
    """One kernel of an operation."""

    name: str
    seconds: float
    """Of one step, all its calls."""
    calls: float
    """In one step, mean."""


class TracedOperation(Frozen):
    """The kernels of one operation in a decode step: means over the steps of a trace."""

    operation: Operation
    seconds: float
    """Sum of the kernels' times in one step; pauses between them are not in it."""
    calls: float
    """Kernels in one step, mean."""
    kernels: list[TracedKernel]
    """Longest first; the longest few."""


class TracedSteps(Frozen):
    """The decode steps of a trace that have one number of sequences and no prompt in them."""

    marked_by: Literal["engine", "graph launches"]
    """The engine's annotation of each step, or the launches of its graphs."""
    steps: int = Field(ge=1)
    left_out: int = Field(ge=0)
    """Steps with prompts in them, or with another number of sequences."""
    sequences: int | None
    """None where the trace does not tell it."""
    context_tokens: float | None
    """Tokens of each sequence in the cache before the step, mean; None where the trace does not tell them."""
    period_s: float = Field(gt=0)
    """From the first kernel of a step to the first of the next, median; the profiler slows it down."""
    busy_s: float
    """At least one kernel or copy ran, mean."""
    short_pauses_s: float
    """Nothing ran, for a moment shorter than the trace's `gap_limit_s`; mean of a step, under the profiler."""
    long_pauses_s: float
    """Nothing ran, for longer."""
    operations: list[TracedOperation]
    """Longest first."""


class Held(Frozen):
    """One operation: measured against expected, both without the start of its kernels."""

    operation: Operation
    measured_s: float | None
    """None: the trace has no such kernel."""
    calls: float | None = None
    expected_s: Range | None = None
    """None: the estimate has no such operation."""
    expected_calls: int = 0
    floor_s: float = 0.0

    @property
    def ratio(self) -> float | None:
        """Expected over measured; None where either is missing or takes no time."""
        return self.expected_s.mid / self.measured_s if self.expected_s and self.measured_s else None


class HeldStep(Frozen):
    """The estimate of a decode step held against a measured one, and the parts of both."""

    sequences: int
    context_tokens: int
    measured_s: float = Field(gt=0)
    measured_by: str
    """What says so: a load test's gaps between tokens, or the trace itself."""
    expected_s: Range
    limit: float
    """The relative error that counts as close."""
    operations: list[Held]
    """Longest first, by the longer of measured and expected."""
    between_s: float
    """Measured step less the time in which kernels ran: their starts, and the host."""
    expected_between_s: Range
    expected_starts_s: float
    """The part of it that starting kernels takes."""
    words: list[str]
    """Where measured and expected differ most, with the numbers; largest first."""
    notes: list[str] = Field(default_factory=list)

    @property
    def error(self) -> float:
        """(expected - measured) / measured."""
        return self.expected_s.mid / self.measured_s - 1

    @property
    def close(self) -> bool:
        """Whether the error is within the limit."""
        return abs(self.error) <= self.limit
