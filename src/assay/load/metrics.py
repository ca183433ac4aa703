"""The definitions of all metrics, each computed from the requests of one load test.

All stamps are integer nanoseconds of one monotonic clock. "The windows" are the measured windows, back to back, each
half-open: [start, end). A request *completed in the windows* succeeded and its end arrived in them, whenever it was
sent. Nothing here is 0 for want of data: a distribution without samples has None for every quantile. Arrays of
seconds hold NaN where a value is undefined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.load.columns import MISSING, Bools, Columns, Floats, Ints
from assay.records.run import Measures, Quantiles, Window

NS = 1_000_000_000
MIN_SAMPLES_FOR_P99 = 1_000
OUTSIDE = -1


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

    @property
    def total_s(self) -> float:
        """Length of all."""
        return self.length_ns * self.count / NS

    def which(self, at_ns: Ints) -> Ints:
        """Number of the window that holds each instant; `OUTSIDE` where none does."""
        inside = (at_ns >= self.start_ns) & (at_ns < self.end_ns)
        return np.where(inside, (at_ns - self.start_ns) // self.length_ns, OUTSIDE)

    def hold(self, at_ns: Ints) -> Bools:
        """Whether each instant lies in the windows."""
        inside: Bools = (at_ns >= self.start_ns) & (at_ns < self.end_ns)
        return inside


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCost:
    """What the run cost on our side."""

    cpu_share: float
    """CPU seconds of all load processes over the measured seconds."""
    busiest_share: float
    """The same of the busiest process."""
    max_lag_s: float
    kernel_stamps: bool
    """Whether arrivals were stamped by the kernel: then a late event loop ages no latency."""
    warmup_s: float
    load_began_ns: int


def ttft_s(requests: Columns) -> Floats:
    """Time to first token: `first content - sent`, seconds, (requests,).

    Sent is when the request's bytes were handed to a connected socket; first content is the first chunk that carries
    text (or proof of a token), never a role or an empty chunk. Undefined when no content came.
    """
    return _seconds(requests.first_ns - requests.sent_ns, requests.first_ns != MISSING)


def ttft_from_intended_s(requests: Columns) -> Floats:
    """The same from the instant at which the request was due: includes our own delay, queueing here and connecting."""
    return _seconds(requests.first_ns - requests.intended_ns, requests.first_ns != MISSING)


def e2e_s(requests: Columns) -> Floats:
    """Whole request: `end - sent`, seconds; the end is the arrival of `[DONE]` (all tokens are out by then)."""
    return (requests.ended_ns - requests.sent_ns) / NS


def e2e_from_intended_s(requests: Columns) -> Floats:
    """The same from the instant at which the request was due."""
    return (requests.ended_ns - requests.intended_ns) / NS


def tpot_s(requests: Columns) -> Floats:
    """Time per output token after the first: `(e2e - ttft) / (n - 1)`, n from `usage`; undefined for n below 2."""
    tokens = requests.output_tokens
    defined = (requests.first_ns != MISSING) & (tokens > 1)
    return _seconds((requests.ended_ns - requests.first_ns) / np.maximum(tokens - 1, 1), defined)


def itl_s(requests: Columns, windows: Windows) -> Floats:
    """Inter-chunk latency: gaps between successive content chunks of a request, pooled, seconds, (gaps,).

    Population: gaps whose later chunk arrived in the windows, of every request, also those still in flight. A chunk
    may hold several tokens, so this is what a reader of the stream feels, not a time per token (`tpot_s` is).
    """
    return gaps_in(requests, windows)[0]


def itl_per_token_s(requests: Columns, windows: Windows) -> tuple[Floats, Floats]:
    """The same gaps, each over the tokens of its later chunk, and those tokens as weights: seconds, (gaps,) each.

    Tokens of a chunk: as the stream tells them (token ids, a running `usage`), else those of its request over its
    chunks (`chunk_weights`).
    """
    gaps, later = gaps_in(requests, windows)
    told = requests.chunk_tokens[later]
    weights = np.where(told > 0, told, chunk_weights(requests)[later])
    weights = np.maximum(weights, 1e-9)
    return gaps / weights, weights


def gaps_in(requests: Columns, windows: Windows) -> tuple[Floats, Ints]:
    """Gaps whose later chunk arrived in the windows, and the position of that chunk."""
    at_ns = requests.chunk_ns
    if len(at_ns) == 0:
        return np.empty(0), np.empty(0, dtype=np.int64)
    first = np.zeros(len(at_ns), dtype=np.bool_)
    starts = np.cumsum(requests.num_chunks) - requests.num_chunks
    first[starts[requests.num_chunks > 0]] = True
    later = np.flatnonzero(~first & windows.hold(at_ns))
    return (at_ns[later] - at_ns[later - 1]) / NS, later


def quantiles(values: Iterable[float | None] | Floats) -> Quantiles:
    """Mean and percentiles (linear interpolation between order statistics) of the defined values.

    p99 is None below 1,000 samples: fewer than ten values would lie beyond it.
    """
    known = defined(values)
    if len(known) == 0:
        return Quantiles(num_samples=0, mean_s=None, p50_s=None, p90_s=None, p95_s=None, p99_s=None)
    p50, p90, p95, p99 = (float(value) for value in np.quantile(known, (0.50, 0.90, 0.95, 0.99)))
    return Quantiles(
        num_samples=len(known),
        mean_s=float(known.mean()),
        p50_s=p50,
        p90_s=p90,
        p95_s=p95,
        p99_s=p99 if len(known) >= MIN_SAMPLES_FOR_P99 else None,
    )


def defined(values: Iterable[float | None] | Floats) -> Floats:
    """The values that are there."""
    if not isinstance(values, np.ndarray):
        values = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return values[~np.isnan(values)]


def completed(requests: Columns, windows: Windows) -> Bools:
    """Which requests were completed in the windows."""
    inside: Bools = requests.ok & windows.hold(requests.ended_ns)
    return inside


def counted(requests: Columns) -> Bools:
    """Which requests succeeded, have content and a count of their tokens."""
    found: Bools = requests.ok & (requests.output_tokens != MISSING) & (requests.num_chunks > 0)
    return found


def tokens_per_chunk(requests: Columns) -> float:
    """Output tokens of all counted requests over their content chunks; 1 when there is none."""
    which = counted(requests)
    chunks = int(requests.num_chunks[which].sum())
    return float(requests.output_tokens[which].sum()) / chunks if chunks else 1.0


def chunk_weights(requests: Columns) -> Floats:
    """Output tokens that each chunk stands for, (chunks,).

    (`usage` tokens of its request) / (content chunks of its request), so that a request's chunks sum to the server's
    own count however tokens were packed. Requests without a count, in flight when the load ended, weigh by the run's
    tokens per chunk.
    """
    own = requests.output_tokens / np.maximum(requests.num_chunks, 1)
    return np.repeat(np.where(counted(requests), own, tokens_per_chunk(requests)), requests.num_chunks)


def tokens_by_window(requests: Columns, windows: Windows) -> list[float]:
    """Output tokens that arrived in each window."""
    which = windows.which(requests.chunk_ns)
    inside = which != OUTSIDE
    totals = np.bincount(which[inside], weights=chunk_weights(requests)[inside], minlength=windows.count)
    return [float(total) for total in totals]


def prompt_tokens(requests: Columns, windows: Windows) -> float:
    """Prompt tokens of requests whose first content arrived in the windows.

    From `usage`; a request still in flight when the load ended counts the mean of those that have it.
    """
    known = requests.input_tokens != MISSING
    otherwise = float(requests.input_tokens[known].mean()) if known.any() else 0.0
    began = (requests.first_ns != MISSING) & windows.hold(requests.first_ns)
    return float(np.where(known, requests.input_tokens, otherwise)[began].sum())


def mean_tokens(tokens: Ints, which: Bools) -> float | None:
    """Mean of the known counts among some requests; None when none is known."""
    known = tokens[which & (tokens != MISSING)]
    return float(known.mean()) if len(known) else None


def measure(requests: Columns, windows: Windows, client: ClientCost) -> Measures:
    """All measures of a campaign's run.

    Throughputs divide by the total length of the windows. ttft, tpot, e2e and the mean lengths: requests completed in
    the windows. itl: gaps that end in the windows.
    """
    done = completed(requests, windows)
    by_window = tokens_by_window(requests, windows)
    output = sum(by_window)
    return Measures(
        windows=_windows(by_window, windows, client.load_began_ns),
        output_tokens_per_s=output / windows.total_s,
        total_tokens_per_s=(output + prompt_tokens(requests, windows)) / windows.total_s,
        requests_per_s=int(done.sum()) / windows.total_s,
        requests_completed=int(done.sum()),
        ttft=quantiles(ttft_s(requests)[done]),
        tpot=quantiles(tpot_s(requests)[done]),
        itl=quantiles(itl_s(requests, windows)),
        e2e=quantiles(e2e_s(requests)[done]),
        mean_input_tokens=mean_tokens(requests.input_tokens, done),
        mean_output_tokens=mean_tokens(requests.output_tokens, done),
        warmup_s=client.warmup_s,
        client_cpu_share=client.cpu_share,
        client_max_lag_s=client.max_lag_s,
        server_rss_bytes=None,
    )


def _windows(by_window: Sequence[float], windows: Windows, load_began_ns: int) -> list[Window]:
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


def _seconds(nanoseconds: NDArray[np.int64] | Floats, where: Bools) -> Floats:
    return np.where(where, nanoseconds / NS, np.nan)
