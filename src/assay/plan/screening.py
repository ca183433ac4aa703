"""The screen: every candidate against the baseline, in rounds, until each is decided or the budget ends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from assay.plan import dials
from assay.plan.arms import arm_with, baseline_arm
from assay.plan.conditions import standing
from assay.plan.cost import least_runs
from assay.plan.dependencies import carried, waits
from assay.plan.evidence import screen_chance, screen_effect
from assay.plan.runs import MAX_ATTEMPTS, derived_seed, intent, median_run_s, runs_of, uncounted_tail
from assay.plan.series import MAIN, run_counts, series_brackets, valid_runs, why_not_counted
from assay.plan.steps import MakeRun, RecordDial, RecordScreen, RecordVerdict, Step
from assay.plan.verdicts import BUDGET_ENDED, brackets_text, from_outcome, given_up, measured, unclear, unmeasured
from assay.plan.worth import affordable
from assay.records.hypothesis import Hypothesis
from assay.records.run import Purpose
from assay.records.state import CampaignState, RunRecord, ScreenResult
from assay.records.verdict import Effect, VerdictKind
from assay.stats.brackets import mean_effect
from assay.stats.sequential import decide


def open_candidates(state: CampaignState) -> list[Hypothesis]:
    """Hypotheses that may be run and that the screen has not decided."""
    return [h for h in _undecided_ones(state) if not _needs_approval(state, h)]


def unapproved(state: CampaignState) -> list[Hypothesis]:
    """Hypotheses that wait for a person's word."""
    return [h for h in _undecided_ones(state) if _needs_approval(state, h)]


def _undecided_ones(state: CampaignState) -> list[Hypothesis]:
    return [
        h
        for h in state.hypotheses
        if h.status == "planned" and h.id not in state.verdicts and h.id not in state.screened and not waits(state, h)
    ]


def _needs_approval(state: CampaignState, hypothesis: Hypothesis) -> bool:
    return hypothesis.optimization.tier >= state.spec.policy.ask_before_tier and not hypothesis.approved


def next_screen(state: CampaignState) -> Step | None:
    """The next step of the screen; None when it is over."""
    candidates = open_candidates(state)
    if not candidates:
        return None
    if step := _next_search(state, candidates):
        return step
    runs = valid_runs(state, MAIN)
    block = _newest_block(runs)
    closed = bool(runs) and runs[-1].intent.candidate is None
    for hypothesis in candidates:
        if step := _conclude(state, hypothesis, look=closed and hypothesis.id in block):
            return step
    inside = [] if closed else block
    waiting = [hypothesis for hypothesis in candidates if hypothesis.id not in inside]
    if inside and (len(inside) >= state.spec.budget.block or not waiting or _out_of_budget(state)):
        return _reference_run(state, f"closing the bracket{'s' * (len(inside) > 1)} of {' and '.join(inside)}")
    if _out_of_budget(state):
        return _undecided(state, candidates[0])
    return _candidate_run(state, _whose_turn(state, waiting))


def _next_search(state: CampaignState, candidates: list[Hypothesis]) -> Step | None:
    """Dials are searched before anything is screened: what they find is screened like any flag."""
    for hypothesis in candidates:
        dial = hypothesis.optimization.dial
        if dial is None:
            continue
        if (result := state.dials.get(hypothesis.id)) is None:
            step = dials.next_point(state, hypothesis, dial, out_of_budget=_out_of_budget(state))
            return RecordDial(result=step.result) if isinstance(step, dials.Settled) else step
        if result.flags is None:
            return RecordVerdict(verdict=dials.nothing_found(hypothesis, result))
    return None


def _newest_block(runs: Sequence[RunRecord]) -> list[str]:
    """The candidates of the runs since the newest reference run, or, when that came last, of those it closed."""
    names = [run.intent.candidate for run in runs]
    if names and names[-1] is None:
        names.pop()
    return [name for name in takewhile(lambda name: name is not None, reversed(names)) if name is not None][::-1]


def _conclude(state: CampaignState, hypothesis: Hypothesis, *, look: bool) -> Step | None:
    """What a candidate's runs already decide; its interval is looked at once a bracket, when that has closed."""
    ended = runs_of(state, MAIN, hypothesis.id)
    uncounted = uncounted_tail(state, ended)
    if not look and not uncounted:
        return None
    found = screen_effect(state, hypothesis.id)
    if step := from_outcome(hypothesis, ended, found):
        return step
    ids = [run.intent.run_id for run in ended]
    if len(uncounted) >= MAX_ATTEMPTS:
        reason = f"{len(uncounted)} invalid runs in a row; last: {why_not_counted(state, uncounted[-1])}"
        return RecordVerdict(verdict=unmeasured(hypothesis, reason, "invalid", ids))
    if found is None or not look:
        return None
    return _decided(state, hypothesis, found, ids)


def _decided(state: CampaignState, hypothesis: Hypothesis, found: Effect, ids: list[str]) -> Step | None:
    spec = state.spec
    if found.num_brackets < min(spec.budget.min_brackets, spec.budget.max_brackets):
        return None
    worth = f"{100 * spec.objective.min_effect:g}%"
    decision = decide(found, spec.objective.min_effect)
    if decision == "better":
        if broken := standing(state, MAIN, hypothesis.id).broken:
            reason = f"a gain that costs too much: {broken}"
            return RecordVerdict(verdict=measured(hypothesis, VerdictKind.WORSE, found, reason, ids))
        return RecordScreen(result=ScreenResult(candidate=hypothesis.id, effect=found, promising=True))
    if decision == "worse":
        reason = f"worse than the baseline after {brackets_text(found)}"
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.WORSE, found, reason, ids))
    if decision == "no-effect":
        reason = f"no effect as large as {worth}, after {brackets_text(found)}"
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.NO_EFFECT, found, reason, ids))
    if decision == "futile" and found.num_brackets > 1:
        reason = f"not worth having: the gain is below {worth}, whether it costs something is not known"
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.UNDECIDED, found, reason, ids))
    if found.num_brackets >= spec.budget.max_brackets:
        reason = f"{unclear(found, worth)}, with {brackets_text(found)}"
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.UNDECIDED, found, reason, ids))
    if (chance := screen_chance(state, found)) < spec.statistics.give_up_below:
        reason = given_up(found, chance, worth)
        return RecordVerdict(verdict=measured(hypothesis, VerdictKind.UNDECIDED, found, reason, ids))
    return None


def _undecided(state: CampaignState, hypothesis: Hypothesis) -> RecordVerdict:
    ids = [run.intent.run_id for run in runs_of(state, MAIN, hypothesis.id)]
    found = screen_effect(state, hypothesis.id)
    if found is None:
        return RecordVerdict(verdict=unmeasured(hypothesis, f"{BUDGET_ENDED} before it was measured", "budget", ids))
    worth = f"{100 * state.spec.objective.min_effect:g}%"
    reason = f"{unclear(found, worth)}: {BUDGET_ENDED} after {brackets_text(found)}"
    return RecordVerdict(verdict=measured(hypothesis, VerdictKind.UNDECIDED, found, reason, ids))


def _whose_turn(state: CampaignState, candidates: list[Hypothesis]) -> Hypothesis:
    """Fewest brackets first, so that all have been seen once; then where another bracket decides most.

    Where the budget does not reach for all, only those take part that promise most for their time. Among them the first
    round's order is drawn from the campaign's seed; later rounds begin with the largest effects, which a short budget
    must not leave half measured. What is tried next does not bias what it measures.
    """
    main = series_brackets(state, MAIN)
    counted = run_counts(state, MAIN)

    def key(hypothesis: Hypothesis) -> tuple[int, float, int]:
        own, done = main.of(hypothesis.id), counted[hypothesis.id]
        size = abs(mean_effect(own)[0]) if len(own) else 0.0
        return done, -size, derived_seed(state.spec.workload.seed, "order", done, hypothesis.id)

    return min(affordable(state, candidates, _free_s(state)), key=key)


def _free_s(state: CampaignState) -> float:
    """Time that the screen may still use: composition and confirmation have theirs."""
    free_s = state.left_s - reserved_runs(state) * median_run_s(state)
    return free_s - _soaks_s(free_s, _num_promising(state), state.spec.budget.soak_s)


def reserved_runs(state: CampaignState) -> int:
    """Runs that the screen leaves to composition and confirmation."""
    budget = state.spec.budget
    runs = 2 * budget.confirmation_brackets + 1 + _num_promising(state) * min(5, 2 * budget.composition_brackets + 1)
    return max(runs, least_runs(budget))  # what the first that is promising will take


def _num_promising(state: CampaignState) -> int:
    return sum(1 for result in state.screened.values() if result.promising)


def _soaks_s(free_s: float, promising: int, soak_s: float) -> float:
    """What soaks will take of it: of all that is promising, and of the baseline (`assay.plan.soaking` begins no other).

    Args:
        free_s: what is free but for them.
        promising: candidates that go on to composition.
        soak_s: of one.
    """
    pair, room = 2, max(0.0, free_s) // soak_s if soak_s else 0.0
    return min(promising + 1, room) * soak_s if promising and room >= pair else 0.0


def _out_of_budget(state: CampaignState) -> bool:
    """Whether another bracket would eat what composition and confirmation will need."""
    return 2 * median_run_s(state) > _free_s(state)


def _candidate_run(state: CampaignState, hypothesis: Hypothesis) -> MakeRun:
    done = run_counts(state, MAIN)[hypothesis.id]
    why = f"screening {hypothesis.id}: bracket {done + 1} of at most {state.spec.budget.max_brackets}"
    return MakeRun(
        intent=intent(
            state,
            purpose=Purpose.SCREEN,
            series=MAIN,
            candidate=hypothesis.id,
            arm=arm_with(state.spec.target, [*carried(state, hypothesis), hypothesis]),
            why=why,
        )
    )


def _reference_run(state: CampaignState, why: str) -> MakeRun:
    return MakeRun(
        intent=intent(
            state,
            purpose=Purpose.SCREEN,
            series=MAIN,
            candidate=None,
            arm=baseline_arm(state.spec.target),
            why=why,
        )
    )
