"""A campaign as its record tells it: the fold of all events (`assay.plan.fold`)."""

from __future__ import annotations

from pydantic import Field

from assay.records.base import Frozen
from assay.records.hypothesis import Hypothesis
from assay.records.machine import EngineBuild, Machine, ModelFacts
from assay.records.run import RunIntent, RunOutcome, ServerIdentity
from assay.records.spec import CampaignSpec
from assay.records.verdict import Calibration, Effect, Headline, Verdict


class RunRecord(Frozen):
    """A run as far as it got."""

    intent: RunIntent
    server: ServerIdentity | None = None
    outcome: RunOutcome | None = None
    intended_at_ns: int
    ended_at_ns: int | None = None


class ScreenResult(Frozen):
    """A candidate after the screen, before its re-test on the stack."""

    candidate: str
    effect: Effect
    promising: bool


class CampaignState(Frozen):
    """Everything that the record says, as values."""

    created_at_ns: int
    spec: CampaignSpec
    spec_hash: str
    machine: Machine
    build: EngineBuild
    model: ModelFacts
    assay_version: str
    hypotheses: list[Hypothesis] = Field(default_factory=list)
    planned: bool = False
    passed_over: dict[str, str] = Field(default_factory=dict)
    """Catalogue entries that do not apply here, each with the reason."""
    runs: list[RunRecord] = Field(default_factory=list)
    calibration: Calibration | None = None
    screened: dict[str, ScreenResult] = Field(default_factory=dict)
    verdicts: dict[str, Verdict] = Field(default_factory=dict)
    stack: list[str] = Field(default_factory=list)
    headline: Headline | None = None
    num_events: int = 0
    last_hash: str = ""

    @property
    def spent_s(self) -> float:
        """Measuring time used so far."""
        return sum(run.outcome.duration_s for run in self.runs if run.outcome)
