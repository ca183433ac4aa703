"""What a gain must not cost: service levels that have to be kept, and a bound on the loss at any operating point.

Both are asked when a candidate's mean effect already speaks for it. *Broken* is shown by an interval; *unproved* means
that the runs so far do not show it kept, so more of them are made, and without more the candidate is not adopted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.plan.evidence import guarded_effects
from assay.plan.scores import latency_s, point_measures
from assay.plan.series import MAIN, valid_runs
from assay.plan.verdicts import effect_text
from assay.records.spec import MAIN_POINT, Constraint
from assay.records.state import CampaignState, RunRecord
from assay.records.verdict import Effect
from assay.stats.brackets import successive_noise
from assay.stats.limits import Bounds, mean_bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a candidate stands with what its gain must not cost; both None: everything is kept."""

    broken: str | None = None
    unproved: str | None = None


def standing(state: CampaignState, series: str, candidate: str) -> Standing:
    """Of a candidate, by its runs in one series."""
    runs = [run for run in valid_runs(state, series) if run.intent.candidate == candidate]
    found = [_service_level(state, constraint, runs) for constraint in state.spec.objective.constraints]
    allowed = state.spec.objective.max_loss
    if allowed is not None:
        found.append(losses(guarded_effects(state, series, candidate), allowed))
    return Standing(
        broken=next((one.broken for one in found if one.broken), None),
        unproved=next((one.unproved for one in found if one.unproved), None),
    )


def _service_level(state: CampaignState, constraint: Constraint, runs: Sequence[RunRecord]) -> Standing:
    place = "" if constraint.point == MAIN_POINT else f" at {constraint.point}"
    name = f"{constraint.metric}{place}"
    lent = successive_noise(_logs(constraint, [r for r in valid_runs(state, MAIN) if r.intent.candidate is None]))
    logs = _logs(constraint, runs)
    bounds = mean_bounds(logs, lent, alpha=state.spec.statistics.adopt_alpha) if len(logs) == len(runs) else None
    if bounds is None:
        return Standing(unproved=f"{name} has too few samples to be held against {constraint.max_s:g} s")
    told = f"{name} is {_seconds(bounds)}, the limit {constraint.max_s:g} s"
    limit = math.log(constraint.max_s)
    if bounds.low > limit:
        return Standing(broken=told)
    return Standing(unproved=told) if bounds.high > limit else Standing()


def losses(effects: Mapping[str, Effect], allowed: float) -> Standing:
    """Broken where a point's whole interval lies below what may be lost, unproved where some of it does.

    Holding the estimate against it instead would adopt what loses as much as it may in every second campaign, and more
    with every look: half of the guard's word. `docs/verdicts.md` has both rules' error rates, and what this one costs.

    Args:
        effects: by operating point, as of `assay.plan.evidence.guarded_effects`.
        allowed: relative loss that is tolerated at any of them (`objective.max_loss`).
    """
    floor = math.log1p(-allowed)
    unproved = None
    for name, effect in effects.items():
        told = f"at {name} it is {effect_text(effect)}, and {100 * allowed:g}% may be lost"
        if effect.high < floor:
            return Standing(broken=told)
        if effect.low < floor:
            unproved = unproved or told
    return Standing(unproved=unproved)


def _logs(constraint: Constraint, runs: Sequence[RunRecord]) -> list[float]:
    values = [
        latency_s(measures, constraint.metric)
        for run in runs
        if (measures := point_measures(run, constraint.point)) is not None
    ]
    return [math.log(value) for value in values if value is not None and value > 0]


def _seconds(bounds: Bounds) -> str:
    mean, low, high = (math.exp(value) for value in (bounds.mean, bounds.low, bounds.high))
    return f"{mean:.3g} s [{low:.3g}, {high:.3g}]"
