"""Ablation: each member of the stack is taken out once, and stays out where the stack loses nothing worth having.

Members were adopted one on top of the other; a later one can make an earlier one superfluous. The last one adopted was
tested against exactly the rest, so it is left out. What ships is the smallest stack that holds the gain.
"""

from __future__ import annotations

import math

from assay.plan.arms import arm_with
from assay.plan.composing import stack_of
from assay.plan.evidence import ablation_effect
from assay.plan.runs import MAX_ATTEMPTS, candidates_turn, intent, median_run_s, runs_of, uncounted_tail
from assay.plan.series import ablation_series, valid_runs, why_not_counted
from assay.plan.steps import MakeRun, RecordAblation, Step
from assay.plan.verdicts import effect_text
from assay.records.hypothesis import Hypothesis
from assay.records.run import Purpose
from assay.records.state import Ablation, CampaignState
from assay.records.verdict import Effect


def next_ablation(state: CampaignState) -> Step | None:
    """The next step of the ablation; None when every member has been asked about, or the stack has only one."""
    if len(state.stack) < 2:  # noqa: PLR2004 - without its only member it is the baseline: that is the confirmation
        return None
    waiting = [h for h in stack_of(state)[:-1] if h.id not in state.ablations]
    if not waiting:
        return None
    return _conclude(state, waiting[0]) or _next_run(state, waiting[0])


def _conclude(state: CampaignState, member: Hypothesis) -> RecordAblation | None:
    series, budget = ablation_series(member.id), state.spec.budget
    ids = [run.intent.run_id for run in state.runs if run.intent.series == series]
    uncounted = uncounted_tail(state, runs_of(state, series, member.id))
    if len(uncounted) >= MAX_ATTEMPTS:
        reason = f"kept: the stack without it cannot be measured ({why_not_counted(state, uncounted[-1])})"
        return _recorded(member, None, kept=True, reason=reason, runs=ids)
    found = ablation_effect(state, member.id)
    if found is None or found.num_brackets < min(budget.min_brackets, budget.composition_brackets):
        return _unaffordable(state, member, found, ids)
    worth = math.log1p(state.spec.objective.min_effect)
    if found.high < 0:
        reason = f"needed: without it the stack is at {effect_text(found)}"
        return _recorded(member, found, kept=True, reason=reason, runs=ids)
    if found.low > -worth:
        reason = (
            f"without it the stack is at {effect_text(found)}, no loss of {100 * state.spec.objective.min_effect:g}%"
        )
        return _recorded(member, found, kept=False, reason=reason, runs=ids)
    if found.num_brackets >= budget.composition_brackets:
        reason = f"kept: not shown to be superfluous, without it the stack is at {effect_text(found)}"
        return _recorded(member, found, kept=True, reason=reason, runs=ids)
    return _unaffordable(state, member, found, ids)


def _unaffordable(
    state: CampaignState, member: Hypothesis, found: Effect | None, ids: list[str]
) -> RecordAblation | None:
    """Kept, where another bracket would eat what the confirmation needs."""
    needed_runs = 2 + 2 * state.spec.budget.confirmation_brackets + 1
    if needed_runs * median_run_s(state) <= state.left_s:
        return None
    reason = "kept: the budget does not reach to ask whether the stack needs it"
    return _recorded(member, found, kept=True, reason=reason, runs=ids)


def _recorded(member: Hypothesis, found: Effect | None, *, kept: bool, reason: str, runs: list[str]) -> RecordAblation:
    return RecordAblation(ablation=Ablation(candidate=member.id, effect=found, kept=kept, reason=reason, runs=runs))


def _next_run(state: CampaignState, member: Hypothesis) -> MakeRun:
    series = ablation_series(member.id)
    runs = valid_runs(state, series)
    without_turn = candidates_turn(runs)
    stack = stack_of(state)
    left = [h for h in stack if h.id != member.id]
    return MakeRun(
        intent=intent(
            state,
            purpose=Purpose.ABLATION,
            series=series,
            candidate=member.id if without_turn else None,
            arm=arm_with(state.spec.target, left if without_turn else stack),
            why=f"does the stack need {member.id}? Measured without it, against the stack",
        )
    )
