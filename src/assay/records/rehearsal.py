"""What a rehearsal says: of a campaign before it is run, and of the step that a simulated target spends its time in."""

from __future__ import annotations

from pydantic import Field

from assay.records.base import Frozen
from assay.records.estimate import MechanismCeiling, MemoryBudget, StepEstimate


class Chance(Frozen):
    """A share of simulated campaigns, with the interval that their number leaves (Wilson, 95%)."""

    share: float = Field(ge=0, le=1)
    low: float
    high: float
    campaigns: int


class PowerPoint(Frozen):
    """How often a true effect of one hypothesis, all others being useless, is adopted."""

    effect: float
    """Relative: 0.05 is +5%."""
    adopted: Chance


class CandidateOutlook(Frozen):
    """How one hypothesis is expected to end."""

    id: str
    tier: int
    predicted: tuple[float, float]
    failing: float
    """The prior of failing that was assumed."""
    verdicts: dict[str, float]
    """Share of the campaigns by verdict; "none" where the campaign ended without one."""


class Outlook(Frozen):
    """A campaign rehearsed in memory, many times. SIMULATED: nothing was launched."""

    campaigns: int
    seed: int
    hours_median: float
    hours_p90: float
    runs_median: float
    budget_hours: float
    ended_by_budget: float
    """Share of campaigns in which a candidate went without brackets for want of time, or that used more than nine
    tenths of `budget.total_s`."""
    adopted_mean: float
    adopted_useless: float
    """Mean number of adopted hypotheses whose true effect was zero or below."""
    candidates: list[CandidateOutlook]
    power: list[PowerPoint]
    detectable: float | None
    """Smallest effect found with 80% probability; None: none of those tried."""
    false_adoption: Chance
    """Campaigns in which all hypotheses are useless, and something was adopted."""
    run_sd: float
    """Run-to-run standard deviation of the log of the objective."""
    run_sd_source: str
    run_s: float
    run_s_source: str
    assumptions: list[str]
    advice: list[str]


class StepFacts(Frozen):
    """Where a step of the target's load goes, by calculation: what bounds it, and what could move it."""

    step: StepEstimate
    memory: MemoryBudget
    machine: str
    asked: int
    """Streams of the workload."""
    tokens_each: int
    """Cache that one request needs at its end."""
    running_limit: int | None
    """The engine's own limit on running sequences."""
    ceilings: list[MechanismCeiling]
