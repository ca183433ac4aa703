"""What has to be known to read the latency table: chunks that hold several tokens, prompts that share steps."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from assay.records.run import Measures
from assay.records.state import CampaignState, RunRecord
from assay.render.report_facts import baseline_runs, latency_arms
from assay.render.words import milliseconds_words

APART = 1.2
"""ITL and TPOT whose medians differ by more than a fifth are remarked on."""
SEVERAL = 1.1
"""Tokens a chunk from which on chunks are what sets them apart."""
SCATTERED = 1.5
"""Largest TTFT over the smallest, of one configuration's runs, from which on it is remarked on."""


def latency_notes(state: CampaignState) -> list[str]:
    """Sentences for below the table; none where it explains itself."""
    told = [note for arm, runs in latency_arms(state).items() if (note := _chunks(arm, _measures(runs)))]
    if told:
        told.insert(0, "TPOT is the time per token; ITL is the gap between two chunks of the stream.")
        if any("tokens a chunk" in note for note in told):
            told.append("How many tokens share a chunk is the server's and the client's timing: compare by TPOT.")
    return [*told, *_first_tokens(state)]


def tokens_per_chunk(measures: Measures) -> float | None:
    """Output tokens of the windows over their content chunks; None without chunks.

    Chunks are counted as the gaps between them and a first one for each completed request: exact but for requests
    that cross a window's edge.
    """
    chunks = measures.itl.num_samples + measures.requests_completed
    tokens = sum(window.output_tokens for window in measures.windows)
    return tokens / chunks if measures.itl.num_samples else None


def _chunks(arm: str, measured: Sequence[Measures]) -> str:
    itl = [one.itl.p50_s for one in measured if one.itl.p50_s is not None]
    tpot = [one.tpot.p50_s for one in measured if one.tpot.p50_s is not None]
    held = [held for one in measured if (held := tokens_per_chunk(one)) is not None]
    if not itl or not tpot or not held:
        return ""
    ratio, tokens = statistics.median(itl) / statistics.median(tpot), statistics.median(held)
    if 1 / APART <= ratio <= APART:
        return ""
    told = f"Of the {arm}, ITL p50 is {ratio:.2g} times TPOT p50"
    if ratio > 1 and tokens >= SEVERAL:
        return f"{told}, with {tokens:.2g} tokens a chunk on average."
    if ratio < 1:
        return f"{told}: most gaps are short, and few long ones (prompts in the same steps, for one) make up the rest."
    return f"{told}, at {tokens:.2g} tokens to a chunk; the record does not tell why."


def _first_tokens(state: CampaignState) -> list[str]:
    values = [one.ttft.p50_s for one in _measures(baseline_runs(state)) if one.ttft.p50_s]
    if not values or max(values) <= SCATTERED * min(values):
        return []
    low, high = milliseconds_words(min(values)), milliseconds_words(max(values))
    told = (
        "TTFT depends on how prompts happen to share steps, which differs from launch to launch: p50 of the baseline's "
        f"{len(values)} runs goes from {low} to {high} ms, and a difference inside that span cannot be put down to an "
        "arm."
    )
    return [told]


def _measures(runs: Sequence[RunRecord]) -> list[Measures]:
    return [run.outcome.measures for run in runs if run.outcome and run.outcome.measures]
