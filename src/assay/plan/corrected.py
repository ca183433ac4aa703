"""What earlier verdicts make of the ranges that a plan states: for printing, beside them."""

from __future__ import annotations

from collections.abc import Iterable

from assay.plan.credibility import corrected_range, credibility_of
from assay.plan.scoring import planned_range
from assay.records.scoring import PredictionScore
from assay.records.state import CampaignState
from assay.records.views import Corrected


def corrected(state: CampaignState, earlier: Iterable[PredictionScore] | None = None) -> dict[str, Corrected]:
    """By hypothesis; empty while no effect was measured on machines of this class.

    Args:
        state: the campaign; its own verdicts count.
        earlier: scores of other campaigns; None: those that its record holds.
    """
    credibility = credibility_of(state, state.earlier_scores if earlier is None else earlier)
    if not (num_scores := credibility.overall.num_effects):
        return {}
    found = {}
    for hypothesis in state.hypotheses:
        if hypothesis.status == "planned":
            told = corrected_range(hypothesis, credibility, planned_range(state, hypothesis))
            found[hypothesis.id] = Corrected(
                low=told.low, high=told.high, num_scores=num_scores, machine_class=credibility.machine_class.words
            )
    return found
