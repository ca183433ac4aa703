"""Everything that `assay bench` says of a load test, from its requests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.load.arrival import gaps_cv
from assay.load.columns import MISSING, Bools, Columns, Floats
from assay.load.distributions import of_gaps, of_requests
from assay.load.metrics import (
    NS,
    Windows,
    chunk_weights,
    completed,
    e2e_from_intended_s,
    e2e_s,
    gaps_in,
    itl_per_token_s,
    mean_tokens,
    prompt_tokens,
    tokens_by_window,
    tokens_per_chunk,
    tpot_s,
    ttft_from_intended_s,
    ttft_s,
)
from assay.records.bench import BenchMeasures, SeriesPoint, Slo

MAX_POINTS = 120
MIN_STRETCH_NS = 250_000_000


def bench_measures(requests: Columns, windows: Windows, slo: Slo, offered_per_s: float | None) -> BenchMeasures:
    """All measures of the windows. Throughputs and goodput divide by their total length."""
    done = completed(requests, windows)
    by_window = tokens_by_window(requests, windows)
    output, prompts = sum(by_window), prompt_tokens(requests, windows)
    sent = np.sort(requests.sent_ns[windows.hold(requests.sent_ns)])
    gaps, later = gaps_in(requests, windows)
    per_token, weights = itl_per_token_s(requests, windows)
    total_s = windows.total_s
    mean_in_flight, max_in_flight = in_flight(requests, windows.start_ns, windows.end_ns)
    return BenchMeasures(
        duration_s=total_s,
        window_tokens_per_s=[tokens / windows.length_ns * NS for tokens in by_window],
        output_tokens_per_s=output / total_s,
        total_tokens_per_s=(output + prompts) / total_s,
        requests_per_s=int(done.sum()) / total_s,
        goodput_per_s=None if slo.is_empty else int((done & meets(requests, slo)).sum()) / total_s,
        requests_completed=int(done.sum()),
        output_tokens=output,
        input_tokens=prompts,
        ttft=of_requests(ttft_s(requests)[done]),
        ttft_from_intended=of_requests(ttft_from_intended_s(requests)[done]),
        tpot=of_requests(tpot_s(requests)[done]),
        itl=of_gaps(gaps, requests.chunk_ns[later]),
        itl_per_token=of_gaps(per_token, requests.chunk_ns[later], weights),
        e2e=of_requests(e2e_s(requests)[done]),
        e2e_from_intended=of_requests(e2e_from_intended_s(requests)[done]),
        tokens_per_chunk=tokens_per_chunk(requests),
        mean_input_tokens=mean_tokens(requests.input_tokens, done),
        mean_output_tokens=mean_tokens(requests.output_tokens, done),
        mean_in_flight=mean_in_flight,
        max_in_flight=max_in_flight,
        offered_per_s=offered_per_s,
        sent_per_s=len(sent) / total_s,
        arrival_cv=None if offered_per_s is None else gaps_cv(sent.tolist()),
    )


def meets(requests: Columns, slo: Slo) -> Bools:
    """Which requests keep every bound; one whose latency is undefined keeps it only where nothing is asked of it.

    A tpot bound is kept by a request of one token: it has no gap to be slow in.
    """
    good = np.ones(len(requests), dtype=np.bool_)
    if slo.ttft_s is not None:
        good &= ttft_from_intended_s(requests) <= slo.ttft_s
    if slo.tpot_s is not None:
        tpot = tpot_s(requests)
        good &= (tpot <= slo.tpot_s) | (np.isnan(tpot) & (requests.output_tokens == 1))
    if slo.e2e_s is not None:
        good &= e2e_from_intended_s(requests) <= slo.e2e_s
    return good


def in_flight(requests: Columns, start_ns: int, end_ns: int) -> tuple[float, int]:
    """Mean and most requests in flight between two instants."""
    begin, end = np.clip(requests.sent_ns, start_ns, end_ns), np.clip(requests.ended_ns, start_ns, end_ns)
    mean = float((end - begin).sum()) / max(end_ns - start_ns, 1)
    there = end > begin
    events = np.concatenate([begin[there], end[there]])
    steps = np.concatenate([np.ones(int(there.sum())), -np.ones(int(there.sum()))])
    order = np.lexsort((steps, events))  # an end counts before a begin at the same instant
    return mean, int(np.cumsum(steps[order]).max(initial=0))


def series(requests: Columns, began_ns: int, ended_ns: int, windows: Windows | None) -> list[SeriesPoint]:
    """The whole load in at most 120 stretches."""
    length_ns = max(-(-(ended_ns - began_ns) // MAX_POINTS), MIN_STRETCH_NS)
    number = max((ended_ns - began_ns) // length_ns, 0)
    stretches = Windows(start_ns=began_ns, length_ns=length_ns, count=number)
    if number == 0:
        return []
    tokens = tokens_by_window(requests, stretches)
    first_in = stretches.which(requests.first_ns)
    ttft = ttft_s(requests)
    gaps, later = gaps_in(requests, stretches)
    gap_in = stretches.which(requests.chunk_ns[later])
    order = np.argsort(gap_in, kind="stable")
    bounds = np.searchsorted(gap_in[order], np.arange(number + 1))
    points = []
    for at in range(number):
        start_ns = began_ns + at * length_ns
        own = gaps[order[bounds[at] : bounds[at + 1]]]
        first = ttft[(first_in == at) & (requests.first_ns != MISSING)]
        inside = windows is not None and windows.start_ns <= start_ns and start_ns + length_ns <= windows.end_ns
        points.append(
            SeriesPoint(
                at_s=(at + 0.5) * length_ns / NS,
                output_tokens_per_s=tokens[at] / length_ns * NS,
                ttft_p50_s=quantile(first, 0.5),
                ttft_p99_s=quantile(first, 0.99),
                itl_p50_s=quantile(own, 0.5),
                itl_p99_s=quantile(own, 0.99),
                in_flight=in_flight(requests, start_ns, start_ns + length_ns)[0],
                measured=inside,
            )
        )
    return points


def realised(requests: Columns) -> dict[str, float | None]:
    """Lengths as they came, of whole requests."""
    found: dict[str, float | None] = {}
    for name, tokens in (("input_tokens", requests.input_tokens), ("output_tokens", requests.output_tokens)):
        known = tokens[requests.ok & (tokens != MISSING)]
        found[f"{name}_mean"] = float(known.mean()) if len(known) else None
        found[f"{name}_p50"] = float(np.median(known)) if len(known) else None
        found[f"{name}_max"] = float(known.max()) if len(known) else None
    return found


def schedule_error_s(requests: Columns, windows: Windows) -> Floats:
    """Actual minus intended send instant of requests sent in the windows, seconds."""
    inside = windows.hold(requests.sent_ns)
    return (requests.sent_ns - requests.intended_ns)[inside] / NS


def merged_share(requests: Columns) -> float:
    """Share of content chunks that were read together with the one before."""
    chunks = int(requests.num_chunks.sum())
    return int(requests.merged.sum()) / chunks if chunks else 0.0


def arrived_tokens(requests: Columns, start_ns: int, end_ns: int) -> float:
    """Output tokens that arrived between two instants."""
    inside = (requests.chunk_ns >= start_ns) & (requests.chunk_ns < end_ns)
    return float(chunk_weights(requests)[inside].sum())


def quantile(values: Sequence[float] | Floats, share: float) -> float | None:
    """One quantile, linear between order statistics; None of no values."""
    return float(np.quantile(values, share)) if len(values) else None
