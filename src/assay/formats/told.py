"""What a tool says of its own run, set beside what we compute of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.formats.columns import RequestColumns
from assay.formats.definitions import DEFINITIONS, Latencies
from assay.records.imported import LATENCIES, STATISTICS, Compared, ImportedLatency, LatencyName, Rates, Summary

HALF_DIGIT_S = 0.5e-5
"""Half of the last digit that such tools print: a hundredth of a millisecond."""
ROUNDING_SHARE = 1e-6
"""Of large values: what the order of a sum can change."""
MIN_SAMPLES_FOR_P99 = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A tool's own number of one latency."""

    summary: Summary | None
    definition: str


def compared(name: LatencyName, *, ours: Latencies | None, told: Told | None, why_not: str) -> ImportedLatency:
    """One latency, ours beside the tool's.

    Args:
        name: which.
        ours: recomputed latencies; None when the file has no single requests.
        told: the tool's own; None when it has no such number.
        why_not: said when there is nothing to recompute it from.
    """
    values = ours.summary(name) if ours else None
    theirs = told.summary if told else None
    comparison = _comparison(values, theirs) if values and theirs else []
    return ImportedLatency(
        name=name,
        recomputed=values is not None,
        values=values,
        definition=DEFINITIONS[name],
        why_not=None if values else (ours.why_empty(name) if ours else None) or why_not,
        tool_said=theirs,
        tool_definition=told.definition if told and theirs else None,
        comparison=comparison,
        agrees=all(one.agrees for one in comparison) if comparison else None,
    )


def compared_all(
    ours: Latencies | None, told: Mapping[LatencyName, Told], why_not: Mapping[LatencyName, str]
) -> list[ImportedLatency]:
    """All four."""
    return [compared(name, ours=ours, told=told.get(name), why_not=why_not[name]) for name in LATENCIES]


def agree(ours_s: float, theirs_s: float) -> bool:
    """Whether two latencies in seconds are one number, rounding aside."""
    return abs(ours_s - theirs_s) <= max(HALF_DIGIT_S, ROUNDING_SHARE * abs(theirs_s))


def rates(
    *, duration_s: float | None, requests: float | None, output_tokens: float | None, input_tokens: float | None
) -> Rates:
    """Counts over a duration; what is not known, or has no duration, is None."""
    total = None if output_tokens is None or input_tokens is None else output_tokens + input_tokens
    return Rates(
        requests_per_s=_over(requests, duration_s),
        output_tokens_per_s=_over(output_tokens, duration_s),
        total_tokens_per_s=_over(total, duration_s),
    )


def remarks(columns: RequestColumns | None, ours: Latencies | None, failed: int | None) -> list[str]:
    """Warnings that any tool's run can deserve."""
    found = []
    if failed:
        found.append(f"{failed:,} requests failed; they are in no latency, and a run with failures is a biased one")
    if columns and (empty := columns.num_empty):
        found.append(f"{empty:,} requests brought no token and no error: counted as failed here, as good by the tool")
    if ours and ours.num_unmeasured:
        found.append(
            f"{ours.num_unmeasured:,} requests have tokens and a TTFT of 0: their first token was not seen (reasoning "
            "or tool-call chunks, or no streaming); left out of TTFT and TPOT here"
        )
    if ours and ours.num_negative:
        found.append(f"{ours.num_negative:,} latencies are negative and left out: the clock was set during the run")
    if ours and (thin := _thin(ours)):
        names = ", ".join(name.upper() for name in thin)
        found.append(
            f"p99 of {names} rests on fewer than {MIN_SAMPLES_FOR_P99:,} samples: fewer than ten lie beyond it"
        )
    return found


def _comparison(ours: Summary, theirs: Summary) -> list[Compared]:
    found = []
    for statistic in STATISTICS:
        one, other = ours.value(statistic), theirs.value(statistic)
        if one is not None and other is not None:
            found.append(Compared(statistic=statistic, ours_s=one, theirs_s=other, agrees=agree(one, other)))
    return found


def _thin(ours: Latencies) -> list[LatencyName]:
    return [name for name in LATENCIES if 0 < len(ours.values[name]) < MIN_SAMPLES_FOR_P99]


def _over(amount: float | None, duration_s: float | None) -> float | None:
    """Per second; below a microsecond there is no duration to speak of."""
    return amount / duration_s if amount is not None and duration_s is not None and duration_s > 1e-6 else None  # noqa: PLR2004
