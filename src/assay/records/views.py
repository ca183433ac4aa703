"""Answers of the verbs in `assay.api`: views of the record, never stored in it."""

from __future__ import annotations

from pydantic import Field

from assay.records.base import Frozen
from assay.records.hypothesis import Priority, TodoStatus
from assay.records.run import Purpose
from assay.records.verdict import Verdict


class TodoItem(Frozen):
    """One line of the todo."""

    id: str
    content: str
    status: TodoStatus
    priority: Priority
    tier: int
    depends_on: list[str] = Field(default_factory=list)
    verdict: Verdict | None = None
    document: str


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
