"""The gate of a result that cannot be true: faster than what the machine can do."""

from __future__ import annotations

from assay.records.run import Gate


def physical_ceiling(output_tokens_per_s: float, ceiling_tokens_per_s: float, source: str | None) -> Gate:
    """Whether a throughput is at most a bound that nothing can exceed.

    Args:
        output_tokens_per_s: as measured.
        ceiling_tokens_per_s: output tokens per second that the machine can reach at the very most.
        source: where the bound comes from, in words.
    """
    passed = output_tokens_per_s <= ceiling_tokens_per_s
    share = output_tokens_per_s / ceiling_tokens_per_s
    return Gate(
        name="below-physical-ceiling",
        passed=passed,
        evidence=f"{output_tokens_per_s:,.0f} output tokens/s are {100 * share:.0f}% of the ceiling of "
        f"{ceiling_tokens_per_s:,.0f} ({source or 'its source was not told'})",
        remedy=""
        if passed
        else "one of the two is wrong: look for replies that were not computed (a cache, repeated prompts), for tokens "
        "that the server counts twice, and for an assumption of the ceiling that does not hold here",
    )
