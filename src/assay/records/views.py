"""Answers of the verbs in `assay.api`: views of the record, never stored in it."""

from __future__ import annotations

from pydantic import Field

from assay.records.base import Frozen
from assay.records.hypothesis import Priority, TodoStatus
from assay.records.run import Purpose
from assay.records.verdict import Verdict


class Corrected(Frozen):
    """A predicted range as verdicts on machines of this class correct it."""

    low: float
    high: float
    """As relative change."""
    num_scores: int
    """Measured effects that it rests on, of all mechanisms."""
    machine_class: str
    """In words: "AMD EPYC, llamacpp, dense models"."""


class TodoItem(Frozen):
    """One line of the todo."""

    id: str
    content: str
    status: TodoStatus
    priority: Priority
    tier: int
    predicted: tuple[float, float] | None = None
    """As the plan states it, relative; None in answers of an earlier Assay."""
    corrected: Corrected | None = None
    """None where nothing was measured on machines of this class, and where there is a verdict."""
    depends_on: list[str] = Field(default_factory=list)
    verdict: Verdict | None = None
    document: str
    simulated: bool = False
    """Whether the verdict's numbers come from a simulation."""


class Worth(Frozen):
    """What trying a candidate further promises, and what it costs."""

    candidate: str
    brackets: int
    """Made so far."""
    expected_gain: float
    """Relative gain that it is expected to add to the stack, by prediction and measurement together; what is not
    adopted adds nothing."""
    chance_worth_having: float
    """That its effect is at least the objective's `min_effect`."""
    cost_s: float
    """Expected measuring time until the screen has decided it, restarts included."""


class NextStep(Frozen):
    """What the campaign would do next, and why."""

    kind: str
    """run, calibrate, verdict, compose, finish, done, approve."""
    purpose: Purpose | None = None
    candidate: str | None = None
    text: str
    why: str
    expected_s: float
    """How long it should take."""
    remaining_s: float
    """Expected measuring time until the campaign ends."""
    times_assumed: bool = False
    """Whether both rest on an assumption, because no run has measured anything yet."""
    candidates: list[Worth] = Field(default_factory=list)
    """Of the screen, most gain for its time first; empty outside of the screen."""
    simulated: bool = False
    """Whether the campaign's numbers come from a simulation."""
    detectable: float | None = None
    """Relative effect that the screen's brackets find with 80% power; None before the calibration."""


class Verification(Frozen):
    """Whether a record proves itself."""

    ok: bool
    num_events: int
    num_runs: int
    last_hash: str
    problems: list[str]
    """Each names the event or the file, what was expected and what is there."""


class ReportPaths(Frozen):
    """Where the report was written."""

    html: str
    markdown: str
