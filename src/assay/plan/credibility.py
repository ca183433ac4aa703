"""How far the catalogue is to be believed on this class of machines, learned from the verdicts so far.

Every prediction that got a verdict is scored (`assay.plan.scoring.score`); the scores of one machine class give
factors, a widening and chances of being usable (`learn`); these correct the ranges of what is left (`corrected_range`)
and say in which order it is worth trying (`outlooks`, `reorder`). Nothing here can touch a verdict: what goes in are
finished verdicts, what comes out are scores, ranges to print, and an order of ids.

A campaign's own scores come from its record alone. Scores of earlier campaigns are passed in; a planner that wants the
next step to rest on the record alone records them first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from assay.plan.credibility_outlook import Costs, Judge, outlook
from assay.plan.scoring import USABLE, is_control, planned_range, score, warned
from assay.records.hypothesis import Hypothesis, MechanismId
from assay.records.scoring import (
    Z_NOMINAL,
    Bias,
    CorrectedRange,
    Credibility,
    MachineClass,
    Outlook,
    PredictionScore,
    Warned,
)
from assay.records.state import CampaignState
from assay.records.verdict import Effect
from assay.stats.scoring import log_range, middle, spread
from assay.stats.shrinkage import FACTORS, GROUP_SD, Fit, Normal, Observed, beta_mean, clamped, fit, noise_of

USABLE_STRENGTH = 5.0
"""Trials that this counts for, once for the machine class and once more for the mechanism in it."""

TOGETHER = "all"
LEAST_SD = 0.005
"""A range of no width is not believed to half a percent."""


def learn(scores: Iterable[PredictionScore], machine_class: MachineClass) -> Credibility:
    """What the scores of this class say; of an entry that was scored more than once the last one counts.

    The same entry on the same class is not a new draw, so it does not count twice.
    """
    known = _evidence(scores, machine_class)
    found, together = _fit(known), _fit(known, one_group=True)
    groups: dict[MechanismId, int] = {}
    for one in known:
        if one.mechanism_id is not None and _tells_of_gains(one):
            groups[one.mechanism_id] = groups.get(one.mechanism_id, 0) + 1
    return Credibility(
        machine_class=machine_class,
        measured=_bias(together.group(TOGETHER), sum(map(_tells_of_gains, known))),
        overall=_bias(found.overall, sum(map(_tells_of_gains, known))),
        mechanisms={name: _bias(found.group(name), count) for name, count in sorted(groups.items())},
        widening=found.widening,
        usable=_usable_counts(known),
    )


def credibility_of(state: CampaignState, earlier: Iterable[PredictionScore]) -> Credibility:
    """What a campaign's own verdicts and the scores of earlier ones say of its machine's class."""
    own = score(state)
    rest = [one for one in earlier if not own or one.campaign != own[0].campaign]
    return learn([*rest, *own], MachineClass.of(state.machine, state.build, state.model))


def corrected_range(
    hypothesis: Hypothesis, credibility: Credibility, planned: tuple[float, float] | None = None
) -> CorrectedRange:
    """A hypothesis's range as this class's scores correct it.

    The middle is multiplied by its mechanism's factor, the half width by the widening, and the factor's own noise is
    added to it. A range that a person wrote is left as it is, and so are those of controls and of entries that say
    that they do nothing: the scores are not about them.

    Args:
        hypothesis: with its range.
        credibility: of its machine class.
        planned: the range that Assay wrote; None: the entry's own. Another one is a person's.
    """
    low, high = log_range(hypothesis.predicted)
    at, sd = middle(low, high), spread(low, high)
    is_edited = hypothesis.predicted != (planned or hypothesis.optimization.predicted)
    if not (is_edited or is_control(hypothesis) or warned(hypothesis) != "no"):
        factor, variance = _factor(hypothesis.optimization.mechanism_id, credibility)
        sd = math.hypot(sd * credibility.widening, at * math.sqrt(noise_of(variance)))
        at *= factor
    return CorrectedRange(low=math.expm1(at - Z_NOMINAL * sd), high=math.expm1(at + Z_NOMINAL * sd), middle=at, sd=sd)


def usable_chance(hypothesis: Hypothesis, credibility: Credibility) -> float:
    """Chance that a hypothesis can be used here: beta-binomial of its mechanism, its prior that of the others."""
    sort, name = warned(hypothesis), hypothesis.optimization.mechanism_id
    own = credibility.usable.get(_usable_key(sort, name), (0, 0)) if name else (0, 0)
    everything = [counts for key, counts in credibility.usable.items() if key.startswith(f"{sort}/")]
    others = (sum(good for good, _ in everything) - own[0], sum(trials for _, trials in everything) - own[1])
    prior = beta_mean(USABLE[sort], USABLE_STRENGTH, *others)
    return beta_mean(prior, USABLE_STRENGTH, *own)


def outlooks(
    state: CampaignState,
    earlier: Iterable[PredictionScore] = (),
    *,
    costs: Costs | None = None,
    seen: Mapping[str, Effect] = MappingProxyType({}),
) -> list[Outlook]:
    """What is still open, best expected gain for its expected cost first; as planned where that is equal.

    Args:
        state: the campaign; its own verdicts are scored.
        earlier: scores of other campaigns.
        costs: runs and seconds of a hypothesis where the planner knows better than `credibility_outlook`.
        seen: what was measured so far of hypotheses without a verdict, by id: it sharpens their ranges, and they are
            known to be usable.
    """
    credibility = credibility_of(state, earlier)
    judge = Judge.of(state)
    found = []
    for h in _open(state):
        corrected = corrected_range(h, credibility, planned_range(state, h))
        measured = seen.get(h.id)
        usable = usable_chance(h, credibility) if measured is None else 1.0
        found.append(outlook(h, _sharpened(corrected, measured), usable, judge, costs))
    return sorted(found, key=lambda one: -one.worth)


def reorder(state: CampaignState, scores: Iterable[PredictionScore] = (), *, costs: Costs | None = None) -> list[str]:
    """Ids of the hypotheses that are still open, in the order in which they are worth trying."""
    return [one.hypothesis for one in outlooks(state, scores, costs=costs)]


def _sharpened(known: CorrectedRange, measured: Effect | None) -> CorrectedRange:
    """Product of two normals: what is predicted, and what was measured."""
    sd = max(known.sd, LEAST_SD)
    if measured is None or measured.standard_error <= 0:
        return known.model_copy(update={"sd": sd})
    precision, own = 1 / sd**2, 1 / measured.standard_error**2
    at, sd = (known.middle * precision + measured.log_ratio * own) / (precision + own), (precision + own) ** -0.5
    return CorrectedRange(low=math.expm1(at - Z_NOMINAL * sd), high=math.expm1(at + Z_NOMINAL * sd), middle=at, sd=sd)


def _open(state: CampaignState) -> list[Hypothesis]:
    done = {*state.verdicts, *state.screened}
    return [h for h in state.hypotheses if h.status == "planned" and h.id not in done]


def _evidence(scores: Iterable[PredictionScore], machine_class: MachineClass) -> list[PredictionScore]:
    latest = {one.hypothesis: one for one in scores if one.machine_class == machine_class}
    return list(latest.values())


def _tells_of_gains(one: PredictionScore) -> bool:
    return one.effect is not None and not (one.control or one.edited or one.warned != "no")


def _factor(name: MechanismId | None, credibility: Credibility) -> tuple[float, float]:
    """A mechanism's factor and its variance; one that nothing was measured of has the class's, less surely."""
    if own := credibility.mechanisms.get(name) if name else None:
        return own.factor, own.sd**2
    return credibility.overall.factor, credibility.overall.sd**2 + GROUP_SD**2


def _fit(scores: Sequence[PredictionScore], *, one_group: bool = False) -> Fit:
    """Entries without a mechanism are each a group of their own."""
    return fit(
        [
            Observed(
                group=TOGETHER if one_group else one.mechanism_id or f"?{one.hypothesis}",
                middle=middle(one.effect.low, one.effect.high),
                spread=spread(one.effect.low, one.effect.high),
                estimate=one.effect.estimate,
                standard_error=one.effect.standard_error,
            )
            for one in scores
            if one.effect is not None and _tells_of_gains(one)
        ]
    )


def _bias(known: Normal, num_effects: int) -> Bias:
    return Bias(factor=clamped(known.mean, FACTORS), sd=math.sqrt(known.variance), num_effects=num_effects)


def _usable_counts(scores: Sequence[PredictionScore]) -> dict[str, tuple[int, int]]:
    counts: dict[str, tuple[int, int]] = {}
    for one in scores:
        if one.applicability is not None:
            key = _usable_key(one.warned, one.mechanism_id or f"?{one.hypothesis}")
            good, trials = counts.get(key, (0, 0))
            counts[key] = (good + one.applicability.usable, trials + 1)
    return counts


def _usable_key(sort: Warned, name: str) -> str:
    return f"{sort}/{name}"
