"""Interactions: what a member of the stack adds there against what it did alone.

The screen measured it against the baseline, the composition on top of the stack as it then was: two sets of runs that
share none, so the variance of the difference of the two log ratios is the sum of theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.records.state import CampaignState
from assay.records.verdict import Effect
from assay.stats.sequential import student_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """Of one candidate with the stack it was tested on."""

    candidate: str
    alone: Effect
    on_stack: Effect
    stack: tuple[str, ...]
    difference: float
    """On the stack minus alone, in log ratio: below 0, the two get in each other's way."""
    low: float
    high: float


def interactions(state: CampaignState) -> list[Interaction]:
    """Of every candidate that was tested on top of others, in the order of testing."""
    found = []
    for run_stack, name in _tested_on(state):
        verdict, screened = state.verdicts.get(name), state.screened.get(name)
        if verdict is None or verdict.effect is None or screened is None or not run_stack:
            continue
        alone, on_stack = screened.effect, verdict.effect
        difference = on_stack.log_ratio - alone.log_ratio
        degrees = min(alone.degrees_of_freedom, on_stack.degrees_of_freedom)
        half = -student_quantile(state.spec.statistics.confirm_alpha / 2, degrees) * math.hypot(
            alone.standard_error, on_stack.standard_error
        )
        found.append(
            Interaction(
                candidate=name,
                alone=alone,
                on_stack=on_stack,
                stack=run_stack,
                difference=difference,
                low=difference - half,
                high=difference + half,
            )
        )
    return found


def _tested_on(state: CampaignState) -> list[tuple[tuple[str, ...], str]]:
    """(what the reference of its composition held, candidate), once each."""
    seen: dict[str, tuple[str, ...]] = {}
    for run in state.runs:
        series = run.intent.series
        if series.startswith("composition:") and run.intent.candidate is None:
            seen.setdefault(series.removeprefix("composition:"), tuple(run.intent.arm.deltas))
    return [(stack, name) for name, stack in seen.items()]
