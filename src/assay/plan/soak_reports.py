"""What is known of an arm's stability, in words: for verdicts, for the headline, and for what is shipped."""

from __future__ import annotations

from collections.abc import Collection

from assay.plan import soak_counts
from assay.plan.soak_counts import counted, stood
from assay.plan.soak_words import UNSOAKED, memory, told
from assay.plan.soaking import also_needed_s, unstable
from assay.plan.soaks_made import asked, compared_with, counts_of, deciding, soak_of, telling
from assay.records.soak import Soak
from assay.records.state import CampaignState
from assay.records.verdict import Headline, MemoryGrows

NOT_SHOWN = "not shown to be stable"
UNASKED = "no soak was asked for (budget.soak_s is 0)"


def soaked_words(
    state: CampaignState, deltas: Collection[str], reference: Collection[str], *, brief: bool = False
) -> str:
    """What is known of an arm's stability, as a clause; empty where no soak is asked for, but in brief (the headline).

    Args:
        state: the campaign.
        deltas: of the arm.
        reference: of what it stands on.
        brief: without figures, where there is nothing to worry about.
    """
    if not brief and not state.spec.budget.soak_s and not asked(state, deltas):
        return ""
    if why := not_shown_stable(state, deltas, reference):
        return f"; {NOT_SHOWN}: {why}"
    own, failed = deciding(state, deltas), counts_of(state, deltas).failed
    assert own is not None
    if own.passed and not failed and brief:
        return f"; stable for {own.soaked_s:.0f} s at its peak load"
    return f"; {told(own)}{_beside(state, own, deltas, reference) if own.grows or failed else ''}"


def not_shown_stable(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> str | None:
    """Why no soak shows that an arm which is to ship is stable; None where one does, if only as its reference is."""
    own = deciding(state, deltas)
    if own is None:
        return _why_unsoaked(state, deltas, reference) or UNASKED
    counts, alone = counts_of(state, deltas), not stood(compared_with(state, deltas, reference))
    doubtful = counts.fell or ((own.grows or counts.failed) and alone)
    return f"{told(own)}{_beside(state, own, deltas, reference)}" if doubtful else None


def memory_grows(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> MemoryGrows:
    """What the soak that decides of an arm says of its memory; one that is blamed outgrows what its reference does."""
    own = deciding(state, deltas)
    if own is None or not own.grows:
        return "no"
    held_against = stood(compared_with(state, deltas, reference))
    alike = bool(held_against) and held_against[-1].grows and unstable(state, deltas, reference) is None
    return "as-its-reference" if alike else "yes"


def completed_headline(state: CampaignState, headline: Headline) -> Headline:
    """A headline as recorded, with what an Assay before soaks did not say of the stack that it confirms."""
    if not headline.confirmed or headline.not_shown_stable is not None or not headline.stack:
        return headline
    return headline.model_copy(update={"not_shown_stable": not_shown_stable(state, headline.stack, [])})


def _why_unsoaked(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> str:
    """In words, of an arm of which no soak says anything; empty where none was asked for."""
    soak_s, tried = state.spec.budget.soak_s, asked(state, deltas)
    if tried:
        soak = soak_of(tried[-1])
        return told(soak) if soak is not None else "not soaked: the soak was interrupted"
    if not soak_s:
        return ""
    beside_s = also_needed_s(state, reference)
    both = f"{soak_s + beside_s:g} s left for it{' and for its reference' if beside_s else ''}"
    return f"not soaked: no time: the budget had no {both} beside the confirmation (budget.soak_s)"


def _beside(state: CampaignState, own: Soak, deltas: Collection[str], reference: Collection[str]) -> str:
    """What the reference did in its soaks; where it has none, the stack without its last member, else the baseline."""
    beside = compared_with(state, deltas, reference) or telling(state, ())
    if not beside:
        return f"; its {UNSOAKED}"
    counts, held_against = counts_of(state, deltas), stood(beside)
    if counts.fell:
        return f"; {soak_counts.compared_falls(counts, counted(beside))}"
    if not held_against:
        died = beside[-1].died
        return f"; its reference died in its own: {died}" if died else "; its reference stood still in its own"
    base = held_against[-1]
    said = f"; {soak_counts.compared(counts, counted(held_against))}" if counts.failed else ""
    if not own.grows:
        return said
    return said + (
        f", as its reference's does: {memory(base)}" if base.grows and not said else f"; its reference: {memory(base)}"
    )
