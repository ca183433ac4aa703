"""Soaking: what is about to ship has to stand its peak load for longer than it is measured.

No launch is made for it. The first run of an arm in composition goes on at its peak load when all is measured, so a
candidate that would crash or leak is stopped before the rest of its brackets is spent; the first confirmation run of a
stack does that was never soaked as it is (an ablation took something out). A soak decides stability, never size: what
the run measured before it counts as it would have without it.

A crash and a standstill are the arm's own. Requests that fail and memory that grows are held against what the arm
stands on, whose next run is then soaked too: where that fails as many of its requests (the traffic, the network, an
engine that does so anyway: `assay.plan.soak_counts`), or grows as well (llama.cpp's cache of prompts does, up to its
limit), the candidate is blamed only for clearly more of it. Few failures are no rate, so both are soaked again as long
as it could tell, in runs that are made anyway.
"""

from __future__ import annotations

from collections.abc import Collection

from assay.plan import soak_counts
from assay.plan.runs import median_run_s
from assay.plan.series import CONFIRMATION, STACK, bracket_counts
from assay.plan.soak_counts import MAX_TRIES, Counts, counted
from assay.plan.soak_words import memory, told
from assay.records.run import RunStatus
from assay.records.soak import MemoryTrend, Soak
from assay.records.spec import MAIN_POINT, Workload
from assay.records.state import CampaignState, RunRecord

GROWTH, ERRORS, HANG = "memory-growth", "errors-under-soak", "hang"
"""Causes of being unstable that a server which lives on tells by nothing else."""
CLEARLY = 1.5
"""Times the reference's growth for each request: below it, what grows is what both are built on."""
UNSOAKED = "reference was not soaked"


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
        return _affordable_s(state, deltas)
    own, base = _counts(state, deltas), _counts(state, reference)
    level = base.soaks >= own.soaks or (base.soaks and not _affordable_s(state, reference))
    return _affordable_s(state, deltas) if level and soak_counts.is_open(own, base) else 0.0


def reference_due_s(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> float:
    """The same of what an arm stands on: only asked for where the arm's own memory grows, or requests of it failed."""
    last = latest(state, deltas)
    own, base = _counts(state, deltas), _counts(state, reference)
    if last is None or not (last.grows or own.failed):
        return 0.0
    more = base.soaks < own.soaks and soak_counts.is_open(own, base)
    return _affordable_s(state, reference) if more or not base.soaks else 0.0


def bracket_due_s(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> float:
    """What soaks add to the next bracket: of an arm, and of what it stands on."""
    return due_s(state, deltas, reference) + reference_due_s(state, deltas, reference)


def is_open(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> bool:
    """Whether requests of an arm failed, and another soak of it or of its reference may tell whose fault it is."""
    return _counts(state, deltas).failed > 0 and bracket_due_s(state, deltas, reference) > 0


def num_interrupted(state: CampaignState, deltas: Collection[str]) -> int:
    """How many soaks of an arm ended with Assay itself (Ctrl-C, a kill), where none was ever completed."""
    asked = _asked(state, deltas)
    return len(asked) if asked and all(_soak(run) is None for run in asked) else 0


def is_owed(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> bool:
    """Whether an arm's soak was begun, never completed, and can be made again: it is not shipped before that."""
    return 0 < num_interrupted(state, deltas) < MAX_TRIES and due_s(state, deltas, reference) > 0


def in_budget(state: CampaignState) -> bool:
    """Whether a soak leaves the time of the confirmation, and of the run it follows and the one closing its bracket."""
    budget, confirmed = state.spec.budget, bracket_counts(state, CONFIRMATION)[STACK]
    begun = any(run.intent.series == CONFIRMATION for run in state.runs)
    reserved = 2 * max(1, budget.confirmation_brackets - confirmed) + (0 if begun else 3)
    return reserved * median_run_s(state) + budget.soak_s <= state.left_s


def latest(state: CampaignState, deltas: Collection[str]) -> Soak | None:
    """The newest soak of an arm that says anything."""
    found = _soaks(state, deltas)
    return found[-1] if found else None


def unstable(
    state: CampaignState, deltas: Collection[str], reference: Collection[str], *, final: bool = False
) -> tuple[str, str] | None:
    """Cause and reason where an arm did not stand its soak; None where it did, or where that is not known yet.

    Args:
        state: the campaign.
        deltas: of the arm.
        reference: of what it stands on.
        final: no more runs will be made, so that an unsoaked reference excuses nothing.
    """
    own = latest(state, deltas)
    if own is None:
        return None
    if own.stalled:
        return HANG, told(own)
    wait = not final and not _soaks(state, reference) and _affordable_s(state, reference) > 0
    if wait or not (own.grows or _counts(state, deltas).failed):
        return None
    beside = _soaks(state, reference) or _soaks(state, _below(deltas))
    return _blamed_for_errors(own, _counts(state, deltas), beside) or _blamed_for_growth(own, beside)


def soaked_words(
    state: CampaignState, deltas: Collection[str], reference: Collection[str], *, brief: bool = False
) -> str:
    """What is known of an arm's stability, as a clause; empty where no soak is asked for.

    Args:
        state: the campaign.
        deltas: of the arm.
        reference: of what it stands on.
        brief: without figures, where there is nothing to worry about.
    """
    own = latest(state, deltas)
    if own is not None:
        failed = _counts(state, deltas).failed
        if own.passed and not failed and brief:
            return f"; stable for {own.soaked_s:.0f} s at its peak load"
        return f"; {told(own)}{_beside(state, own, deltas, reference) if own.grows or failed else ''}"
    tried = _asked(state, deltas)
    soak = _soak(tried[-1]) if tried else None
    if tried and soak is None:
        return "; not soaked: the soak was interrupted"
    if not tried and state.spec.budget.soak_s:
        wanted = f"{state.spec.budget.soak_s:g} s left for it beside the confirmation (budget.soak_s)"
        return f"; not soaked: the budget had no {wanted}"
    return f"; {told(soak)}" if soak is not None else ""


def _blamed_for_errors(own: Soak, counts: Counts, beside: list[Soak]) -> tuple[str, str] | None:
    if not counts.failed:
        return None
    if not beside:
        return ERRORS, f"{told(own)}; the {UNSOAKED}"
    base = counted(beside)
    if not soak_counts.fails_more(counts, base):
        return None
    return ERRORS, f"{told(own)}; {soak_counts.compared(counts, base)}"


def _blamed_for_growth(own: Soak, beside: list[Soak]) -> tuple[str, str] | None:
    base = beside[-1] if beside else None
    if not any(_outgrows(trend, own, base) for trend in own.memory):
        return None
    told_beside = f"the {UNSOAKED}" if base is None else f"its reference: {memory(base)}"
    remedy = "a cache that fills looks the same until it is full: a longer soak (budget.soak_s) tells"
    return GROWTH, f"{told(own)}; {told_beside}; {remedy}"


def _beside(state: CampaignState, own: Soak, deltas: Collection[str], reference: Collection[str]) -> str:
    """What the reference did in its soaks; where it has none, the stack without its last member, else the baseline."""
    beside = _soaks(state, reference) or _soaks(state, _below(deltas)) or _soaks(state, ())
    if not beside:
        return f"; its {UNSOAKED}"
    counts, base = _counts(state, deltas), beside[-1]
    said = f"; {soak_counts.compared(counts, counted(beside))}" if counts.failed else ""
    if not own.grows:
        return said
    return said + (
        f", as its reference's does: {memory(base)}" if base.grows and not said else f"; its reference: {memory(base)}"
    )


def _below(deltas: Collection[str]) -> list[str]:
    """What an arm was built on: it without its last member."""
    return list(deltas)[:-1]


def _outgrows(trend: MemoryTrend, own: Soak, base: Soak | None) -> bool:
    """Whether it grows, and where the reference's does too, by clearly more of each request (a faster arm has more)."""
    other = next((one for one in base.memory if one.where == trend.where), None) if base else None
    if not trend.grows or base is None or other is None or not other.grows:
        return trend.grows
    by_request = own.requests_per_s > 0 and base.requests_per_s > 0
    ours, theirs = (own.requests_per_s, base.requests_per_s) if by_request else (1.0, 1.0)
    return trend.low_bytes_per_s / ours > CLEARLY * other.high_bytes_per_s / theirs


def _affordable_s(state: CampaignState, deltas: Collection[str]) -> float:
    """A soak's time, where an arm has tries left and the budget has room; else 0."""
    tries = [run for run in _asked(state, deltas) if _soak(run) is not None]
    return state.spec.budget.soak_s if len(tries) < MAX_TRIES and in_budget(state) else 0.0


def _asked(state: CampaignState, deltas: Collection[str]) -> list[RunRecord]:
    """Runs of an arm that count and were to be soaked; one whose soak was interrupted has none, and is no try."""
    wanted = set(deltas)
    return [
        run
        for run in state.runs
        if run.intent.soak_s
        and set(run.intent.arm.deltas) == wanted
        and run.outcome is not None
        and run.outcome.status is RunStatus.OK
    ]


def _soaks(state: CampaignState, deltas: Collection[str]) -> list[Soak]:
    """Those of an arm that say anything, oldest first."""
    found = (_soak(run) for run in _asked(state, deltas))
    return [soak for soak in found if soak is not None and soak.passed is not None]


def _counts(state: CampaignState, deltas: Collection[str]) -> Counts:
    return counted(_soaks(state, deltas))


def _soak(run: RunRecord) -> Soak | None:
    return run.outcome.soak if run.outcome else None
