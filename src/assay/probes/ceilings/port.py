"""What a micro-benchmark is: the seam that those of processors and (later) of GPUs share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from assay.records.ceilings import CeilingName

Say = Callable[[str, float, float], None]
"""What is measured now, seconds spent, seconds expected in all."""


class NotMeasurable(Exception):  # noqa: N818 - an answer: this machine lacks what is needed
    """Why a benchmark cannot be made here, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What tells one measurement from another; as in `assay.records.ceilings.Measurement`."""

    threads: int = 1
    storage: str | None = None
    columns: int = 1
    numa_node: int | None = None
    shape: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one run of a benchmark brought."""

    samples: list[float]
    check: str
    correct: bool
    conditions: dict[str, str | int | float] = field(default_factory=dict)


class MicroBenchmark(Protocol):
    """One quantity under one condition."""

    @property
    def name(self) -> CeilingName:
        """Of the quantity."""

    @property
    def what(self) -> str:
        """What is done, in words."""

    @property
    def unit(self) -> Literal["bytes/s", "flop/s", "s"]:
        """Of a sample."""

    @property
    def at(self) -> Conditions:
        """Under which it is measured."""

    @property
    def expected_s(self) -> float:
        """How long it takes."""

    def run(self) -> Reading:
        """Measure.

        Raises:
            NotMeasurable: it cannot be done here.
        """
