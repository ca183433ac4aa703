"""Soaking: what is about to ship has to stand its peak load for longer than it is measured.

No launch is made for it. The first run of an arm in composition goes on at its peak load when all is measured, so a
candidate that would crash or leak is stopped before the rest of its brackets is spent; the first confirmation run of a
stack does that was never soaked as it is (an ablation took something out). A soak decides stability, never size: what
the run measured before it counts as it would have without it.

Whatever goes wrong is held against what the arm stands on, whose next run is then soaked too. Where that falls as well
(dies, or stands still for good), fails as many of its requests (the traffic, the network, an engine that does so
anyway: `assay.plan.soak_counts`), or grows as well (llama.cpp's cache of prompts does, up to its limit), the candidate
is blamed only for clearly more of it. So no soak of an arm is begun whose reference's could not follow it: the time of
both is there, beside the confirmation's, or the arm is not soaked and that is said. Few failures are no rate, so both
are soaked again as long as it could tell, in runs that are made anyway. An arm that fell more often than its reference,
and is not shown to do so, is neither blamed nor adopted (`suspect`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from assay.plan import soak_counts
from assay.plan.runs import median_run_s
from assay.plan.series import CONFIRMATION, STACK, bracket_counts
from assay.plan.soak_counts import MAX_TRIES, Counts, counted, stood
from assay.plan.soak_words import UNSOAKED, memory, told
from assay.plan.soaks_made import (
    compared_with,
    completed,
    counts_of,
    deciding,
    failure_in,
    latest,
    num_interrupted,
    telling,
)
from assay.records.soak import MemoryTrend, Soak
from assay.records.spec import MAIN_POINT, Workload
from assay.records.state import CampaignState

GROWTH, ERRORS, HANG, CRASHED = "memory-growth", "errors-under-soak", "hang", "crashed"
"""Causes of being unstable that no failure tells: its server lived on, or what it died of was not read."""
CLEARLY = 1.5
"""Times the reference's growth for each request: below it, what grows is what both are built on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """What an arm is unstable for."""

    cause: str
    reason: str
    line: str | None = None
    """Of the log, where its server died."""


def peak(workload: Workload) -> tuple[str, Workload]:
    """The operating point at which most tokens can be in flight, with its load."""
    loads = {MAIN_POINT: workload.model_copy(update={"points": []})}
    loads |= {point.name: workload.at(point) for point in workload.points}
    return max(
        loads.items(), key=lambda item: item[1].concurrency * (item[1].prompt_tokens[1] + item[1].output_tokens[1])
    )


def due_s(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> float:
    """For how long the next run of an arm is to be soaked; 0: it was, it is not asked for, or its time is not left."""
    if latest(state, deltas) is None:
        return _affordable_s(state, deltas, beside=also_needed_s(state, reference))
    own, base = counts_of(state, deltas), counts_of(state, reference)
    level = base.soaks >= own.soaks or (base.soaks and not _affordable_s(state, reference))
    return _affordable_s(state, deltas) if level and _is_to_be_told(state, own, reference) else 0.0


def reference_due_s(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> float:
    """The same of what an arm stands on: only asked for where the arm fell, requests of it failed, or it grows.

    Its first is made whatever was spent meanwhile: its time was kept when the arm's soak was begun, and there is
    nothing else to hold that against.
    """
    last = latest(state, deltas)
    own, base = counts_of(state, deltas), counts_of(state, reference)
    if last is None or not (last.grows or own.failed or own.fell):
        return 0.0
    if not (completed(state, reference) or compared_with(state, deltas, reference)):
        return _left_s(state, reference)
    more = base.soaks < own.soaks and _is_to_be_told(state, own, reference)
    return _affordable_s(state, reference) if more or not base.soaks else 0.0


def bracket_due_s(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> float:
    """What soaks add to the next bracket: of an arm, and of what it stands on."""
    return due_s(state, deltas, reference) + reference_due_s(state, deltas, reference)


def is_open(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> bool:
    """Whether an arm fell or requests of it failed, and another soak (of it, of its reference) may tell whose fault."""
    own = counts_of(state, deltas)
    return own.failed + own.fell > 0 and bracket_due_s(state, deltas, reference) > 0


def is_owed(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> bool:
    """Whether an arm is not to be shipped yet: a soak of it or of its reference was promised, and can still be made.

    Its own was begun and never completed; its reference's decides whether it is blamed for what its own saw.
    """
    if num_interrupted(state, deltas):
        return due_s(state, deltas, reference) > 0
    return not telling(state, reference) and reference_due_s(state, deltas, reference) > 0


def in_budget(state: CampaignState, soaks_s: float) -> bool:
    """Whether soaks leave the runs their time that are to come after."""
    return kept_s(state) + soaks_s <= state.left_s


def kept_s(state: CampaignState) -> float:
    """Time of the confirmation, of the run that a soak begins in and of the one closing its bracket."""
    budget, confirmed = state.spec.budget, bracket_counts(state, CONFIRMATION)[STACK]
    begun = any(run.intent.series == CONFIRMATION for run in state.runs)
    reserved = 2 * max(1, budget.confirmation_brackets - confirmed) + (0 if begun else 3)
    return reserved * median_run_s(state)


def unstable(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> Blame | None:
    """Why an arm is shown not to stand its soak; None where it does, or where that is not known (yet).

    A reference that cannot be soaked excuses neither a fall nor a failed request; growth alone blames nobody then.
    """
    own = telling(state, deltas)
    if not own or is_owed(state, deltas, reference):
        return None
    beside = compared_with(state, deltas, reference)
    counts, base = counted(own), counted(beside)
    if counts.fell and (not beside or soak_counts.falls_more(counts, base)):
        return _blamed_for_falling(state, deltas, counts, base)
    lived, held_against = stood(own), stood(beside)
    if not lived or (beside and not held_against):
        return None
    return _blamed_for_errors(lived[-1], counts, base) or _blamed_for_growth(lived[-1], held_against)


def suspect(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> str | None:
    """Where an arm fell in more of its soaks than its reference and that may be chance: what was seen; else None."""
    own, base = counts_of(state, deltas), counted(compared_with(state, deltas, reference))
    first = deciding(state, deltas)
    if first is None or not base.soaks or not soak_counts.may_fall_more(own, base):
        return None
    return f"{told(first)}; {soak_counts.compared_falls(own, base)}"


def _is_to_be_told(state: CampaignState, own: Counts, reference: Collection[str]) -> bool:
    """Whether more soaks could tell what went wrong with an arm from what goes wrong with its reference.

    Beside a reference that fell, failed requests tell nothing.
    """
    base = counts_of(state, reference)
    return soak_counts.may_fall_more(own, base) or (soak_counts.is_open(own, base) and not base.fell)


def _blamed_for_falling(state: CampaignState, deltas: Collection[str], own: Counts, base: Counts) -> Blame:
    first, failure = deciding(state, deltas), failure_in(state, deltas)
    assert first is not None
    beside = soak_counts.compared_falls(own, base) if base.soaks else f"the {UNSOAKED}"
    cause = (failure.cause if failure else CRASHED) if first.died else HANG
    return Blame(cause=cause, reason=f"{told(first)}; {beside}", line=failure.line if failure else None)


def _blamed_for_errors(own: Soak, counts: Counts, base: Counts) -> Blame | None:
    if not counts.failed:
        return None
    if not base.soaks:
        return Blame(cause=ERRORS, reason=f"{told(own)}; the {UNSOAKED}")
    if not soak_counts.fails_more(counts, base):
        return None
    return Blame(cause=ERRORS, reason=f"{told(own)}; {soak_counts.compared(counts, base)}")


def _blamed_for_growth(own: Soak, beside: list[Soak]) -> Blame | None:
    if not beside or not any(_outgrows(trend, own, beside[-1]) for trend in own.memory):
        return None
    remedy = "a cache that fills looks the same until it is full: a longer soak (budget.soak_s) tells"
    return Blame(cause=GROWTH, reason=f"{told(own)}; its reference: {memory(beside[-1])}; {remedy}")


def _outgrows(trend: MemoryTrend, own: Soak, base: Soak) -> bool:
    """Whether it grows, and where the reference's does too, by clearly more of each request (a faster arm has more)."""
    other = next((one for one in base.memory if one.where == trend.where), None)
    if not trend.grows or other is None or not other.grows:
        return trend.grows
    by_request = own.requests_per_s > 0 and base.requests_per_s > 0
    ours, theirs = (own.requests_per_s, base.requests_per_s) if by_request else (1.0, 1.0)
    return trend.low_bytes_per_s / ours > CLEARLY * other.high_bytes_per_s / theirs


def _affordable_s(state: CampaignState, deltas: Collection[str], *, beside: float = 0.0) -> float:
    """A soak's time, where an arm has tries left and the budget has room for it, and for what goes with it; else 0."""
    soak_s = _left_s(state, deltas)
    return soak_s if in_budget(state, soak_s + beside) else 0.0


def also_needed_s(state: CampaignState, reference: Collection[str]) -> float:
    """What the soak of a reference takes that an arm's may ask for; 0 where one was made, or none can be."""
    return 0.0 if telling(state, reference) else _left_s(state, reference)


def _left_s(state: CampaignState, deltas: Collection[str]) -> float:
    """A soak's time, where an arm has tries left; else 0."""
    is_left = max(len(completed(state, deltas)), num_interrupted(state, deltas)) < MAX_TRIES
    return state.spec.budget.soak_s if is_left else 0.0
