"""From the catalogue to hypotheses on this target: what applies, what it may bring, in which order; and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from assay.errors import UsageError
from assay.plan.applying import CheckFlags, Draft, Findings, Target, consider
from assay.plan.reasoning import reasoned
from assay.plan.requirements import resolved
from assay.plan.situation import Situation
from assay.plan.situation import facts_of as facts_of_situation
from assay.plan.surroundings import surroundings
from assay.records.hypothesis import Hypothesis, Optimization, Priority
from assay.records.machine import EngineBuild, Machine, ModelFacts
from assay.records.reasoning import PlanReasoning, Reasoning
from assay.records.scoring import Z_NOMINAL
from assay.records.spec import CampaignSpec
from assay.stats.scoring import STANDARD, middle

HIGH, MEDIUM = 0.20, 0.03
"""Midpoints of the predicted range from which a hypothesis has high and medium priority."""
CONTROLS = ("control", "known")
"""How the expectation of an entry begins that is tried to show that the judge says no; such entries come last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is worth trying here, and what was passed over and why."""

    hypotheses: list[Hypothesis]
    passed_over: dict[str, str]
    """Ids of entries left out of the todo, each with its reason."""
    reasoning: PlanReasoning = field(default_factory=PlanReasoning)
    """Of every entry, planned or not."""


def build(
    entries: Sequence[Sequence[Optimization]],
    spec: CampaignSpec,
    machine: Machine,
    engine_build: EngineBuild,
    model: ModelFacts,
    check_flags: CheckFlags,
    *,
    situation: Situation | None = None,
    findings: Findings | None = None,
) -> Plan:
    """Apply the catalogue to a target.

    Order: tier; what cannot be launched yet, controls, and what waits for others come last in it; then expected gain.

    Args:
        entries: each entry as its variants (newer and older spellings); the first that the build has is taken.
        spec: the campaign.
        machine: where it runs.
        engine_build: the installed engine.
        model: the model.
        check_flags: the engine's word on flags (`assay.ports.Engine.check_flags`).
        situation: more that is known of the target (shape, box, snapshot, step); None: nothing more.
        findings: what is known of flags on this version, model and machine; None: nothing.

    Raises:
        UsageError: policy.only names an entry that does not exist, or an expression does not fit its facts.
    """
    wanted = _wanted(spec.policy.only, [variants[0].id for variants in entries])
    situation = situation or Situation(spec=spec, machine=machine, build=engine_build, model=model)
    target = Target(situation=situation, facts=facts_of_situation(situation), check_flags=check_flags)
    drafts = {variants[0].id: consider(variants, target) for variants in entries if variants[0].id in wanted}
    found = resolved(drafts, target, findings, spec.policy.only)
    thoughts = {draft.optimization.id: reasoned(draft, target) for draft in found}
    kept = sorted((one for one in found if one.outcome != "skipped"), key=lambda one: _order(one, thoughts))
    return Plan(
        hypotheses=[
            _hypothesis(number, draft, thoughts[draft.optimization.id]) for number, draft in enumerate(kept, start=1)
        ],
        passed_over={one.optimization.id: one.reason for one in found if one.outcome == "skipped"},
        reasoning=PlanReasoning(
            surroundings=surroundings(situation), entries=thoughts, baseline=_known_of_today(target, findings)
        ),
    )


def facts_of(spec: CampaignSpec, machine: Machine, engine_build: EngineBuild, model: ModelFacts) -> dict[str, Any]:
    """The names that expressions may use, where nothing more is known than what every record holds."""
    return facts_of_situation(Situation(spec=spec, machine=machine, build=engine_build, model=model))


def _known_of_today(target: Target, findings: Findings | None) -> list[str]:
    """What is known of the flags of today's command."""
    env = target.situation.spec.target.env
    return [one.text for one in findings(target.baseline, env)] if findings else []


def _wanted(only: Sequence[str], known: Sequence[str]) -> set[str]:
    for name in only:
        if name not in known:
            close = get_close_matches(name, known) or sorted(known)
            hint = (
                f"did you mean: {', '.join(close)}" if close else "it has no entry for this engine (policy.catalogue)"
            )
            raise UsageError(f"policy.only names {name!r}, which is not in the catalogue", hint=hint)
    return set(only) or set(known)


def _order(draft: Draft, thoughts: dict[str, Reasoning]) -> tuple[int, bool, bool, bool, float, str]:
    optimization = draft.optimization
    return (
        optimization.tier,
        bool(optimization.needs_work),
        optimization.expectation.startswith(CONTROLS),
        bool(draft.waits_for),
        -expected_gain(_range(thoughts[optimization.id])),
        optimization.id,
    )


def expected_gain(predicted: tuple[float, float]) -> float:
    """Mean of the positive part (a loss is not adopted) of a normal whose central 80% the range is."""
    low, high = predicted
    mean, sd = middle(low, high), (high - low) / (2 * Z_NOMINAL)
    if sd <= 0:
        return max(0.0, mean)
    return mean * STANDARD.cdf(mean / sd) + sd * STANDARD.pdf(mean / sd)


def _range(thought: Reasoning) -> tuple[float, float]:
    return (thought.range.low, thought.range.high) if thought.range else thought.prior


def _hypothesis(number: int, draft: Draft, thought: Reasoning) -> Hypothesis:
    predicted = _range(thought)
    middle = sum(predicted) / 2
    priority: Priority = "high" if middle >= HIGH else "medium" if middle >= MEDIUM else "low"
    return Hypothesis(
        number=number,
        optimization=draft.optimization,
        priority=priority,
        status="blocked" if draft.outcome == "blocked" else "planned",
        blocked_reason=draft.reason or None,
        predicted=predicted,
        waits_for=draft.waits_for,
        document=f"improvements/{number:02d}-{draft.optimization.id}.md",
    )
