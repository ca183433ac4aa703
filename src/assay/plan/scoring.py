"""How each prediction fared: every hypothesis with a verdict, scored against what was predicted of it.

Scores are read off the record alone; `assay.plan.credibility` learns from them.
"""

from __future__ import annotations

from assay.plan.verdicts import AT_PLAN_TIME, NOT_TRIED
from assay.records.hypothesis import Hypothesis
from assay.records.scoring import ApplicabilityScore, EffectScore, MachineClass, PredictionScore, Warned
from assay.records.state import CampaignState
from assay.records.verdict import Verdict, VerdictKind
from assay.stats.scoring import brier_score, effect_score

FAILED = frozenset({VerdictKind.BLOCKED, VerdictKind.UNSTABLE, VerdictKind.WRONG_OUTPUT, VerdictKind.NOT_APPLIED})
USABLE: dict[Warned, float] = {"no": 0.8, "idle": 0.5, "fails": 0.1}
"""Chance of being usable that an entry is read to give itself. Stated, not measured: four in five where it warns of
nothing (flags were checked against the build, and its conditions hold), even where it says that it does nothing, and
one in ten where it says that it fails."""


def score(state: CampaignState) -> list[PredictionScore]:
    """Every hypothesis with a verdict, in the plan's order."""
    by_id = {h.id: h for h in state.hypotheses}
    own = MachineClass.of(state.machine, state.build, state.model)
    campaign = f"{state.spec_hash[:12]}-{state.created_at_ns}"
    return [
        _scored(campaign, own, h, verdict, planned_range(state, h))
        for h in by_id.values()
        if (verdict := state.verdicts.get(h.id)) is not None
    ]


def planned_range(state: CampaignState, hypothesis: Hypothesis) -> tuple[float, float]:
    """The range that Assay itself wrote: the entry's prior, cut off at the ceiling where the plan recorded one.

    Any other range in the document was written by a person.
    """
    thought = state.reasoning.entries.get(hypothesis.id)
    if thought is None or thought.range is None:
        return hypothesis.optimization.predicted
    return thought.range.low, thought.range.high


def warned(hypothesis: Hypothesis) -> Warned:
    """What the entry itself says beforehand of its own use here."""
    words = hypothesis.optimization.expectation
    if words.startswith(("known to fail", "known to be gone")):
        return "fails"
    return "idle" if words.startswith("known") else "no"


def _scored(
    campaign: str, own: MachineClass, hypothesis: Hypothesis, verdict: Verdict, planned: tuple[float, float]
) -> PredictionScore:
    predicted = verdict.predicted or hypothesis.predicted
    effect = _effect(predicted, verdict)
    applicability = _applicability(hypothesis, verdict)
    return PredictionScore(
        campaign=campaign,
        hypothesis=hypothesis.id,
        mechanism_id=hypothesis.optimization.mechanism_id,
        machine_class=own,
        warned=warned(hypothesis),
        control=is_control(hypothesis),
        edited=predicted != planned,
        predicted=predicted,
        effect=effect,
        applicability=applicability,
        unscored=None if effect or applicability else _why_unscored(verdict),
    )


def _effect(predicted: tuple[float, float], verdict: Verdict) -> EffectScore | None:
    found = verdict.effect
    if found is None or verdict.kind in FAILED:
        return None
    return effect_score(predicted, found.log_ratio, (found.low, found.high), found.standard_error)


def _applicability(hypothesis: Hypothesis, verdict: Verdict) -> ApplicabilityScore | None:
    """Blocked without a run teaches nothing of the arm; undecided without an effect teaches nothing."""
    failed = verdict.kind in FAILED
    if (failed and verdict.cause in NOT_TRIED) or (not failed and verdict.effect is None):
        return None
    forecast = USABLE[warned(hypothesis)]
    return ApplicabilityScore(forecast=forecast, usable=not failed, brier=brier_score(forecast, not failed))


def _why_unscored(verdict: Verdict) -> str:
    if verdict.kind is VerdictKind.BLOCKED:
        return f"known before any run: {verdict.reason}" if verdict.cause == AT_PLAN_TIME else verdict.reason
    return verdict.reason


def is_control(hypothesis: Hypothesis) -> bool:
    """Whether it is tried to see the judge say no."""
    return hypothesis.optimization.expectation.startswith("control")
