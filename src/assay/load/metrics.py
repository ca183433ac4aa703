"""The definitions of all metrics, each computed from the samples of one run.

All stamps are integer nanoseconds of one monotonic clock. "The windows" are the measured windows, back to back, each
half-open: [start, end). A request *completed in the windows* succeeded and its end arrived in them, whenever it was
sent. Nothing here is 0 for want of data: a distribution without samples has None for every quantile.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from assay.records.load import RequestSample
from assay.records.run import Measures, Quantiles, Window

NS = 1_000_000_000
MIN_SAMPLES_FOR_P99 = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The measured windows of a run."""

    start_ns: int
    length_ns: int
    count: int

    @property
    def end_ns(self) -> int:
        """Where the last one ends."""
        return self.start_ns + self.length_ns * self.count

    def which(self, at_ns: int) -> int | None:
        """Number of the window that holds an instant; None outside."""
        inside = self.start_ns <= at_ns < self.end_ns
        return (at_ns - self.start_ns) // self.length_ns if inside else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCost:
    """What the run cost on our side."""

    cpu_share: float
    max_lag_s: float
    warmup_s: float
    load_began_ns: int


def ttft_s(sample: RequestSample) -> float | None:
    """Time to first token: `first_content - sent`, seconds.

    Sent is when the request's bytes were handed to a connected socket; first content is the first chunk that carries
    text (or proof of a token), never a role or an empty chunk. Undefined when no content came.
    """
    return None if sample.first_content_ns is None else (sample.first_content_ns - sample.sent_ns) / NS


def ttft_from_intended_s(sample: RequestSample) -> float | None:
    """The same from the instant at which the request was due: includes our own delay and the connecting."""
    return None if sample.first_content_ns is None else (sample.first_content_ns - sample.intended_ns) / NS


def e2e_s(sample: RequestSample) -> float:
    """Whole request: `end - sent`, seconds; the end is the arrival of `[DONE]` (all tokens are out by then)."""
    return (sample.ended_ns - sample.sent_ns) / NS


def tpot_s(sample: RequestSample) -> float | None:
    """Time per output token after the first: `(e2e - ttft) / (n - 1)`, n from `usage`; undefined for n below 2."""
    first, tokens = ttft_s(sample), sample.output_tokens
    if first is None or tokens is None or tokens < 2:  # noqa: PLR2004 - one token has no gap
        return None
    return (e2e_s(sample) - first) / (tokens - 1)


def itl_s(samples: Iterable[RequestSample], windows: Windows) -> list[float]:
    """Inter-chunk latency: gaps between successive content chunks of a request, pooled, seconds.

    Population: gaps whose later chunk arrived in the windows, of every request, also those still in flight. A chunk
    may hold several tokens, so this is what a reader of the stream feels, not a time per token (`tpot_s` is).
    """
    return [
        (later - earlier) / NS
        for sample in samples
        for earlier, later in pairwise(sample.chunk_ns)
        if windows.which(later) is not None
    ]


def quantiles(values: Iterable[float | None]) -> Quantiles:
    """Mean and percentiles (linear interpolation between order statistics) of the defined values.

    p99 is None below 1,000 samples: fewer than ten values would lie beyond it.
    """
    ordered = sorted(value for value in values if value is not None)
    if not ordered:
        return Quantiles(num_samples=0, mean_s=None, p50_s=None, p90_s=None, p95_s=None, p99_s=None)
    return Quantiles(
        num_samples=len(ordered),
        mean_s=sum(ordered) / len(ordered),
        p50_s=_percentile(ordered, 0.50),
        p90_s=_percentile(ordered, 0.90),
        p95_s=_percentile(ordered, 0.95),
        p99_s=_percentile(ordered, 0.99) if len(ordered) >= MIN_SAMPLES_FOR_P99 else None,
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def completed(samples: Iterable[RequestSample], windows: Windows) -> list[RequestSample]:
    """Requests completed in the windows."""
    return [sample for sample in samples if sample.error is None and windows.which(sample.ended_ns) is not None]


def tokens_per_chunk(samples: Iterable[RequestSample]) -> float:
    """Output tokens of all successful requests over their content chunks; 1 when none has succeeded."""
    done = [s for s in samples if s.error is None and s.output_tokens is not None and s.chunk_ns]
    chunks = sum(len(sample.chunk_ns) for sample in done)
    return sum(sample.output_tokens or 0 for sample in done) / chunks if chunks else 1.0


def tokens_by_window(samples: Sequence[RequestSample], windows: Windows) -> list[float]:
    """Output tokens that arrived in each window.

    A chunk weighs (`usage` tokens of its request) / (content chunks of its request), so that a request's chunks sum to
    the server's own count however tokens were packed. Requests without a count, in flight when the load ended, weigh
    by the run's tokens per chunk.
    """
    otherwise = tokens_per_chunk(samples)
    totals = [0.0] * windows.count
    for sample in samples:
        counted = sample.error is None and sample.output_tokens is not None and sample.chunk_ns
        weight = (sample.output_tokens or 0) / len(sample.chunk_ns) if counted else otherwise
        for at_ns in sample.chunk_ns:
            if (window := windows.which(at_ns)) is not None:
                totals[window] += weight
    return totals


def prompt_tokens(samples: Sequence[RequestSample], windows: Windows) -> float:
    """Prompt tokens of requests whose first content arrived in the windows.

    From `usage`; a request still in flight when the load ended counts the mean of those that have it.
    """
    known = [sample.input_tokens for sample in samples if sample.input_tokens is not None]
    otherwise = sum(known) / len(known) if known else 0.0
    return sum(
        otherwise if sample.input_tokens is None else sample.input_tokens
        for sample in samples
        if sample.first_content_ns is not None and windows.which(sample.first_content_ns) is not None
    )


def num_arrived(arrivals_ns: Sequence[int], start_ns: int, end_ns: int) -> int:
    """Content chunks that arrived in [start, end); `arrivals_ns` ascends."""
    return bisect_right(arrivals_ns, end_ns - 1) - bisect_right(arrivals_ns, start_ns - 1)


def measure(samples: Sequence[RequestSample], windows: Windows, client: ClientCost) -> Measures:
    """All measures of a run.

    Throughputs divide by the total length of the windows. ttft, tpot, e2e and the mean lengths: requests completed in
    the windows. itl: gaps that end in the windows.
    """
    done = completed(samples, windows)
    by_window = tokens_by_window(samples, windows)
    total_s = windows.length_ns * windows.count / NS
    output = sum(by_window)
    return Measures(
        windows=_windows(by_window, windows, client.load_began_ns),
        output_tokens_per_s=output / total_s,
        total_tokens_per_s=(output + prompt_tokens(samples, windows)) / total_s,
        requests_per_s=len(done) / total_s,
        requests_completed=len(done),
        ttft=quantiles(map(ttft_s, done)),
        tpot=quantiles(map(tpot_s, done)),
        itl=quantiles(itl_s(samples, windows)),
        e2e=quantiles(map(e2e_s, done)),
        mean_input_tokens=_mean(done, lambda sample: sample.input_tokens),
        mean_output_tokens=_mean(done, lambda sample: sample.output_tokens),
        warmup_s=client.warmup_s,
        client_cpu_share=client.cpu_share,
        client_max_lag_s=client.max_lag_s,
        server_rss_bytes=None,
    )


def _windows(by_window: list[float], windows: Windows, load_began_ns: int) -> list[Window]:
    length_s = windows.length_ns / NS
    return [
        Window(
            start_s=(windows.start_ns + number * windows.length_ns - load_began_ns) / NS,
            duration_s=length_s,
            output_tokens=round(tokens),
            output_tokens_per_s=tokens / length_s,
        )
        for number, tokens in enumerate(by_window)
    ]


def _mean(samples: Iterable[RequestSample], of: Callable[[RequestSample], int | None]) -> float | None:
    values = [value for sample in samples if (value := of(sample)) is not None]
    return sum(values) / len(values) if values else None
