"""Why the plan holds what it holds: conditions with their values, the range and what bounds it, for every entry.

>>> RangeBasis(low=0.0, high=0.02, low_from="the prior", high_from="the ceiling").high
0.02
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.records.base import Frozen
from assay.records.range import Range

Outcome = Literal["planned", "blocked", "skipped"]
"""planned: to be tried; blocked: wanted, and cannot be tried here; skipped: not worth a trial here."""


class Condition(Frozen):
    """One condition as it was decided."""

    text: str
    holds: bool | None
    """None: a fact that it hangs on is unknown."""
    values: dict[str, str] = Field(default_factory=dict)
    """The facts it was decided on, as written, with their values."""


class CeilingHere(Frozen):
    """What the mechanism could bring at most at this target's operating point, by Amdahl."""

    mechanism: str
    title: str
    gain: Range
    """Relative gain in output tokens/s, with the prompts in between."""
    touched_share: float
    """Part of a decode step's expected time that it changes."""
    applies: bool
    reason: str
    """With this machine's and model's numbers."""
    prompt_share: float | None = None
    """Part of the time that goes into prompts; None: only decode was looked at."""
    prompt_reason: str = ""
    """The same as `reason` for the prompts, where the mechanism acts on them."""


class RangeBasis(Frozen):
    """The predicted range, and what each end rests on."""

    low: float
    high: float
    low_from: str
    high_from: str


class Reasoning(Frozen):
    """How the plan came to its word on one catalogue entry."""

    id: str
    title: str
    tier: int
    outcome: Outcome
    reason: str = ""
    """Why it is blocked or skipped."""
    conditions: list[Condition] = Field(default_factory=list)
    prior: tuple[float, float]
    ceiling: CeilingHere | None = None
    no_ceiling: str = ""
    """Why there is no ceiling, or why the one that is there bounds nothing."""
    range: RangeBasis | None = None
    """Of skipped entries too; None: nobody asked for it."""
    in_regime: bool | None = None
    """Whether the workload lies where the entry is said to pay; None: it does not say, or it cannot be decided."""
    regime_values: dict[str, str] = Field(default_factory=dict)
    waits_for: list[str] = Field(default_factory=list)
    excludes: list[str] = Field(default_factory=list)
    findings: list[str] = Field(default_factory=list)
    """What is known of these flags on this version, model and machine, with sources (`assay doctor`)."""
    notes: list[str] = Field(default_factory=list)


class Surroundings(Frozen):
    """The target in numbers: what the conditions and the ceilings were calculated from, one sentence each."""

    sentences: list[str] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=list)
    """What is not known, and why."""
    warnings: list[str] = Field(default_factory=list)
    """Why today's configuration cannot start or serve as it is, by calculation."""


class PlanReasoning(Frozen):
    """Everything that `assay plan --explain` shows: recorded with the plan."""

    surroundings: Surroundings = Field(default_factory=Surroundings)
    baseline: list[str] = Field(default_factory=list)
    """What is known of the flags of today's command, with sources."""
    entries: dict[str, Reasoning] = Field(default_factory=dict)
    """By id: planned, blocked and skipped."""
