"""Our definitions of the latencies, computed from requests of any tool. They are those of `assay.load.metrics`.

One thing is not in foreign files: when the stream ended. E2E is therefore what the tool gives as a request's latency,
mostly the arrival of its last chunk; ours, measured by Assay, ends with the stream, a little later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from assay.formats.columns import RequestColumns
from assay.records.imported import LatencyName, Summary

DEFINITIONS: dict[LatencyName, str] = {
    "ttft": "request sent to its first chunk with content, of each request",
    "tpot": "(E2E - TTFT) / (output tokens - 1), of each request with two tokens or more",
    "itl": "every gap between successive chunks of a request, pooled over requests",
    "e2e": "request sent to its end as the tool has it (last chunk, or end of the stream), of each request",
}
MIN_TOKENS = 2
"""One token has no gap after it."""
PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """What could be computed, and how many requests had to be left out of it."""

    values: dict[LatencyName, list[float]]
    """Seconds; empty where nothing is known."""
    num_unmeasured: int
    """Requests with tokens whose TTFT is 0: the tool did not see their first token."""
    num_negative: int
    """Latencies below 0: the tool's clock was set during the run."""
    num_good: int
    """Requests that count."""
    has_gaps: bool
    """Whether the file tells the gaps between chunks."""

    def summary(self, name: LatencyName) -> Summary | None:
        """Mean and percentiles, linear between order statistics as numpy's default; None without samples."""
        return summarize(self.values[name])

    def why_empty(self, name: LatencyName) -> str | None:
        """Why there are no samples although the file has the data; None: it has not."""
        if not self.num_good:
            return "no request of the run succeeded"
        if name == "tpot" and self.values["ttft"] and self.values["e2e"]:
            return "no request has two output tokens or more, or none was counted"
        return "no request has two chunks" if name == "itl" and self.has_gaps else None


def summarize(values: Sequence[float]) -> Summary | None:
    """Mean and percentiles of seconds; None without samples."""
    if not values:
        return None
    array = np.asarray(values, dtype=float)
    p50, p90, p95, p99 = (float(value) for value in np.percentile(array, PERCENTILES))
    return Summary(num_samples=len(values), mean_s=float(array.mean()), p50_s=p50, p90_s=p90, p95_s=p95, p99_s=p99)


def latencies(columns: RequestColumns) -> Latencies:
    """All four latencies of the requests that count."""
    places = columns.successes()
    found: dict[LatencyName, list[float | None]] = {
        "ttft": [columns.ttft_s[place] or None for place in places],
        "tpot": [_tpot_s(columns, place) for place in places],
        "itl": [gap for place in places for gap in columns.itl_s[place] or ()],
        "e2e": [columns.latency_s[place] or None for place in places],
    }
    return Latencies(
        values={
            name: [value for value in values if value is not None and value >= 0] for name, values in found.items()
        },
        num_unmeasured=sum(columns.ttft_s[place] == 0 for place in places),
        num_negative=sum(_num_negative(values) for values in found.values()),
        num_good=len(places),
        has_gaps=any(columns.itl_s[place] is not None for place in places),
    )


def _tpot_s(columns: RequestColumns, place: int) -> float | None:
    first, whole, tokens = columns.ttft_s[place], columns.latency_s[place], columns.output_tokens[place]
    if not first or not whole or tokens is None or tokens < MIN_TOKENS:
        return None
    return (whole - first) / (tokens - 1)


def _num_negative(values: Iterable[float | None]) -> int:
    return sum(value is not None and value < 0 for value in values)
