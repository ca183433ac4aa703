"""What a finished campaign leaves to be tried: what it could not decide, what was in the way, and what would need code.

Nothing here is evidence: it says what the next question could be and what it would cost, from the record alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from assay.plan.runs import median_run_s
from assay.plan.verdicts import AT_PLAN_TIME, DEPENDENCY, IMPLIED
from assay.records.hypothesis import Hypothesis
from assay.records.reasoning import CeilingHere
from assay.records.state import CampaignState
from assay.records.verdict import Effect, Verdict, VerdictKind
from assay.stats.replanning import MOST, deciding_trial
from assay.stats.sequential import Decision, decide

IN_THE_WAY = frozenset({VerdictKind.BLOCKED, VerdictKind.UNSTABLE, VerdictKind.NOT_APPLIED, VerdictKind.WRONG_OUTPUT})
CODE_TIER = 3
"""Changes of this tier are code or a kernel, not a setting."""
REMEDIES = {
    AT_PLAN_TIME: "give it what its reason names (in assay.toml, or with another build), in a new folder",
    IMPLIED: "what would mend the one that failed mends this one too",
    DEPENDENCY: "it can be tried once what it requires is adopted",
    VerdictKind.NOT_APPLIED: "change what the engine's line names; until then the flag buys nothing here",
    VerdictKind.WRONG_OUTPUT: "judge the answers by a test of your own task; if they are good enough for it, ask "
    "again in a new folder with a lower quality.min_agreement",
    "memory-growth": "soak the engine alone for longer (budget.soak_s), and report the growth with runs/<id>/soak.json",
    "errors-under-soak": "read the server's log at the first failed request; try it below the peak load",
    "hang": "read the server's log where it falls silent, and report it with the launch command",
}
"""By cause, else by kind, where the failure's own rule names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An effect that was measured, and not decided."""

    candidate: str
    effect: Effect
    excluded: bool
    """Whether a gain worth having is already excluded: only how much it costs is open."""
    brackets: int | None
    """Of a trial that would decide it, looked at once; None: more than `assay.stats.replanning.MOST`."""
    finds: Decision | None
    """What that trial would find, if the effect is what it looks like."""
    time_s: float | None
    """Of that trial: its brackets and the run that closes them."""

    @property
    def runs(self) -> int | None:
        """Launches of that trial."""
        return None if self.brackets is None else 2 * self.brackets + 1


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


def obstacles(state: CampaignState) -> list[Obstacle]:
    """What was blocked, unstable, not in force or wrong, in the plan's order."""
    found = (state.verdicts.get(hypothesis.id) for hypothesis in state.hypotheses)
    code = {idea.id for idea in ideas(state)}
    return [
        Obstacle(verdict=verdict, remedy=_remedy(state, verdict))
        for verdict in found
        if verdict is not None and verdict.kind in IN_THE_WAY and verdict.candidate not in code
    ]


def ideas(state: CampaignState) -> list[Idea]:
    """Changes of code that nothing was measured of, the one with most to gain first; what can gain nothing last."""
    return sorted(_ideas(state), key=lambda idea: -(idea.ceiling.gain.high if idea.ceiling else idea.predicted[1]))


def _question(state: CampaignState, verdict: Verdict, effect: Effect) -> Question:
    min_effect = state.spec.objective.min_effect
    trial = deciding_trial(effect, min_effect)
    brackets = max(trial.brackets, state.spec.budget.min_brackets) if trial else None
    return Question(
        candidate=verdict.candidate,
        effect=effect,
        excluded=decide(effect, min_effect) == "futile" or effect.high < math.log1p(min_effect),
        brackets=brackets,
        finds=trial.decision if trial else None,
        time_s=(2 * brackets + 1) * median_run_s(state) if brackets else None,
    )


def _remedy(state: CampaignState, verdict: Verdict) -> str:
    ended = [run.outcome for run in state.runs if run.intent.run_id in verdict.runs]
    own = next((one.failure.remedy for one in reversed(ended) if one and one.failure and one.failure.remedy), "")
    return own or REMEDIES.get(verdict.cause or "") or REMEDIES.get(verdict.kind, "read its log, named below")


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
