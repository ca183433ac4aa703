"""The todo: a view of the record."""

from __future__ import annotations

from assay.plan.corrected import corrected
from assay.plan.verdicts import NOT_TRIED
from assay.records.hypothesis import Hypothesis, TodoStatus
from assay.records.state import CampaignState
from assay.records.verdict import VerdictKind
from assay.records.views import TodoItem


def todo(state: CampaignState) -> list[TodoItem]:
    """One item a hypothesis, in the plan's order."""
    measured = {run.intent.candidate for run in state.runs}
    known = corrected(state)
    return [
        TodoItem(
            id=h.id,
            content=h.optimization.title,
            status=_status(state, h, started=h.id in measured),
            priority=h.priority,
            tier=h.optimization.tier,
            predicted=h.predicted,
            corrected=known.get(h.id) if h.id not in state.verdicts else None,
            depends_on=h.waits_for,
            verdict=state.verdicts.get(h.id),
            document=h.document,
            simulated=state.is_simulated,
        )
        for h in state.hypotheses
    ]


def _status(state: CampaignState, hypothesis: Hypothesis, *, started: bool) -> TodoStatus:
    verdict = state.verdicts.get(hypothesis.id)
    if hypothesis.status == "cancelled":
        return "cancelled"
    if verdict is not None:
        return "cancelled" if verdict.kind is VerdictKind.BLOCKED and verdict.cause in NOT_TRIED else "completed"
    return "in_progress" if started or hypothesis.id in state.screened else "pending"
