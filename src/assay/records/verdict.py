"""What was concluded of a hypothesis, and on what evidence."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Literal

from pydantic import Field

from assay.records.base import Flags, Frozen


class VerdictKind(StrEnum):
    """The outcomes of a trial."""

    ADOPTED = "adopted"
    NO_EFFECT = "no-effect"
    WORSE = "worse"
    UNDECIDED = "undecided"
    BLOCKED = "blocked"
    UNSTABLE = "unstable"
    WRONG_OUTPUT = "wrong-output"
    NOT_APPLIED = "not-applied"


class Effect(Frozen):
    """A log ratio, oriented so that positive is better, with its interval."""

    log_ratio: float
    low: float
    high: float
    num_brackets: int
    standard_error: float
    degrees_of_freedom: float
    confidence: float
    """Coverage of [low, high] over all the looks taken, for example 0.95."""

    @property
    def percent(self) -> float:
        """The estimate as a relative change in percent."""
        return 100 * math.expm1(self.log_ratio)

    @property
    def percent_low(self) -> float:
        """Lower bound in percent."""
        return 100 * math.expm1(self.low)

    @property
    def percent_high(self) -> float:
        """Upper bound in percent."""
        return 100 * math.expm1(self.high)


class Calibration(Frozen):
    """This box's noise, from baseline against baseline."""

    bracket_sd: float
    """Standard deviation of one bracket's log ratio."""
    degrees_of_freedom: float
    bias: float
    """Mean A/A log ratio: should be within its own noise of 0."""
    min_detectable_effect: float
    """Relative effect that the budgeted number of brackets finds with 80% power."""
    drift_per_hour: float | None
    """Trend of the baseline's log metric, per hour; None when the record is too short."""


class Verdict(Frozen):
    """The end of a trial."""

    candidate: str
    kind: VerdictKind
    reason: str
    """One sentence a person can quote."""
    cause: str | None = None
    """blocked and unstable: the failure's cause, what a soak showed of a server that did not die (memory-growth,
    errors-under-soak, hang), or why it was not tried (`assay.plan.verdicts.NOT_TRIED`); undecided
    without an effect: what stood in the way (invalid, budget, excluded, stack-failed, dial)."""
    line: str | None = None
    """The log line behind it."""
    effect: Effect | None = None
    """None where nothing could be measured."""
    runs: list[str] = Field(default_factory=list)
    """Ids of the runs it rests on."""
    predicted: tuple[float, float] | None = None
    prediction_held: bool | None = None
    """Whether the interval meets the predicted range; None where nothing was measured."""


MemoryGrows = Literal["no", "yes", "as-its-reference"]
"""no: nor does it where no soak is spoken of; as-its-reference: so that the change is not to blame."""


class Headline(Frozen):
    """The confirmed gain of the final stack over the original baseline, on fresh runs."""

    stack: list[str]
    flags: Flags
    effect: Effect | None
    baseline_median: float | None
    stack_median: float | None
    confirmed: bool
    sentence: str
    not_shown_stable: str | None = None
    """Why no soak shows that the confirmed stack is stable; None where one does, or nothing is confirmed. An Assay that
    did not keep it: `assay.plan.fold` finds it in the record's runs."""
    memory_grows: MemoryGrows | None = None
    """What the soak that the sentence speaks of says of memory; None in records of an Assay that did not keep it."""
    runs: list[str] = Field(default_factory=list)
