"""Hypotheses that wait until others are adopted: when their turn comes, and when it never will.

A hypothesis that requires another is screened together with it, once that one is in the stack; its gain is judged, as
everybody's, on top of the stack, so that it is credited with its own part alone.
"""

from __future__ import annotations

from assay.plan.steps import RecordVerdict
from assay.plan.verdicts import DEPENDENCY
from assay.records.hypothesis import Hypothesis
from assay.records.state import CampaignState
from assay.records.verdict import Verdict, VerdictKind


def waits(state: CampaignState, hypothesis: Hypothesis) -> bool:
    """Whether something that it requires is not in the stack (yet)."""
    return any(name not in state.stack for name in hypothesis.waits_for)


def carried(state: CampaignState, hypothesis: Hypothesis) -> list[Hypothesis]:
    """The adopted hypotheses that its arm of the screen needs beside it, in the order in which it names them."""
    by_id = {one.id: one for one in state.hypotheses}
    return [by_id[name] for name in hypothesis.waits_for if name in state.stack]


def num_waiting(state: CampaignState) -> int:
    """How many may still reach composition because what they wait for may still be adopted."""
    return sum(1 for one in _undecided(state) if waits(state, one))


def in_vain(state: CampaignState) -> RecordVerdict | None:
    """The verdict of the first hypothesis that waits for something that was not adopted; None when there is none."""
    by_id = {one.id: one for one in state.hypotheses}
    for hypothesis in _undecided(state):
        for name in hypothesis.waits_for:
            needed, verdict = by_id.get(name), state.verdicts.get(name)
            if name in state.stack or (needed is not None and needed.status == "planned" and verdict is None):
                continue
            how = f"whose verdict is {verdict.kind.value}" if verdict else "which is not tried"
            reason = f"needs {name}, {how}"
            return RecordVerdict(
                verdict=Verdict(candidate=hypothesis.id, kind=VerdictKind.BLOCKED, cause=DEPENDENCY, reason=reason)
            )
    return None


def _undecided(state: CampaignState) -> list[Hypothesis]:
    return [
        one
        for one in state.hypotheses
        if one.status == "planned" and one.waits_for and one.id not in state.verdicts and one.id not in state.screened
    ]
