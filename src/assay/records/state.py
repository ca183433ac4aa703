"""A campaign as its record tells it: the fold of all events (`assay.plan.fold`)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from assay.records.base import Frozen
from assay.records.dials import DialResult
from assay.records.hypothesis import Hypothesis
from assay.records.machine import EngineBuild, Machine, ModelFacts
from assay.records.model_shape import ModelShape
from assay.records.reasoning import PlanReasoning
from assay.records.run import RunIntent, RunOutcome, RunStatus, ServerIdentity
from assay.records.scoring import PredictionScore
from assay.records.spec import CampaignSpec
from assay.records.verdict import Calibration, Effect, Headline, Verdict

SIMULATORS = frozenset({"rehearsal"})
"""Engines whose every number is computed, not measured."""


class RunRecord(Frozen):
    """A run as far as it got."""

    intent: RunIntent
    server: ServerIdentity | None = None
    measured: RunOutcome | None = None
    """As it stood before its soak; None without a soak, or before that."""
    outcome: RunOutcome | None = None
    intended_at_ns: int
    ended_at_ns: int | None = None


def invalid_s(runs: Sequence[RunRecord]) -> float:
    """Time of the runs whose gates failed."""
    return sum(run.outcome.duration_s for run in runs if run.outcome and run.outcome.status is RunStatus.INVALID)


class ScreenResult(Frozen):
    """A candidate after the screen, before its re-test on the stack."""

    candidate: str
    effect: Effect
    promising: bool


class Ablation(Frozen):
    """One adopted optimization taken out of the stack again."""

    candidate: str
    effect: Effect | None
    """Of the stack without it over the stack with it: negative is what removing it costs. None: not measured."""
    kept: bool
    reason: str
    runs: list[str] = Field(default_factory=list)


class CampaignState(Frozen):
    """Everything that the record says, as values."""

    created_at_ns: int
    spec: CampaignSpec
    spec_hash: str
    machine: Machine
    build: EngineBuild
    model: ModelFacts
    shape: ModelShape | None = None
    """Of the model; None: its files did not tell it, or the record is of an Assay that did not keep it."""
    assay_version: str
    hypotheses: list[Hypothesis] = Field(default_factory=list)
    planned: bool = False
    passed_over: dict[str, str] = Field(default_factory=dict)
    """Catalogue entries that do not apply here, each with the reason."""
    reasoning: PlanReasoning = Field(default_factory=PlanReasoning)
    """How the plan came to its word on every entry; empty in records of an Assay that did not keep it."""
    earlier_scores: list[PredictionScore] = Field(default_factory=list)
    """How predictions fared in earlier campaigns on machines of this class, as known when the plan was written."""
    runs: list[RunRecord] = Field(default_factory=list)
    calibration: Calibration | None = None
    dials: dict[str, DialResult] = Field(default_factory=dict)
    """Searches that are over, by hypothesis."""
    screened: dict[str, ScreenResult] = Field(default_factory=dict)
    verdicts: dict[str, Verdict] = Field(default_factory=dict)
    stack: list[str] = Field(default_factory=list)
    ablations: dict[str, Ablation] = Field(default_factory=dict)
    headline: Headline | None = None
    num_events: int = 0
    last_hash: str = ""

    @property
    def is_simulated(self) -> bool:
        """Whether its numbers come from a simulation: they are labelled wherever they are shown."""
        return self.build.engine in SIMULATORS

    @property
    def spent_s(self) -> float:
        """Measuring time so far, runs that do not count included."""
        return sum(run.outcome.duration_s for run in self.runs if run.outcome)

    @property
    def invalid_s(self) -> float:
        """Of it, that of runs whose gates failed: somebody else's load is not charged to the question."""
        return invalid_s(self.runs)

    @property
    def charged_s(self) -> float:
        """What counts against `budget.total_s`: measuring time without the runs whose gates failed."""
        return self.spent_s - self.invalid_s

    @property
    def left_s(self) -> float:
        """Of `budget.total_s`, by what is charged; below zero where the last run took more than was left."""
        return self.spec.budget.total_s - self.charged_s

    @property
    def waited_s(self) -> float:
        """Time that went by before runs, waiting for a quiet machine: none of it is measuring time."""
        return sum(run.outcome.waited_s for run in self.runs if run.outcome)
