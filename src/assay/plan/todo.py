"""The todo: a view of the record."""

from __future__ import annotations

from assay.plan.corrected import corrected
from assay.plan.verdicts import NOT_TRIED, blocked_at_plan_time, is_unmeasured
from assay.records.hypothesis import Hypothesis, TodoStatus
from assay.records.state import CampaignState
from assay.records.verdict import Verdict, VerdictKind
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
            corrected=known.get(h.id) if _verdict(state, h) is None else None,
            depends_on=h.waits_for,
            verdict=_verdict(state, h),
            document=h.document,
            simulated=state.is_simulated,
        )
        for h in state.hypotheses
    ]


def _verdict(state: CampaignState, hypothesis: Hypothesis) -> Verdict | None:
    """The recorded one; of what the plan knows to be blocked, the one that the next `assay run` will record."""
    blocked = hypothesis.status == "blocked"
    return state.verdicts.get(hypothesis.id) or (blocked_at_plan_time(hypothesis).verdict if blocked else None)


def _status(state: CampaignState, hypothesis: Hypothesis, *, started: bool) -> TodoStatus:
    verdict = _verdict(state, hypothesis)
    if hypothesis.status == "cancelled":
        return "cancelled"
    if verdict is not None:
        untried = verdict.kind is VerdictKind.BLOCKED and verdict.cause in NOT_TRIED
        return "cancelled" if untried or (is_unmeasured(verdict) and not verdict.runs) else "completed"
    return "in_progress" if started or hypothesis.id in state.screened else "pending"
