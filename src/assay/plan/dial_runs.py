"""What the record says of a search: every run of it as a trial of one setting, or of the baseline.

The search is rebuilt from these alone, so a killed campaign goes on where it was.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from assay.plan.dial_space import Levels, Space
from assay.plan.runs import MAX_ATTEMPTS
from assay.plan.scores import run_score
from assay.plan.series import MAIN, places_after_pause
from assay.plan.verdicts import RETRY_CAUSES
from assay.records.failure import Cause
from assay.records.run import RunStatus
from assay.records.state import CampaignState, RunRecord

MEMORY_CAUSES = frozenset({Cause.OOM_AT_LOAD, Cause.OOM_AT_CAPTURE, Cause.OOM_UNDER_LOAD, Cause.HOST_OOM, Cause.KILLED})
"""Failures that rule out every setting which takes more memory. The kernel's own killer leaves only "killed"."""


JUMP = 10_000
"""Places between two runs that were not made on the machine in the same state: drift over so many may be anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run as the search sees it."""

    run_id: str
    place: int
    """Its number in the campaign, what drift goes by; `JUMP` more after every long pause or change of the machine."""
    point: Levels | None
    """None: the baseline."""
    value: float | None
    """Log objective, more is better; None: it gave none."""
    is_own: bool
    """Made by this search; others are the baseline's runs before and beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """A setting that is not to be run again, and why."""

    point: Levels
    reason: str
    by_memory: bool
    """Settings that take no less memory are out too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The search so far."""

    trials: list[Trial]
    excluded: list[Excluded]
    num_launches: int
    """Of the search, those that gave nothing among them."""

    @property
    def valid(self) -> list[Trial]:
        """Those with a value."""
        return [trial for trial in self.trials if trial.value is not None]

    @property
    def has_baseline(self) -> bool:
        """Whether there is anything that a setting can be held against."""
        return any(trial.point is None for trial in self.valid)

    def since_baseline(self) -> int | None:
        """Valid runs since the baseline was last seen on the machine as it is now; None: it has not been."""
        newest = self.valid[-1].place if self.valid else 0
        seen = [n for n, trial in enumerate(self.valid) if trial.point is None and newest - trial.place < JUMP / 2]
        return len(self.valid) - 1 - seen[-1] if seen else None


def series_of(candidate: str) -> str:
    """Name of the series in which a dial is searched."""
    return f"dial:{candidate}"


def history(state: CampaignState, candidate: str, space: Space) -> History:
    """Read a search from the record; runs at settings that the dial no longer has are passed over."""
    trials: list[Trial] = []
    troubles: dict[Levels, list[RunRecord]] = defaultdict(list)
    launches = 0
    for place, run in zip(_places(state), state.runs, strict=True):
        is_own = run.intent.series == series_of(candidate)
        point = space.find(run.intent.arm.flags) if is_own and run.intent.candidate is not None else None
        is_baseline = run.intent.candidate is None and (is_own or run.intent.series == MAIN)
        if run.outcome is None or run.outcome.status is RunStatus.ABANDONED or (point is None and not is_baseline):
            continue
        launches += is_own
        value = _value(state, run)
        trials.append(Trial(run_id=run.intent.run_id, place=place, point=point, value=value, is_own=is_own))
        if point is not None and value is None:
            troubles[point].append(run)
    out = [found for point, runs in troubles.items() if (found := _excluded(point, runs)) is not None]
    return History(trials=trials, excluded=out, num_launches=launches)


def log_ratios(found: History) -> list[tuple[Trial, float]]:
    """Every setting's run against the baseline's level at its place, read off between the neighbouring runs of it.

    Before the first and after the last of them, that one's level holds.
    """
    known = [(trial.place, trial.value) for trial in found.valid if trial.point is None and trial.value is not None]
    if not known:
        return []
    return [
        (trial, trial.value - _level(known, trial.place))
        for trial in found.valid
        if trial.point is not None and trial.value is not None
    ]


def _places(state: CampaignState) -> list[int]:
    """When each run was made, in runs; a gap where the machine may have become another."""
    paused = set(places_after_pause(state))
    places = [0] if state.runs else []
    for number, (earlier, later) in enumerate(pairwise(state.runs), start=1):
        moved = "" not in {earlier.intent.host, later.intent.host} and earlier.intent.host != later.intent.host
        places.append(places[-1] + (JUMP if moved or number in paused else 1))
    return places


def _level(known: list[tuple[int, float]], place: int) -> float:
    before = max((one for one in known if one[0] <= place), default=known[0])
    after = min((one for one in known if one[0] >= place), default=known[-1])
    if before[0] == after[0]:
        return before[1]
    share = (place - before[0]) / (after[0] - before[0])
    return before[1] + share * (after[1] - before[1])


def _value(state: CampaignState, run: RunRecord) -> float | None:
    if run.outcome is None or run.outcome.status is not RunStatus.OK:
        return None
    return run_score(state, run)


def _excluded(point: Levels, runs: list[RunRecord]) -> Excluded | None:
    """What a setting's runs without a value say; None while they may have been accidents."""
    outcomes = [run.outcome for run in runs if run.outcome is not None]
    failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    short = next((one for one in failures if one.cause in MEMORY_CAUSES), None)
    if short is not None:
        return Excluded(point=point, reason=f"{short.cause}: {short.line}", by_memory=True)
    certain = [o for o in outcomes if o.status in {RunStatus.NOT_APPLIED, RunStatus.WRONG_OUTPUT}]
    accidents = [one for one in failures if one.cause in RETRY_CAUSES]
    if certain or len(failures) > len(accidents) or len(accidents) > 1 or len(outcomes) >= MAX_ATTEMPTS:
        return Excluded(point=point, reason=outcomes[-1].reason, by_memory=False)
    return None
