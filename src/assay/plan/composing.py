"""Composition: promising candidates are tested again, on fresh runs, on top of the stack so far.

Only these runs decide adoption. They are independent of the screen that chose the candidates, and the declared
error rate is divided by the number of candidates that got here, so the chance that the campaign adopts anything
useless stays below `adopt_alpha` however many were screened (Bonferroni on fresh data).
"""

from __future__ import annotations

from assay.plan import soaking
from assay.plan.answers_told import untold_clause
from assay.plan.arms import arm_with
from assay.plan.conditions import standing
from assay.plan.cost import LEAST_CONFIRMED, least_runs
from assay.plan.dependencies import num_waiting
from assay.plan.evidence import composition_chance, composition_effect
from assay.plan.runs import MAX_ATTEMPTS, candidates_turn, intent, median_run_s, runs_of, uncounted_tail
from assay.plan.series import composition, valid_runs, why_not_counted
from assay.plan.soak_counts import MAX_TRIES
from assay.plan.soak_reports import soaked_words
from assay.plan.soaks_made import num_interrupted
from assay.plan.steps import MakeRun, RecordVerdict, Step
from assay.plan.verdicts import BUDGET_ENDED, from_outcome, given_up, measured, unclear, unmeasured
from assay.records.hypothesis import Hypothesis
from assay.records.run import Purpose
from assay.records.state import CampaignState
from assay.records.verdict import Effect, Verdict, VerdictKind
from assay.stats.sequential import decide


def promising(state: CampaignState) -> list[Hypothesis]:
    """Candidates that reached composition, best lower bound first."""
    results = sorted(state.screened.values(), key=lambda result: -result.effect.low)
    by_id = {h.id: h for h in state.hypotheses}
    return [by_id[result.candidate] for result in results if result.promising]


def stack_of(state: CampaignState) -> list[Hypothesis]:
    """The adopted hypotheses, in order of adoption."""
    by_id = {h.id: h for h in state.hypotheses}
    return [by_id[name] for name in state.stack]


def next_composition(state: CampaignState) -> Step | None:
    """The next step of the composition; None when every promising candidate has its verdict."""
    waiting = [h for h in promising(state) if h.id not in state.verdicts and h.status == "planned"]
    if not waiting:
        return None
    hypothesis = waiting[0]
    if rival := _rival(state, hypothesis):
        reason = f"not tested again: {rival} of the same family is in the stack and had the better lower bound"
        return RecordVerdict(verdict=unmeasured(hypothesis, reason, "excluded", []))
    if _comes_too_late(state, hypothesis):
        reason = f"promising in the screen, and {BUDGET_ENDED} before it was tested again on fresh runs"
        return RecordVerdict(verdict=unmeasured(hypothesis, reason, "budget", []))
    if step := _conclude(state, hypothesis):
        return _with_fall(state, hypothesis, step)
    return _next_run(state, hypothesis)


def _with_fall(state: CampaignState, hypothesis: Hypothesis, step: RecordVerdict) -> RecordVerdict:
    """What is not adopted says, too, that it fell in a soak, where it is not blamed for that."""
    verdict, doubt = step.verdict, soaking.suspect(state, [*state.stack, hypothesis.id], state.stack)
    if not doubt or verdict.kind in {VerdictKind.ADOPTED, VerdictKind.UNSTABLE}:
        return step
    reason = f"{verdict.reason}; not shown to be stable: {doubt}"
    return RecordVerdict(verdict=verdict.model_copy(update={"reason": reason}))


def _num_sharing(state: CampaignState) -> int:
    """Over how many the error rate is shared out: who is here, and who may still come."""
    return len(promising(state)) + num_waiting(state)


def _rival(state: CampaignState, hypothesis: Hypothesis) -> str | None:
    return next((member.id for member in stack_of(state) if member.rivals(hypothesis)), None)


def _comes_too_late(state: CampaignState, hypothesis: Hypothesis) -> bool:
    """Whether there is no time for the shortest trial and the shortest confirmation; the best one is tried anyway."""
    begun = {run.intent.series for run in state.runs if run.intent.purpose is Purpose.COMPOSITION}
    if not begun or composition(hypothesis.id) in begun:
        return False
    return least_runs(state.spec.budget) * median_run_s(state) > state.left_s


def _conclude(state: CampaignState, hypothesis: Hypothesis) -> RecordVerdict | None:
    series = composition(hypothesis.id)
    ended = runs_of(state, series, hypothesis.id)
    found = composition_effect(state, hypothesis.id, _num_sharing(state))
    if step := from_outcome(hypothesis, ended, found) or _unstable(state, hypothesis, found):
        return step
    ids = [run.intent.run_id for run in state.runs if run.intent.series == series]
    on = "the stack" if state.stack else "the baseline, on fresh runs"
    if len(uncounted := uncounted_tail(state, ended)) >= MAX_ATTEMPTS:
        why = why_not_counted(state, uncounted[-1])
        reason = f"{len(uncounted)} invalid runs in a row on top of {on}; last: {why}"
        return RecordVerdict(verdict=unmeasured(hypothesis, reason, "invalid", ids))
    if len(broken := uncounted_tail(state, runs_of(state, series, None))) >= MAX_ATTEMPTS and state.stack:
        why = why_not_counted(state, broken[-1])
        reason = f"the stack it was to be tested on failed {len(broken)} times in a row; last: {why}"
        return RecordVerdict(verdict=unmeasured(hypothesis, reason, "stack-failed", ids))
    budget = state.spec.budget
    if found is None or found.num_brackets < min(budget.min_brackets, budget.composition_brackets):
        return None
    decision = decide(found, state.spec.objective.min_effect)
    last = found.num_brackets >= budget.composition_brackets or _out_of_budget(state, hypothesis)
    if decision == "better":
        return _gained(state, hypothesis, found, ids, on, last=last)
    if decision == "worse":
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.WORSE, found, f"a loss on top of {on}", ids))
    if decision == "no-effect":
        reason = f"promising in the screen, no effect on top of {on}"
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.NO_EFFECT, found, reason, ids))
    worth = f"{100 * state.spec.objective.min_effect:g}%"
    if last:
        reason = f"promising in the screen; on top of {on}: {unclear(found, worth)}"
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.UNDECIDED, found, reason, ids))
    chance = composition_chance(state, found, _num_sharing(state))
    if chance < state.spec.statistics.give_up_below:
        reason = f"promising in the screen; on top of {on}: {given_up(found, chance, worth)}"
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.UNDECIDED, found, reason, ids))
    return None


def _gained(
    state: CampaignState, hypothesis: Hypothesis, found: Effect, ids: list[str], on: str, *, last: bool
) -> RecordVerdict | None:
    """Adopted, if it is stable and costs nothing that it must not; more runs where that is not shown yet."""
    grown = [*state.stack, hypothesis.id]
    if soaking.is_owed(state, grown, state.stack):
        return None  # its soak was cut off, or its reference's comes first: another run is made for it
    if not last and soaking.is_open(state, grown, state.stack):
        return None  # it fell, or requests failed: further soaks may tell whose fault it is
    if (times := num_interrupted(state, grown)) >= MAX_TRIES:
        reason = f"a gain on top of {on}; each of {times} soaks ended with Assay itself, and this arm may be why"
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.UNDECIDED, found, reason, ids))
    costs = standing(state, composition(hypothesis.id), hypothesis.id)
    if costs.broken:
        reason = f"a gain on top of {on} that costs too much: {costs.broken}"
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.WORSE, found, reason, ids))
    if soaking.suspect(state, grown, state.stack):
        reason = f"a gain on top of {on}"
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.UNDECIDED, found, reason, ids))
    if costs.unproved and not last:
        return None
    if costs.unproved:
        reason = f"a gain on top of {on}, not shown to cost nothing: {costs.unproved}"
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.UNDECIDED, found, reason, ids))
    reason = f"gain on top of {on}{soaked_words(state, grown, state.stack)}{untold_clause(state, grown)}"
    return RecordVerdict(verdict=measured(hypothesis, VerdictKind.ADOPTED, found, reason, ids))


def _unstable(state: CampaignState, hypothesis: Hypothesis, found: Effect | None) -> RecordVerdict | None:
    """It did not stand its soak, whatever it gained; its own runs stand last, where its log is looked for."""
    blamed = soaking.unstable(state, [*state.stack, hypothesis.id], state.stack)
    if blamed is None:
        return None
    series = [run.intent for run in state.runs if run.intent.series == composition(hypothesis.id)]
    ids = [one.run_id for one in sorted(series, key=lambda one: one.candidate is not None)]
    return RecordVerdict(
        verdict=Verdict(
            candidate=hypothesis.id,
            kind=VerdictKind.UNSTABLE,
            cause=blamed.cause,
            reason=blamed.reason,
            line=blamed.line,
            effect=found,
            runs=ids,
        )
    )


def _out_of_budget(state: CampaignState, hypothesis: Hypothesis) -> bool:
    reserved = 2 * (state.spec.budget.confirmation_brackets if state.stack else LEAST_CONFIRMED) + 1
    grown = [*state.stack, hypothesis.id]
    return (2 + reserved) * median_run_s(state) + soaking.bracket_due_s(state, grown, state.stack) > state.left_s


def _next_run(state: CampaignState, hypothesis: Hypothesis) -> MakeRun:
    series = composition(hypothesis.id)
    runs = valid_runs(state, series)
    candidate_turn = candidates_turn(runs)
    stack = stack_of(state)
    deltas = [*stack, hypothesis] if candidate_turn else stack
    done = sum(1 for run in runs if run.intent.candidate is not None)
    on = f"the stack ({' + '.join(state.stack)})" if state.stack else "the baseline"
    grown = [*state.stack, hypothesis.id]
    soak_s = (
        soaking.due_s(state, grown, state.stack)
        if candidate_turn
        else soaking.reference_due_s(state, grown, reference=state.stack)
    )
    return MakeRun(
        intent=intent(
            state,
            purpose=Purpose.COMPOSITION,
            series=series,
            candidate=hypothesis.id if candidate_turn else None,
            arm=arm_with(state.spec.target, deltas),
            why=f"testing {hypothesis.id} again on top of {on}, bracket {max(done, 1)}",
            soak_s=soak_s,
        )
    )
