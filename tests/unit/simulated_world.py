"""Campaigns in memory for tests: small questions, and troubles made on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from assay.records.hypothesis import Hypothesis
from assay.records.run import Failure, RunIntent, RunStatus
from assay.records.spec import Budget, CampaignSpec, Policy
from assay.records.state import CampaignState
from assay.rehearsal import world
from assay.rehearsal.world import (
    BUILD,
    MACHINE,
    MAX_STEPS,
    MODEL,
    Journal,
    Trouble,
    World,
    abandon_open_runs,
    drive,
    hypothesis,
    measures,
    no_trouble,
    perform,
    replan,
)

__all__ = [
    "BUILD",
    "MACHINE",
    "MAX_STEPS",
    "MODEL",
    "Journal",
    "Trouble",
    "World",
    "abandon_open_runs",
    "completed",
    "drive",
    "failure",
    "hypothesis",
    "kinds",
    "measures",
    "no_trouble",
    "perform",
    "replan",
    "small_spec",
    "start",
    "trouble_for",
    "with_policy",
]


def small_spec(**changes: Any) -> CampaignSpec:
    """A question with few brackets and all the time in the world."""
    budget = Budget(
        total_s=1e6, calibration_brackets=2, max_brackets=3, composition_brackets=3, confirmation_brackets=2
    )
    return CampaignSpec.model_validate({"budget": budget, **changes})


def start(hypotheses: Iterable[Hypothesis], spec: CampaignSpec | None = None) -> Journal:
    """A campaign created and planned."""
    return world.start(hypotheses, spec or small_spec())


def completed(state: CampaignState) -> list[tuple[str, str | None, int, str]]:
    """The runs that count: series, candidate, seed, arm."""
    return [
        (run.intent.series, run.intent.candidate, run.intent.seed, run.intent.arm.label)
        for run in state.runs
        if run.outcome is not None and run.outcome.status is RunStatus.OK
    ]


def kinds(state: CampaignState) -> dict[str, str]:
    """Verdict by candidate."""
    return {name: str(verdict.kind) for name, verdict in state.verdicts.items()}


def failure(cause: str = "crashed", stage: str = "under-load") -> Failure:
    """A failure at a stage, with a cause."""
    return Failure.model_validate({"stage": stage, "cause": cause, "line": f"{cause} at {stage}", "log": "server.log"})


def trouble_for(candidate: str | None, *sequence: Trouble, series: str = "main") -> Callable[[RunIntent, int], Trouble]:
    """The first runs of one arm end like this, one after another; the last entry goes on for ever."""

    def answer(intent: RunIntent, nth: int) -> Trouble:
        if intent.candidate != candidate or not intent.series.startswith(series):
            return None
        return sequence[min(nth, len(sequence) - 1)]

    return answer


def with_policy(**policy: Any) -> CampaignSpec:
    """The small spec under a policy."""
    return small_spec(policy=Policy.model_validate(policy))
