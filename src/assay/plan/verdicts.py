"""From outcomes and effects to verdicts, each with the sentence that a person can quote."""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.plan.steps import RecordVerdict
from assay.records.failure import Cause
from assay.records.hypothesis import Hypothesis
from assay.records.run import RunOutcome, RunStatus
from assay.records.state import RunRecord
from assay.records.verdict import Effect, Verdict, VerdictKind

RETRY_CAUSES = frozenset(
    {Cause.TIMEOUT, Cause.KILLED, Cause.UNKNOWN, Cause.CRASHED, Cause.ENGINE_ASSERTION, Cause.PORT_IN_USE}
)
"""Failures that may be an accident: tried once more. Everything else fails the same way again."""
BUDGET_ENDED = "the budget ended"
"""In the reason of every verdict that the budget's end decided."""
AT_PLAN_TIME, IMPLIED, DEPENDENCY = "plan", "implied", "dependency"
NOT_TRIED = frozenset({AT_PLAN_TIME, IMPLIED, DEPENDENCY})
"""Causes of being blocked without a run: by the build or the target, by another arm's failure, by what is required."""
TOO_EARLY = frozenset({"budget", "invalid", "stack-failed"})
"""Causes of being undecided without an effect: it was not measured, and could be."""


def effect_text(effect: Effect) -> str:
    """For example "+12.3% [+4.1, +21.2]"."""
    return f"{effect.percent:+.1f}% [{effect.percent_low:+.1f}, {effect.percent_high:+.1f}]"


def blocked_at_plan_time(hypothesis: Hypothesis) -> RecordVerdict:
    """The installed build or the target cannot take it."""
    reason = hypothesis.blocked_reason or "blocked in its document"
    return RecordVerdict(
        verdict=Verdict(candidate=hypothesis.id, kind=VerdictKind.BLOCKED, cause=AT_PLAN_TIME, reason=reason)
    )


def from_outcome(hypothesis: Hypothesis, runs: Sequence[RunRecord], effect: Effect | None) -> RecordVerdict | None:
    """The verdict that a failed, unapplied or wrong run already decides; None when there is nothing to decide yet.

    Args:
        hypothesis: the candidate.
        runs: its ended runs in one series, oldest first.
        effect: what was measured of it so far, if anything.
    """
    outcomes = [run.outcome for run in runs if run.outcome is not None]
    if not outcomes:
        return None
    last = outcomes[-1]
    ids = [outcome.run_id for outcome in outcomes]
    if last.status is RunStatus.FAILED and last.failure is not None:
        return _from_failure(hypothesis, outcomes, ids, effect)
    kinds = {RunStatus.NOT_APPLIED: VerdictKind.NOT_APPLIED, RunStatus.WRONG_OUTPUT: VerdictKind.WRONG_OUTPUT}
    if kind := kinds.get(last.status):
        line = next((line for line in last.fallbacks if line in last.reason), None)  # the one that the reason rests on
        return RecordVerdict(
            verdict=Verdict(candidate=hypothesis.id, kind=kind, reason=last.reason, line=line, runs=ids)
        )
    return None


def _from_failure(
    hypothesis: Hypothesis, outcomes: list[RunOutcome], ids: list[str], effect: Effect | None
) -> RecordVerdict | None:
    last = outcomes[-1]
    failure = last.failure
    assert failure is not None
    failures = [outcome for outcome in outcomes if outcome.status is RunStatus.FAILED]
    if failure.cause in RETRY_CAUSES and len(failures) == 1:
        return None
    ran_before = any(outcome.status is RunStatus.OK for outcome in outcomes)
    unstable = ran_before or failure.stage in {"under-load", "warm-up"}
    return RecordVerdict(
        verdict=Verdict(
            candidate=hypothesis.id,
            kind=VerdictKind.UNSTABLE if unstable else VerdictKind.BLOCKED,
            cause=failure.cause,
            reason=last.reason,
            line=failure.line,
            effect=effect if ran_before else None,
            runs=ids,
        )
    )


def unclear(effect: Effect, worth: str) -> str:
    """What an interval that decides nothing leaves open."""
    if effect.low > 0:
        return f"a gain, but not shown to be worth {worth}"
    return "cannot tell from noise"


def given_up(effect: Effect, chance: float, worth: str) -> str:
    """Why a trial ends although brackets are left."""
    return (
        f"{unclear(effect, worth)}; given up after {brackets_text(effect)}: "
        f"the chance that the rest would show a gain of {worth} or more is {chance_text(chance)}"
    )


def brackets_text(effect: Effect) -> str:
    """What an effect rests on: "1 bracket", "4 brackets"."""
    return "1 bracket" if effect.num_brackets == 1 else f"{effect.num_brackets} brackets"


def chance_text(chance: float) -> str:
    """In whole percent, or "less than 1%": a chance of "0%" would say too much."""
    return f"{100 * chance:.0f}%" if chance >= 0.01 else "less than 1%"  # noqa: PLR2004 - what is written beside it


def measured(hypothesis: Hypothesis, kind: VerdictKind, effect: Effect, reason: str, runs: list[str]) -> Verdict:
    """A verdict that rests on an effect; the prediction is scored on the way."""
    low, high = (math.log1p(bound) if bound > -1 else -math.inf for bound in hypothesis.predicted)
    return Verdict(
        candidate=hypothesis.id,
        kind=kind,
        reason=f"{effect_text(effect)}: {reason}",
        effect=effect,
        runs=runs,
        predicted=hypothesis.predicted,
        prediction_held=effect.low <= high and effect.high >= low,
    )


def unmeasured(hypothesis: Hypothesis, reason: str, cause: str, runs: list[str]) -> Verdict:
    """Undecided without an effect."""
    return Verdict(candidate=hypothesis.id, kind=VerdictKind.UNDECIDED, cause=cause, reason=reason, runs=runs)


def is_unmeasured(verdict: Verdict) -> bool:
    """Whether it says no more than that nothing was measured."""
    return verdict.kind is VerdictKind.UNDECIDED and verdict.effect is None and verdict.cause in TOO_EARLY
