"""What a finished campaign leaves to be tried: what it could not decide, what was in the way, and what would need code.

Nothing here is evidence: it says what the next question could be and what it would cost, from the record alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from assay.plan.runs import median_run_s
from assay.plan.soaking import ERRORS, GROWTH, HANG
from assay.plan.verdicts import AT_PLAN_TIME, DEPENDENCY, IMPLIED, is_unmeasured
from assay.records.base import FlagValue
from assay.records.hypothesis import Hypothesis
from assay.records.reasoning import CeilingHere
from assay.records.state import CampaignState
from assay.records.verdict import Effect, Verdict, VerdictKind
from assay.stats.replanning import MOST, deciding_trial
from assay.stats.sequential import Decision, decide

IN_THE_WAY = frozenset({VerdictKind.BLOCKED, VerdictKind.UNSTABLE, VerdictKind.NOT_APPLIED, VerdictKind.WRONG_OUTPUT})
RANDOM, UNREAD = "random-weights", "unread"
CODE_TIER = 3
"""Changes of this tier are code or a kernel, not a setting."""
REMEDIES: dict[str, str] = {
    AT_PLAN_TIME: "give it what its reason names (in assay.toml, or with another build), in a new folder",
    IMPLIED: "what would mend the one that failed mends this one too",
    DEPENDENCY: "it can be tried once what it requires is adopted",
    VerdictKind.NOT_APPLIED: "change what the engine's line names; until then the flag buys nothing here",
    UNREAD: "leave it out: here it changes nothing; with another build or setting it may",
    RANDOM: "random weights have no answers to keep: ask with the real checkpoint, in a new folder",
    VerdictKind.WRONG_OUTPUT: "judge the answers by a test of your own task; if they are good enough for it, ask "
    "again in a new folder with a lower quality.min_agreement",
    GROWTH: "soak the engine alone for longer (budget.soak_s), and report the growth with runs/<id>/soak.json",
    ERRORS: "read the server's log at the first failed request; try it below the peak load",
    "budget": "ask in a new folder with a larger budget.total_s, or with fewer candidates (policy.only)",
    "invalid": "see to what the gates in its reason name, then ask in a new folder",
    "stack-failed": "ask in a new folder without the stack that failed under it (policy.only)",
    HANG: "read the server's log where it falls silent, and report it with the launch command",
}
"""By cause, or by kind; another failure's own rule names one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An effect that was measured, and not decided."""

    candidate: str
    effect: Effect
    excluded: bool
    """Whether a gain worth having is already excluded: only how much it costs is open."""
    shown: bool
    """Whether the gain is shown already: only whether it costs what it must not, or is stable, is open."""
    on: list[str]
    """Adopted changes that were in force beside it."""
    brackets: int | None
    """Of a trial that would decide it, looked at once; None: more than `assay.stats.replanning.MOST`, or none does."""
    finds: Decision | None
    """What that trial would find, if the effect is what it looks like."""
    time_s: float | None
    """Of that trial: its brackets and the run that closes them."""

    @property
    def runs(self) -> int | None:
        """Launches of that trial."""
        return None if self.brackets is None else 2 * self.brackets + 1

    @property
    def worth_asking(self) -> bool:
        """Whether a trial would tell something that could change what is shipped."""
        return self.brackets is not None and not self.excluded


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What could not be used here, and what would change that."""

    verdict: Verdict
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Idea:
    """A change of code that was not measured, with its price by calculation."""

    id: str
    title: str
    predicted: tuple[float, float]
    ceiling: CeilingHere | None
    """None: no term of the estimate bounds it here."""
    reason: str
    """Why it was not tried, or what stands behind the price."""


def questions(state: CampaignState) -> list[Question]:
    """Undecided effects, the cheapest to decide first."""
    found = [_question(state, verdict, verdict.effect) for verdict in state.verdicts.values() if verdict.effect
             and verdict.kind is VerdictKind.UNDECIDED]  # fmt: skip
    return sorted(found, key=lambda one: (one.excluded, one.brackets or MOST + 1))


def asked_alone(state: CampaignState, question: Question) -> dict[str, FlagValue | list[str]]:
    """What asks it in a folder of its own: the keys of assay.toml that change.

    The time is that of a campaign which finds a gain: calibration, trial, test on fresh runs, soaks and confirmation,
    with two runs to spare.
    """
    brackets, budget = question.brackets or 0, state.spec.budget
    told = budget.calibration_brackets + 2 * brackets + budget.confirmation_brackets
    needed_s = (2 * told + 5) * median_run_s(state) + 4 * budget.soak_s
    return {
        "policy.only": [question.candidate],
        "budget.min_brackets": brackets,
        "budget.max_brackets": brackets,
        "budget.composition_brackets": brackets,
        "budget.total_s": 60.0 * math.ceil(needed_s / 60.0),
        "statistics.give_up_below": 0,
    }


def obstacles(state: CampaignState) -> list[Obstacle]:
    """What was blocked, unstable, not in force or wrong, or not measured at all, in the plan's order."""
    found = (state.verdicts.get(hypothesis.id) for hypothesis in state.hypotheses)
    code = {idea.id for idea in ideas(state)}
    return [
        Obstacle(verdict=verdict, remedy=_remedy(state, verdict))
        for verdict in found
        if verdict is not None
        and verdict.candidate not in code
        and (verdict.kind in IN_THE_WAY or is_unmeasured(verdict))
    ]


def ideas(state: CampaignState) -> list[Idea]:
    """Changes of code that nothing was measured of, the one with most to gain first; what can gain nothing last."""
    return sorted(_ideas(state), key=lambda idea: -(idea.ceiling.gain.high if idea.ceiling else idea.predicted[1]))


def _question(state: CampaignState, verdict: Verdict, effect: Effect) -> Question:
    min_effect = state.spec.objective.min_effect
    shown = decide(effect, min_effect) == "better"
    trial = None if shown else deciding_trial(effect, min_effect)
    brackets = max(trial.brackets, state.spec.budget.min_brackets) if trial else None
    return Question(
        candidate=verdict.candidate,
        effect=effect,
        excluded=effect.high < math.log1p(min_effect),
        shown=shown,
        on=_beside(state, verdict),
        brackets=brackets,
        finds=trial.decision if trial else None,
        time_s=(2 * brackets + 1) * median_run_s(state) if brackets else None,
    )


def _beside(state: CampaignState, verdict: Verdict) -> list[str]:
    """What else its last run had in force."""
    arms = [run.intent.arm for run in state.runs if run.intent.run_id in verdict.runs and run.intent.candidate]
    return [name for name in arms[-1].deltas if name != verdict.candidate] if arms else []


def _remedy(state: CampaignState, verdict: Verdict) -> str:
    if verdict.kind is VerdictKind.WRONG_OUTPUT:
        return REMEDIES[RANDOM if state.spec.target.has_random_weights else verdict.kind]
    if verdict.kind is VerdictKind.NOT_APPLIED:
        return REMEDIES[verdict.kind if verdict.line else UNREAD]
    ended = [run.outcome for run in state.runs if run.intent.run_id in verdict.runs and run.intent.candidate]
    own = next((one.failure.remedy for one in reversed(ended) if one and one.failure and one.failure.remedy), "")
    by_cause = REMEDIES.get(verdict.cause or "", "")
    return (own or by_cause if verdict.cause == IMPLIED else by_cause or own) or "read its log (runs/<id>/server.log)"


def _ideas(state: CampaignState) -> Iterator[Idea]:
    reasoned = state.reasoning.entries
    measured = {name for name, verdict in state.verdicts.items() if verdict.effect is not None}
    for hypothesis in state.hypotheses:
        if hypothesis.optimization.tier >= CODE_TIER and hypothesis.id not in measured and not _runs(state, hypothesis):
            told = reasoned.get(hypothesis.id)
            reason = hypothesis.blocked_reason or (told.ceiling.reason if told and told.ceiling else "")
            yield Idea(
                id=hypothesis.id, title=hypothesis.optimization.title, predicted=hypothesis.predicted,
                ceiling=told.ceiling if told else None, reason=reason,
            )  # fmt: skip
    planned = {hypothesis.id for hypothesis in state.hypotheses}
    for name, told in reasoned.items():
        if told.tier >= CODE_TIER and name not in planned:
            yield Idea(id=name, title=told.title, predicted=told.prior, ceiling=told.ceiling, reason=told.reason)


def _runs(state: CampaignState, hypothesis: Hypothesis) -> bool:
    return any(run.intent.candidate == hypothesis.id for run in state.runs)
