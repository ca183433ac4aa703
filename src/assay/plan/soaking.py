"""Soaking: what is about to ship has to stand its peak load for longer than it is measured.

No launch is made for it. The first run of an arm in composition goes on at its peak load when all is measured, so a
candidate that would crash or leak is stopped before the rest of its brackets is spent; the first confirmation run of a
stack does that was never soaked as it is (an ablation took something out). A soak decides stability, never size: what
the run measured before it counts as it would have without it.

Memory that grows is held against what the arm stands on, whose next run is then soaked too: where that grows as well
(llama.cpp's cache of prompts does, up to its limit), the candidate is blamed only for clearly more of each request.
"""

from __future__ import annotations

from collections.abc import Collection

from assay.plan.runs import median_run_s
from assay.records.run import RunStatus
from assay.records.soak import MemoryTrend, Soak
from assay.records.spec import MAIN_POINT, Workload
from assay.records.state import CampaignState, RunRecord
from assay.units import MIB_BYTES

GROWTH, ERRORS, HANG = "memory-growth", "errors-under-soak", "hang"
"""Causes of being unstable that a server which lives on tells by nothing else."""
MAX_TRIES = 3
"""Soaks of one arm that say nothing, after which it ships unsoaked, and that is said."""
CLEARLY = 1.5
"""Times the reference's growth for each request: below it, what grows is what both are built on."""
MINUTE_S = 60.0


def peak(workload: Workload) -> tuple[str, Workload]:
    """The operating point at which most tokens can be in flight, with its load."""
    loads = {MAIN_POINT: workload.model_copy(update={"points": []})}
    loads |= {point.name: workload.at(point) for point in workload.points}
    return max(
        loads.items(), key=lambda item: item[1].concurrency * (item[1].prompt_tokens[1] + item[1].output_tokens[1])
    )


def due_s(state: CampaignState, deltas: Collection[str]) -> float:
    """For how long the next run of an arm is to be soaked; 0: it was, it is not asked for, or its time is not left."""
    if latest(state, deltas) is not None or len(_tries(state, deltas)) >= MAX_TRIES or not in_budget(state):
        return 0.0
    return state.spec.budget.soak_s


def in_budget(state: CampaignState) -> bool:
    """Whether the time is left for a soak, the run that it follows and the reference run that closes its bracket."""
    budget = state.spec.budget
    return state.spent_s + 2 * median_run_s(state) + budget.soak_s <= budget.total_s


def reference_due_s(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> float:
    """The same of what an arm stands on: only asked for where the arm's own memory grows."""
    own = latest(state, deltas)
    return due_s(state, reference) if own is not None and own.grows else 0.0


def latest(state: CampaignState, deltas: Collection[str]) -> Soak | None:
    """The newest soak of an arm that says anything."""
    told = [soak for run in _tries(state, deltas) if (soak := _soak(run)) is not None and soak.passed is not None]
    return told[-1] if told else None


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
    own, base = latest(state, deltas), latest(state, reference)
    if own is None or own.passed:
        return None
    if own.failed or own.stalled:
        return (ERRORS if own.failed else HANG), told(own)
    if base is None and not final and due_s(state, reference):
        return None
    if base is not None and not any(_outgrows(trend, own, base) for trend in own.memory):
        return None
    beside = "the reference was not soaked" if base is None else f"its reference: {_memory(base)}"
    remedy = "a cache that fills looks the same until it is full: a longer soak (budget.soak_s) tells"
    return GROWTH, f"{told(own)}; {beside}; {remedy}"


def soaked_words(state: CampaignState, deltas: Collection[str], *, brief: bool = False) -> str:
    """What is known of an arm's stability, as a clause; empty where no soak is asked for.

    Args:
        state: the campaign.
        deltas: of the arm.
        brief: without figures, where there is nothing to worry about.
    """
    own = latest(state, deltas)
    if own is not None and own.passed and brief:
        return f"; stable for {own.soaked_s:.0f} s at its peak load"
    if own is not None:
        return f"; {told(own)}" + (_beside(state, deltas) if own.grows else "")
    tries = _tries(state, deltas)
    soak = _soak(tries[-1]) if tries else None
    if not tries and state.spec.budget.soak_s:
        return f"; not soaked: the budget had no {state.spec.budget.soak_s:g} s left for it (budget.soak_s)"
    return f"; {told(soak)}" if soak is not None else ""


def _beside(state: CampaignState, deltas: Collection[str]) -> str:
    """What the same memory does under what the arm stands on: its stack without the last member, else the baseline."""
    base = latest(state, list(deltas)[:-1]) or latest(state, ())
    if base is None:
        return "; its reference was not soaked"
    return f", as its reference's does: {_memory(base)}" if base.grows else f"; its reference: {_memory(base)}"


def told(soak: Soak) -> str:
    """A soak in one clause, with its figures."""
    if soak.passed is None:
        return f"not soaked: {soak.problem}"
    failed = "none failed" if not soak.failed else f"{soak.failed:,} failed, the first: {soak.first_error}"
    still = f", and no token came for the last {soak.silent_s:.0f} s" if soak.stalled else ""
    where = f"{soak.concurrency} streams" if soak.point == MAIN_POINT else f"{soak.point}, {soak.concurrency} streams"
    return f"soaked for {soak.soaked_s:.0f} s at {where}: {soak.requests:,} requests, {failed}{still}; {_memory(soak)}"


def _memory(soak: Soak) -> str:
    parts = [_trend(trend) for trend in soak.memory]
    parts += [f"memory of the {where} is not known ({why})" for where, why in soak.unknown.items()]
    return ", ".join(parts) or "memory was not looked at"


def _trend(trend: MemoryTrend) -> str:
    rate, low, high = trend.bytes_per_s, trend.low_bytes_per_s, trend.high_bytes_per_s
    if trend.grows or low <= 0:
        grows = "grows" if trend.grows else "does not grow"
    else:
        grows = "levels off" if trend.levels_off else "grows within what is tolerated"
    bound = f", {_per_minute(trend.tolerated_bytes_per_s)} tolerated" if low > 0 else ""
    told = f"{_per_minute(rate)} MiB/min [{_per_minute(low)}, {_per_minute(high)}]{bound}"
    return f"memory of the {trend.where} {grows} ({told})"


def _per_minute(bytes_per_s: float) -> str:
    value = bytes_per_s * MINUTE_S / MIB_BYTES
    return f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.2g}"  # noqa: PLR2004 - three digits are all there are


def _outgrows(trend: MemoryTrend, own: Soak, base: Soak) -> bool:
    """Whether it grows, and where the reference's does too, by clearly more of each request (a faster arm has more)."""
    other = next((one for one in base.memory if one.where == trend.where), None)
    if not trend.grows or other is None or not other.grows:
        return trend.grows
    by_request = own.requests_per_s > 0 and base.requests_per_s > 0
    ours, theirs = (own.requests_per_s, base.requests_per_s) if by_request else (1.0, 1.0)
    return trend.low_bytes_per_s / ours > CLEARLY * other.high_bytes_per_s / theirs


def _tries(state: CampaignState, deltas: Collection[str]) -> list[RunRecord]:
    """Runs of an arm that count and were to be soaked."""
    wanted = set(deltas)
    return [
        run
        for run in state.runs
        if run.intent.soak_s
        and set(run.intent.arm.deltas) == wanted
        and run.outcome is not None
        and run.outcome.status is RunStatus.OK
    ]


def _soak(run: RunRecord) -> Soak | None:
    return run.outcome.soak if run.outcome else None
