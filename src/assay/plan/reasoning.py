"""Why an entry is planned, blocked or skipped, and what it may bring here."""

from __future__ import annotations

from assay.plan.applying import Draft, Target
from assay.plan.expression import Decided, ExpressionError, decided
from assay.plan.predicting import predicted
from assay.records.hypothesis import Optimization
from assay.records.reasoning import CeilingHere, Condition, RangeBasis, Reasoning
from assay.roofline.mechanism_host import CONTROLS

THROUGHPUTS = frozenset({"output_tokens_per_s", "requests_per_s"})
MAKES_ROOM = frozenset({"kv-fp8", "weights-fp8", "weights-nvfp4", "weights-int4", "dp-attention"})
"""Mechanisms that also let more sequences run; their ceilings do not count that."""
ALWAYS = "true"


def reasoned(draft: Draft, target: Target) -> Reasoning:
    """The reasoning of one entry, for `assay plan --explain` and its document."""
    optimization = draft.optimization
    ceiling, no_ceiling = _ceiling(optimization, target)
    in_regime, regime_values = _regime(optimization, target)
    return Reasoning(
        id=optimization.id,
        title=optimization.title,
        tier=optimization.tier,
        outcome=draft.outcome,
        reason=draft.reason,
        conditions=[_condition(one) for one in draft.conditions if one.text.strip().lower() != ALWAYS],
        prior=optimization.predicted,
        ceiling=ceiling,
        no_ceiling=no_ceiling,
        range=_range(optimization, ceiling, bounds=not no_ceiling),
        in_regime=in_regime,
        regime_values=regime_values,
        waits_for=draft.waits_for,
        excludes=optimization.excludes,
        findings=[one.text for one in draft.findings],
        notes=draft.notes,
    )


def _condition(one: Decided) -> Condition:
    return Condition(text=" ".join(one.text.split()), holds=one.truth, values=one.values)


def _ceiling(optimization: Optimization, target: Target) -> tuple[CeilingHere | None, str]:
    """The ceiling here, and why it bounds nothing where it does not; a ceiling that bounds nothing is still shown."""
    if optimization.ceiling is None:
        return None, "no term of the estimate bounds it"
    step, missing = target.situation.step, target.situation.missing
    if step is None:
        return None, missing.get("step") or missing.get("box") or missing.get("shape") or "no estimate of this target"
    found = step.ceilings.get(optimization.ceiling)
    if found is None:
        return None, f"the estimate has no mechanism {optimization.ceiling}"
    metric = target.situation.spec.objective.metric
    if metric not in THROUGHPUTS:
        return found, f"the objective is {metric}, and ceilings are of tokens/s"
    if optimization.ceiling in MAKES_ROOM and step.point.held_back:
        return found, f"it makes room for more sequences, which the ceiling does not count: {step.point.held_back}"
    return found, ""


def _range(optimization: Optimization, ceiling: CeilingHere | None, *, bounds: bool) -> RangeBasis:
    claimed = [one for one in optimization.reported if not one.source.startswith("no source")]
    prior_from = "the prior, after what others report" if claimed else "the prior, a guess of ours"
    if ceiling is None or not bounds:
        return predicted(optimization.predicted, None, "", prior_from)
    if ceiling.mechanism in CONTROLS and ceiling.applies and ceiling.gain.high < 0:
        return _loss(ceiling)
    most = round(max(0.0, ceiling.gain.high), 4) if ceiling.applies else 0.0
    what = "the estimate's ceiling (Amdahl)" if ceiling.applies else "the estimate: the mechanism cannot act here"
    return predicted(optimization.predicted, most, what, prior_from)


def _loss(ceiling: CeilingHere) -> RangeBasis:
    """Of a control whose loss the estimate calculates at both ends: no claim of anybody is needed."""
    low, high = (round(end, 4) for end in (ceiling.gain.low, ceiling.gain.high))
    what = "the estimate: what the control brings into sight"
    return RangeBasis(low=low, high=high, low_from=what, high_from=what)


def _regime(optimization: Optimization, target: Target) -> tuple[bool | None, dict[str, str]]:
    if optimization.regime_when == ALWAYS:
        return None, {}
    try:
        parts = decided(optimization.regime_when, target.facts)
    except ExpressionError:
        return None, {}
    truths = [part.truth for part in parts]
    values = {name: value for part in parts for name, value in part.values.items()}
    return (False if False in truths else None if None in truths else True), values
