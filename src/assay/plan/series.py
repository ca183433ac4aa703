"""Series of runs: which of them count, and the brackets they make, those across a long pause left out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from assay.plan.reading import once
from assay.plan.scores import scores
from assay.records.run import RunStatus
from assay.records.state import CampaignState, RunRecord
from assay.stats.brackets import Brackets, Point, brackets, spans
from assay.units import NS_PER_S

MAIN = "main"
"""The series of calibration and screen: reference arm is the baseline throughout."""
CONFIRMATION = "confirmation"
A_A = "baseline"
"""The candidate name of an A/A run: the baseline measured as if it were a candidate."""
STACK = "stack"
"""The candidate name of the stack in the confirmation."""
MAX_PAUSE_S = 3600.0
"""Longest pause inside a bracket. Drift cancels between neighbours in time; after a night it is another machine."""


def composition(candidate: str) -> str:
    """Name of the series in which a candidate is tested again, on the stack."""
    return f"composition:{candidate}"


def ablation_series(member: str) -> str:
    """Name of the series in which the stack is measured without a member."""
    return f"ablation:{member}"


def why_not_counted(state: CampaignState, run: RunRecord) -> str | None:
    """Why an ended run says nothing about the objective; None when it counts."""
    if run.outcome is None:
        return "it has not ended"
    if run.outcome.status is not RunStatus.OK:
        return run.outcome.reason
    if scores(state)[run.intent.run_id] is None:
        return f"it has no {state.spec.objective.metric}: too few samples in the windows"
    return None


@once
def valid_runs(state: CampaignState, series: str) -> tuple[RunRecord, ...]:
    """The runs of a series that count (`why_not_counted` has nothing to say), in time order.

    A stack that has grown since is another arm: confirmation runs of an earlier stack do not count.
    """
    known = scores(state)
    return tuple(
        run
        for run in state.runs
        if run.intent.series == series
        and run.outcome is not None
        and run.outcome.status is RunStatus.OK
        and known[run.intent.run_id] is not None
        and not (run.intent.candidate == STACK and run.intent.arm.deltas != state.stack)
    )


@once
def run_counts(state: CampaignState, series: str) -> Counter[str | None]:
    """How many runs of a series count, by candidate."""
    return Counter(run.intent.candidate for run in valid_runs(state, series))


@once
def series_brackets(state: CampaignState, series: str, point: str | None = None) -> Brackets:
    """Every bracket of a series, those across a long pause left out; by one operating point, or by the objective."""
    points, unbroken = _series(state, series, point)
    return brackets(points).keep(unbroken)


@once
def bracket_counts(state: CampaignState, series: str) -> Counter[str | None]:
    """How many brackets of a series each candidate has; counting alone needs no arithmetic, and none is loaded."""
    points, unbroken = _series(state, series)
    found = spans(points)
    return Counter(points[found[number].at].candidate for number in unbroken)


@once
def _series(state: CampaignState, series: str, point: str | None = None) -> tuple[list[Point], list[int]]:
    """The points of a series, and the numbers of those of its brackets that lie on one machine, with no long pause."""
    known = scores(state, point)
    told = [(run, score) for run in valid_runs(state, series) if (score := known[run.intent.run_id]) is not None]
    points = [Point(candidate=run.intent.candidate, log_value=score) for run, score in told]
    pauses = places_after_pause(state)
    order = {run.intent.run_id: i for i, run in enumerate(state.runs)}
    places = [order[run.intent.run_id] for run, _ in told]
    unbroken = [
        number
        for number, span in enumerate(spans(points))
        if not any(places[span.before] < pause <= places[span.after] for pause in pauses)
        and len({told[place][0].intent.host for place in (span.before, span.at, span.after)}) == 1
    ]
    return points, unbroken


@once
def places_after_pause(state: CampaignState) -> list[int]:
    """Places of the runs before which nothing ran for longer than `MAX_PAUSE_S`.

    When an abandoned run really ended is not known (it is closed by the next Assay), so its intent is what counts.
    """
    after = []
    for i, (earlier, later) in enumerate(pairwise(state.runs)):
        abandoned = earlier.outcome is None or earlier.outcome.status is RunStatus.ABANDONED
        end_ns = earlier.intended_at_ns if abandoned else (earlier.ended_at_ns or earlier.intended_at_ns)
        if abs(later.intended_at_ns - end_ns) > MAX_PAUSE_S * NS_PER_S:  # a clock set back tells no time either
            after.append(i + 1)
    return after
