"""Confirmation: the final stack against the original baseline on fresh runs; the headline comes from nowhere else."""

from __future__ import annotations

import statistics

from assay.plan import soaking
from assay.plan.answers_told import untold_clause
from assay.plan.arms import arm_with, baseline_arm
from assay.plan.composing import stack_of
from assay.plan.cost import LEAST_CONFIRMED
from assay.plan.evidence import confirmation_effect
from assay.plan.runs import MAX_ATTEMPTS, candidates_turn, intent, median_run_s, runs_of, uncounted_tail
from assay.plan.scores import is_latency, metric_value
from assay.plan.series import CONFIRMATION, MAIN, STACK, series_brackets, valid_runs, why_not_counted
from assay.plan.soak_reports import NOT_SHOWN, memory_grows, not_shown_stable, soaked_words
from assay.plan.steps import Finish, MakeRun, Step
from assay.plan.verdicts import effect_text, is_unmeasured
from assay.records.run import Purpose, RunStatus
from assay.records.state import CampaignState
from assay.records.verdict import Effect, Headline

MAX_CRASHES = 2
"""Crashes of the stack after which it is not confirmed, whatever it gained in between."""


def next_confirmation(state: CampaignState) -> Step:
    """The next step of the confirmation, and the end of the campaign."""
    if not state.stack:
        return Finish(headline=_nothing_adopted(state))
    have = len(series_brackets(state, CONFIRMATION).of(STACK))
    enough = have >= state.spec.budget.confirmation_brackets or (have >= LEAST_CONFIRMED and _over_budget(state))
    if (enough and not soaking.is_owed(state, state.stack, [])) or stack_failure(state):
        return Finish(headline=_confirmed(state))
    runs = valid_runs(state, CONFIRMATION)
    stack_turn = candidates_turn(runs)
    deltas = stack_of(state)
    wanted = state.spec.budget.confirmation_brackets
    soak_s = soaking.due_s(state, state.stack, []) if stack_turn else soaking.reference_due_s(state, state.stack, [])
    return MakeRun(
        intent=intent(
            state,
            purpose=Purpose.CONFIRMATION,
            series=CONFIRMATION,
            candidate=STACK if stack_turn else None,
            arm=arm_with(state.spec.target, deltas) if stack_turn else baseline_arm(state.spec.target),
            why=f"confirming the stack against the original baseline: bracket {have + 1} of {wanted}",
            soak_s=soak_s,
        )
    )


def _over_budget(state: CampaignState) -> bool:
    return 2 * median_run_s(state) + soaking.bracket_due_s(state, state.stack, []) > state.left_s


def stack_failure(state: CampaignState) -> str | None:
    """Why the stack cannot be confirmed on fresh runs; None while it holds."""
    if blamed := soaking.unstable(state, state.stack, []):
        return f"unstable ({blamed.cause}): {blamed.reason}"
    ended = [run for run in runs_of(state, CONFIRMATION, STACK) if run.intent.arm.deltas == state.stack]
    crashed = [run for run in ended if run.outcome and run.outcome.status is RunStatus.FAILED]
    if len(crashed) >= MAX_CRASHES:
        return f"it failed in {len(crashed)} of {len(ended)} fresh runs; last: {why_not_counted(state, crashed[-1])}"
    uncounted = uncounted_tail(state, ended)
    if len(uncounted) >= MAX_ATTEMPTS:
        return f"{len(uncounted)} of its runs in a row do not count; last: {why_not_counted(state, uncounted[-1])}"
    return None


def nothing_measured(state: CampaignState) -> str | None:
    """Why no candidate of a campaign was measured, in words; None where the runs say something of at least one."""
    left = [verdict for verdict in state.verdicts.values() if is_unmeasured(verdict)]
    told = any(verdict.runs or verdict.effect for verdict in state.verdicts.values() if verdict not in left)
    if told or not left:
        return None
    if any(verdict.cause == "invalid" for verdict in left):
        return "no run of any candidate passed its gates"
    return "the budget ended before any candidate"


def _nothing_adopted(state: CampaignState) -> Headline:
    runs = [run for run in valid_runs(state, MAIN) if run.intent.candidate is None]
    why = nothing_measured(state)
    stands = "the launch command in use today stands"
    return Headline(
        stack=[],
        flags=dict(state.spec.target.flags),
        effect=None,
        baseline_median=_median(state, [run.intent.run_id for run in runs]),
        stack_median=None,
        confirmed=False,
        sentence=f"Not measured: {why}; {stands}, untested." if why else f"Nothing was adopted: {stands}.",
        runs=[run.intent.run_id for run in runs],
    )


def _confirmed(state: CampaignState) -> Headline:
    effect = confirmation_effect(state)
    runs = valid_runs(state, CONFIRMATION)
    baseline = [run.intent.run_id for run in runs if run.intent.candidate is None]
    stack = [run.intent.run_id for run in runs if run.intent.candidate is not None]
    failure = stack_failure(state) or _suspicion(state)
    confirmed = effect is not None and effect.low > 0 and failure is None
    return Headline(
        stack=list(state.stack),
        flags=arm_with(state.spec.target, stack_of(state)).flags,
        effect=effect,
        baseline_median=_median(state, baseline),
        stack_median=_median(state, stack),
        confirmed=confirmed,
        sentence=_sentence(state, effect, failure),
        not_shown_stable=not_shown_stable(state, state.stack, []) if confirmed else None,
        memory_grows=memory_grows(state, state.stack, []) if confirmed or _blames_a_soak(state) else "no",
        runs=baseline + stack,
    )


def _suspicion(state: CampaignState) -> str | None:
    doubt = soaking.suspect(state, state.stack, [])
    return f"{NOT_SHOWN}: {doubt}" if doubt else None


def _blames_a_soak(state: CampaignState) -> bool:
    """Whether the sentence of a stack that is not confirmed tells of its soak."""
    return soaking.unstable(state, state.stack, []) is not None or _suspicion(state) is not None


def _sentence(state: CampaignState, effect: Effect | None, failure: str | None) -> str:
    names = " + ".join(state.stack)
    if failure is not None:
        return f"{names} was adopted, but is not confirmed: {failure}."
    if effect is None:
        return f"{names} was adopted, but could not be confirmed: no valid bracket on fresh runs."
    metric = state.spec.objective.metric
    gain = f"{effect_text(effect)} in {f'1/{metric}' if is_latency(metric) else metric}"
    if effect.low <= 0:
        return f"{names} was adopted, but the fresh runs do not confirm it: {gain}."
    soaked = soaked_words(state, state.stack, [], brief=True)
    return f"{names}: {gain}, confirmed on fresh runs{soaked}{untold_clause(state, state.stack)}."


def _median(state: CampaignState, run_ids: list[str]) -> float | None:
    values = [
        value
        for run in state.runs
        if run.intent.run_id in run_ids and run.outcome and run.outcome.measures
        if (value := metric_value(run.outcome.measures, state.spec.objective.metric)) is not None
    ]
    return statistics.median(values) if values else None
