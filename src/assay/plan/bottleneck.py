"""Where a step's time goes by calculation, and where it goes once what was adopted has taken its part away.

A change of the layout, of the cache or of what may run at once is calculated anew. Of any other adopted change the
gain that was measured is taken off the operations that its mechanism touches, so that the shares of the others grow:
what was the second largest part is what the next change has to move (Amdahl). What is measured beyond what a mechanism
touches, or of a change without one, is taken off all operations alike.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from assay.plan.target_step import TargetStep, shares
from assay.records.estimate import OpTime, StepEstimate
from assay.records.range import Range

HOST = "host"
PARTS = {
    "communication": ("communication",),
    "host": (HOST,),
    "launch": (HOST,),
    "kv-bytes": ("attention_core",),
}
"""What mechanisms change of which no ceiling names the operations, by the parts of the estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """A change in force, and what was measured of it."""

    name: str
    log_ratio: float
    touched: tuple[str, ...]
    """Operations of the step that its mechanism changes, or their parts; empty: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a decode step is made of."""

    sequences: int
    context_tokens: int
    time_s: Range
    shares: dict[str, float]
    """By part, largest first; they sum to 1."""

    @property
    def largest(self) -> str:
        """The part to be moved next."""
        return next(iter(self.shares))

    @property
    def ceiling(self) -> float:
        """Relative gain of decode if the largest part took no time at all."""
        share = self.shares[self.largest]
        return math.inf if share >= 1 else 1 / (1 - share) - 1


def parts(target: TargetStep, adopted: Sequence[Adopted] = ()) -> Parts:
    """Of a target's decode step, less what the adopted changes were measured to save."""
    step = before = target.point.decode
    for change in adopted:
        step = _without(step, change)
    found = {name: share for name, share in shares(step).items() if share > 0}
    return Parts(
        sequences=step.point.sequences,
        context_tokens=step.point.context_tokens,
        time_s=before.time_s.scaled(_time_s(step) / _time_s(before)),
        shares=dict(sorted(found.items(), key=lambda item: -item[1])),
    )


def _without(step: StepEstimate, change: Adopted) -> StepEstimate:
    """The step with a change's measured saving taken off what it touches, and off all where that is not enough."""
    whole_s = _time_s(step)
    touched_s = sum(op.time_s.mid for op in step.ops if _touches(change.touched, op))
    touched_s += step.overhead_s.mid if HOST in change.touched else 0.0
    left_s = touched_s - whole_s * -math.expm1(-change.log_ratio)
    if touched_s <= 0 or left_s <= 0:
        return _scaled(step, [*(op.name for op in step.ops), HOST], math.exp(-change.log_ratio))
    return _scaled(step, change.touched, left_s / touched_s)


def _touches(names: Collection[str], op: OpTime) -> bool:
    return op.name in names or op.part in names


def _scaled(step: StepEstimate, names: Collection[str], factor: float) -> StepEstimate:
    ops = [op.model_copy(update={"time_s": op.time_s.scaled(factor)}) if _touches(names, op) else op for op in step.ops]
    overhead = step.overhead_s.scaled(factor) if HOST in names else step.overhead_s
    return step.model_copy(update={"ops": ops, "overhead_s": overhead})


def _time_s(step: StepEstimate) -> float:
    return step.overhead_s.mid + sum(op.time_s.mid for op in step.ops)
