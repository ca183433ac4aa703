"""What has to be known to read a headline that speaks of stability."""

from __future__ import annotations

from assay.plan.soak_reports import NOT_SHOWN
from assay.records.state import CampaignState
from assay.records.verdict import Headline, MemoryGrows

CACHE_FLAGS = ("--cache-ram", "-cram")
LLAMACPP_CACHE = (
    "llama.cpp is known for it: it keeps the prompts of finished requests in main memory (--cache-ram, 8 GiB unless "
    "set), and so takes more with every request until that is full."
)
"""Source: measured, docs/verdicts.md: +61 MiB/min as it comes, +0.03 with --cache-ram 0."""


def stability_note(headline: Headline) -> str:
    """What the recorded sentence does not say: that its stack is not shown to be stable; empty where it does."""
    why = headline.not_shown_stable
    return f"; {NOT_SHOWN}: {why}" if why and NOT_SHOWN not in headline.sentence else ""


def growth_note(state: CampaignState) -> str:
    """In plain words what growing memory means; empty where the headline speaks of none."""
    headline = state.headline
    grows = "no" if headline is None else headline.memory_grows or _recorded_growth(headline.sentence)
    if headline is None or grows == "no":
        return ""
    told = ["Memory that grows: it rose under peak load for as long as that lasted, by more than is tolerated."]
    if grows == "as-its-reference":
        told.append("The server without the change grows as well, so that the change is not to blame.")
    if state.spec.target.engine == "llamacpp" and all(headline.flags.get(name) != 0 for name in CACHE_FLAGS):
        told.append(LLAMACPP_CACHE)
    return " ".join([*told, "Whether it would end, a soak this short cannot tell."])


def _recorded_growth(sentence: str) -> MemoryGrows:
    """Of a record that has only the sentence: its clauses, which are as they were written then."""
    if " grows (" not in sentence:
        return "no"
    return "as-its-reference" if "as its reference's does" in sentence else "yes"
