"""The calibration plot: what was predicted against what was measured, and how what is left is corrected."""

from __future__ import annotations

import math

from assay.plan.scoring import score
from assay.plan.worth import open_outlooks
from assay.records.scoring import Outlook, PredictionScore
from assay.records.state import CampaignState
from assay.render import svg
from assay.render.scoring_facts import met_words
from assay.render.words import range_words


def calibration_rows(state: CampaignState) -> list[svg.Row]:
    """A row a hypothesis, the highest prediction first; those still open below, with their corrected ranges.

    Ranges shrink, widen and miss in a pattern that a list in the order of the plan would hide.
    """
    measured = [one for one in score(state) if one.effect]
    if not measured:
        return []
    rows = [_measured(one) for one in sorted(measured, key=_highest_first)]
    return rows + [_open(one) for one in sorted(open_outlooks(state), key=_highest_first)]


def _measured(one: PredictionScore) -> svg.Row:
    found = one.effect
    assert found is not None
    return svg.Row(
        label=one.hypothesis,
        low=_percent(found.interval_low),
        middle=_percent(found.estimate),
        high=_percent(found.interval_high),
        band=_band(one.predicted),
        kind="held" if found.meets else "missed",
        note=f"{met_words(found)}: {range_words(one.predicted)}",
        target=f"h-{one.hypothesis}",
    )


def _open(one: Outlook) -> svg.Row:
    corrected = (one.corrected.low, one.corrected.high)
    return svg.Row(
        label=one.hypothesis,
        band=_band(one.predicted),
        outline=_band(corrected),
        kind="open",
        note=f"open: {range_words(corrected)}",
        target=f"h-{one.hypothesis}",
    )


def _band(predicted: tuple[float, float]) -> tuple[float, float]:
    return 100 * predicted[0], 100 * predicted[1]


def _percent(log_ratio: float) -> float:
    return 100 * math.expm1(log_ratio)


def _highest_first(one: PredictionScore | Outlook) -> float:
    return -sum(one.predicted)
