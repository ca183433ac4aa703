"""What the report says of predictions: sentences, a row a score, and what the scores suggest for the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from assay.plan.credibility import learn
from assay.plan.scoring import score
from assay.plan.worth import open_outlooks
from assay.records.scoring import (
    NOMINAL_COVERAGE,
    Z_NOMINAL,
    ApplicabilityScore,
    Bias,
    Credibility,
    EffectScore,
    MachineClass,
    Outlook,
    PredictionScore,
)
from assay.records.state import CampaignState
from assay.render.words import NOTHING, duration_words, range_words
from assay.stats.scoring import interval_score

SMALL_FACTOR = 0.1
"""Below this, "too optimistic by x12" says less than "next to nothing of it came"."""


ABOUT_LEFT = (
    "Expected now: the predicted range as this machine class's scores correct it (as in assay todo), narrowed by what "
    "was measured of it so far. Chance of adoption: that it can be used here and the estimate from its runs is judged "
    "a gain; “worth having” of assay next --why is another chance, that its true effect reaches objective.min_effect. "
    "Candidates that the screen has decided (composition) are not listed."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One scored prediction, in words."""

    hypothesis: str
    about: str
    """Its mechanism, and what its score is not evidence of."""
    predicted: str
    measured: str
    range_met: str
    """inside, meets or missed; a dash where nothing was measured."""
    error: str
    """Measured over the middle of the range, as a factor."""
    score: str
    usable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftRow:
    """One hypothesis that is still open, in words."""

    hypothesis: str
    predicted: str
    corrected: str
    adoption: str
    gain: str
    cost: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """All of it; empty lists where there is nothing to say."""

    sentences: list[str]
    """What a reader wants to know."""
    details: list[str]
    """What somebody who knows scores wants to know."""
    rows: list[ScoreRow]
    left: list[LeftRow]


def scoring(state: CampaignState) -> Scoring:
    """What the campaign's own record says: earlier campaigns have no part in its report."""
    scores = score(state)
    if not any(one.effect or one.applicability for one in scores):
        return Scoring(sentences=[], details=[], rows=[], left=[])
    own = MachineClass.of(state.machine, state.build, state.model)
    effects = [one.effect for one in scores if one.effect]
    usable = [one.applicability for one in scores if one.applicability]
    return Scoring(
        sentences=[*_hits(effects), *_bias(learn(scores, own), own, len(effects))],
        details=[*_inside(effects), *_naive(effects, state.spec.objective.min_effect), *_usable(usable)],
        rows=[_row(one) for one in scores],
        left=[_left(one) for one in open_outlooks(state)],
    )


def met_words(found: EffectScore) -> str:
    """How a range and a measured interval lie to each other."""
    return "inside" if found.inside and found.meets else "meets" if found.meets else "missed"


def _hits(effects: Sequence[EffectScore]) -> list[str]:
    if not effects:
        return []
    return [f"{sum(one.meets for one in effects)} of {len(effects)} predicted ranges meet the measured interval."]


def _inside(effects: Sequence[EffectScore]) -> list[str]:
    if not effects:
        return []
    expected = sum(one.expected_inside for one in effects)
    return [
        (
            f"{sum(one.inside for one in effects)} of {len(effects)} estimates lie inside their range; {expected:.1f} "
            f"are to be expected of ranges that hold {100 * NOMINAL_COVERAGE:.0f}% of true effects, given the noise of "
            "these estimates."
        )
    ]


def _bias(found: Credibility, own: MachineClass, num_scored: int) -> list[str]:
    measured = found.measured
    if not measured.num_effects:
        return ["Nothing that promised a gain was measured, so how far such promises hold here is not known."]
    possible = (
        f"between x{max(0.0, measured.factor - _reach(measured)):.2f} and x{measured.factor + _reach(measured):.2f}"
    )
    if not measured.is_clear:
        return [
            (
                "Whether the catalogue promises too much here cannot be told from "
                f"{_effects(measured, num_scored)}: the factor on its predictions lies {possible} "
                f"with {100 * NOMINAL_COVERAGE:.0f}% probability."
            )
        ]
    told = f"{_verdict(measured)} on this class of machines ({own.words}): "
    told += f"the factor on its predictions is x{measured.factor:.2f}, and lies {possible} with "
    told += f"{100 * NOMINAL_COVERAGE:.0f}% probability, from {_effects(measured, num_scored)}."
    clear = [f"{name} x{bias.factor:.2f}" for name, bias in found.mechanisms.items() if bias.is_clear]
    return [told, *([f"By mechanism, where it is clear: {', '.join(clear)}."] if clear else [])]


def _verdict(measured: Bias) -> str:
    if measured.factor < SMALL_FACTOR:
        return "Next to nothing of what the catalogue promised came"
    if measured.factor < 1:
        return f"The catalogue was too optimistic by x{1 / measured.factor:.1f}"
    return f"The catalogue was too cautious by x{measured.factor:.1f}"


def _effects(measured: Bias, num_scored: int) -> str:
    told = "one effect" if measured.num_effects == 1 else f"{measured.num_effects} effects"
    left_out = " (controls, a person's ranges and what was said to do nothing or to fail are left out)"
    return told + left_out * (measured.num_effects < num_scored)


def _reach(measured: Bias) -> float:
    return Z_NOMINAL * measured.sd


def _naive(effects: Sequence[EffectScore], min_effect: float) -> list[str]:
    """A forecaster who knows nothing, on the same estimates: what the catalogue has to beat."""
    if not effects:
        return []
    own = fmean(one.interval_score for one in effects)
    low, high = math.log1p(-min_effect), math.log1p(min_effect)
    naive = fmean(interval_score(low, high, one.estimate) for one in effects)
    return [
        (
            f"Mean interval score {own:.2f} in log ratio (less is better); saying “within ±{100 * min_effect:g}%” of "
            f"everything would have got {naive:.2f}."
        )
    ]


def _usable(found: Sequence[ApplicabilityScore]) -> list[str]:
    if not found:
        return []
    good, brier = sum(one.usable for one in found), fmean(one.brier for one in found)
    return [
        (
            f"{good} of {len(found)} changes that were tried could be used here; the chances given to that beforehand "
            f"have a Brier score of {brier:.2f} (0 is best, 0.25 is a coin's)."
        )
    ]


def _row(one: PredictionScore) -> ScoreRow:
    found, usable = one.effect, one.applicability
    return ScoreRow(
        hypothesis=one.hypothesis,
        about="; ".join(part for part in (one.mechanism_id, _note(one)) if part),
        predicted=range_words(one.predicted),
        measured=f"{_percent(found.estimate)} [{_percent(found.interval_low, '')}, {_percent(found.interval_high, '')}]"
        if found
        else NOTHING,
        range_met=met_words(found) if found else NOTHING,
        error=f"x{math.exp(found.signed_error):.2f}" if found else NOTHING,
        score=f"{found.interval_score:.2f}" if found else NOTHING,
        usable=f"{'yes' if usable.usable else 'no'} ({100 * usable.forecast:.0f}%)" if usable else NOTHING,
    )


def _note(one: PredictionScore) -> str:
    if one.unscored:
        return one.unscored.split(":")[0]
    if one.edited:
        return "a person's range"
    if one.control:
        return "a control"
    return {"no": "", "idle": "said to do nothing", "fails": "said to fail"}[one.warned]


def _left(one: Outlook) -> LeftRow:
    return LeftRow(
        hypothesis=one.hypothesis,
        predicted=range_words(one.predicted),
        corrected=range_words((one.corrected.low, one.corrected.high)),
        adoption=f"{100 * one.adoption:.0f}%",
        gain=_percent(one.expected_gain),
        cost=duration_words(one.expected_s),
    )


def _percent(log_ratio: float, unit: str = "%") -> str:
    return f"{100 * math.expm1(log_ratio):+.1f}{unit}"
