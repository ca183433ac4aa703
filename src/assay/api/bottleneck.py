"""The bottleneck of a target before and after what a campaign adopted, by calculation from its record."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.plan.bottleneck import Parts
    from assay.plan.target_step import TargetStep
    from assay.records.base import Flags
    from assay.records.state import CampaignState


def bottlenecks(state: CampaignState) -> tuple[Parts, Parts | None] | None:
    """Of the baseline and of the stack (None where nothing was adopted); None where the step cannot be calculated."""
    from assay.plan.arms import arm_with
    from assay.plan.bottleneck import PARTS, Adopted, parts
    from assay.plan.composing import stack_of

    target = state.spec.target
    before = _step(state, target.flags)
    if before is None:
        return None
    if not state.stack:
        return parts(before), None
    after = _step(state, arm_with(target, stack_of(state)).flags) or before
    changes = []
    for member in stack_of(state):
        alone = _step(state, arm_with(target, [member]).flags)
        effect = state.verdicts[member.id].effect
        if effect is None or (alone is not None and alone.served != before.served):
            continue  # calculated anew: its saving is in the step already
        bounding = member.optimization.ceiling
        named: tuple[str, ...] = next((tuple(one.touches) for one in after.point.mechanisms if one.id == bounding), ())
        touched = named or PARTS.get(member.optimization.mechanism_id or "", ())
        changes.append(Adopted(name=member.id, log_ratio=effect.log_ratio, touched=touched))
    return parts(before), parts(after, changes)


def _step(state: CampaignState, flags: Flags) -> TargetStep | None:
    """The step of the target under other flags."""
    from assay.api.plan_facts import situation_of

    target = state.spec.target.model_copy(update={"flags": flags})
    spec = state.spec.model_copy(update={"target": target})
    return situation_of(spec, state.machine, state.build, state.model, shape=state.shape).step
