"""The verb that explains one entry of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.records.reasoning import PlanReasoning, Reasoning
    from assay.records.state import CampaignState
    from assay.records.views import Corrected, Worth


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One entry."""

    reasoning: Reasoning
    plan: PlanReasoning
    worth: Worth | None
    """Of a hypothesis that is still to be tried: what it promises for what it costs, by everything known today."""
    corrected: Corrected | None
    """Its range as verdicts on machines of this class correct it; None while there are none."""


def explained(state: CampaignState, name: str) -> Explained:
    """Why an entry is planned, blocked or skipped, as found when the plan was written.

    Raises:
        UsageError: no such entry, or the plan was written by an Assay that kept no reasons.
    """
    from difflib import get_close_matches

    from assay.plan.corrected import corrected
    from assay.plan.worth import ranked

    if not state.reasoning.entries:
        raise UsageError(
            "the plan holds no reasons: an earlier Assay wrote it",
            hint="plan it again in a new folder (copy assay.toml)",
        )
    thought = state.reasoning.entries.get(name)
    if thought is None:
        near = get_close_matches(name, state.reasoning.entries, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "`assay catalogue` lists all entries, by engine"
        raise UsageError(f"the catalogue has no entry {name!r} for {state.spec.target.engine}", hint=hint)
    left = [one for one in state.hypotheses if one.status == "planned" and one.id not in state.verdicts]
    worth = next((one for one in ranked(state, left) if one.candidate == name), None)
    return Explained(reasoning=thought, plan=state.reasoning, worth=worth, corrected=corrected(state).get(name))
