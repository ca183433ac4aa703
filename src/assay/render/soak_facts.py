"""What has to be known to read a headline which says that memory grows."""

from __future__ import annotations

from assay.records.state import CampaignState

GROWS = " grows ("
ALIKE = "as its reference's does"
"""Clauses of `assay.plan.soak_words` and `assay.plan.soak_reports`, which the headline's sentence quotes."""
CACHE_FLAGS = ("--cache-ram", "-cram")
LLAMACPP_CACHE = (
    "llama.cpp is known for it: it keeps the prompts of finished requests in main memory (--cache-ram, 8 GiB unless "
    "set), and so takes more with every request until that is full."
)
"""Source: measured, docs/verdicts.md: +61 MiB/min as it comes, +0.03 with --cache-ram 0."""


def growth_note(state: CampaignState) -> str:
    """In plain words what growing memory means; empty where the headline speaks of none."""
    headline = state.headline
    if headline is None or GROWS not in headline.sentence:
        return ""
    told = ["Memory that grows: it rose under peak load for as long as that lasted, by more than is tolerated."]
    if ALIKE in headline.sentence:
        told.append("The server without the change grows as well, so that the change is not to blame.")
    if state.spec.target.engine == "llamacpp" and all(headline.flags.get(name) != 0 for name in CACHE_FLAGS):
        told.append(LLAMACPP_CACHE)
    return " ".join([*told, "Whether it would end, a soak this short cannot tell."])
