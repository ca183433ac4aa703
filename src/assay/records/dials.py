"""Dials: knobs of an engine whose best setting has to be found, and what a search found.

A catalogue entry with a `dial` names no value: the search (`assay.plan.dials`) looks for one, which then is tested as
any flag is.

>>> Knob(name="ubatch", flag="--ubatch-size", low=32, high=512, factor=2).is_ordered
True
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from assay.records.base import Flags, FlagValue, Frozen

MAX_LAUNCHES = 30


class Knob(Frozen):
    """One flag and the values that are safe to try.

    Either `low` and `high` with a `step` or a `factor`, or `choices`. Texts that begin with "=" are expressions over
    the facts of a campaign (`assay.plan.expression`).
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    """How expressions call it: `dial.<name>`."""
    flag: str
    low: int | float | str | None = None
    high: int | float | str | None = None
    """Always tried too, where steps do not meet it."""
    step: int | float | None = Field(default=None, gt=0)
    """Distance of neighbouring values."""
    factor: int | float | None = Field(default=None, gt=1)
    """Ratio of neighbouring values: for knobs whose doubling matters."""
    choices: list[FlagValue] = Field(default_factory=list)
    """Unordered values."""
    memory: Literal["more", "less", "none"] = "none"
    """What a larger value does to the memory taken: a value that ran out of it rules out those that take more."""
    baseline: FlagValue | None = None
    """What is in force where the baseline's flags do not say; absent: unknown."""

    @property
    def is_ordered(self) -> bool:
        """Whether neighbouring values behave alike."""
        return not self.choices

    @model_validator(mode="after")
    def _is_a_range_or_choices(self) -> Self:
        is_range = self.low is not None and self.high is not None and (self.step is None) != (self.factor is None)
        parts = (self.low, self.high, self.step, self.factor)
        if self.choices and any(part is not None for part in parts):
            raise ValueError(f"knob {self.name}: want choices or a range, not both")
        if not self.choices and not is_range:
            raise ValueError(f"knob {self.name}: want low, high and one of step and factor; or choices")
        if self.choices and self.memory != "none":
            raise ValueError(f"knob {self.name}: choices have no order in which they take more memory")
        return self


class DialEstimate(Frozen):
    """What is expected of one setting before it is tried."""

    settings: Flags
    """By knob name."""
    value: float = Field(gt=0)
    """Predicted objective, more is better; only ratios between settings matter."""


class Dial(Frozen):
    """Knobs that are searched together, because what is best for one hangs on the others."""

    knobs: list[Knob] = Field(min_length=1)
    constraints: list[str] = Field(default_factory=list)
    """Conditions that every setting must meet, over the facts and `dial.<name>`."""
    flags: Flags = Field(default_factory=dict)
    """Flags that follow from the knobs: values as in a catalogue entry, over the facts and `dial.<name>`."""
    estimate: str | None = None
    """Predicted objective of a setting, up to a factor: an expression over the facts and `dial.<name>`."""
    estimates: list[DialEstimate] = Field(default_factory=list)
    """The same as single points; they win over `estimate`."""
    max_launches: int = Field(default=MAX_LAUNCHES, ge=3)
    """Most runs of the search, the baseline's among them."""


class DialResult(Frozen):
    """The end of a search. Its numbers chose the setting, so they are no evidence for it: fresh runs are."""

    candidate: str
    """The hypothesis."""
    settings: Flags | None
    """By knob name; None: nothing seems better than the baseline."""
    flags: Flags | None
    """The same as flags of the arm."""
    expected: tuple[float, float] | None
    """Central 80% of what the search's model holds the relative gain to be: 0.1 is +10%."""
    reason: str
    """Why the search ended, in one sentence."""
    runs: list[str] = Field(default_factory=list)
    """Ids of the runs it rests on."""
