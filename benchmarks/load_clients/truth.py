"""What the null server really did, read from its log; and what a client says it saw, in the same terms.

The log is a sequence of little-endian pairs (request number, monotonic nanoseconds), 16 bytes each: the first pair of a
request is the arrival of its headers, each further one the sending of a content chunk. Clients that keep their own
stamps write the same format, with the moment of sending first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from case import MIN_ROUNDS, Case

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NS = 1e9
BURST_NS = 1_000_000_000
MAX_BURST = 8
SHARES = (0.5, 0.99, 1.0)


class UnusableLogError(Exception):
    """The log does not hold a load."""


@dataclass(frozen=True, slots=True)
class Log:
    """Requests in order of their numbers; the stamps of request k are `at[starts[k]:starts[k] + counts[k]]`."""

    numbers: Ints
    starts: Ints
    counts: Ints
    at: Ints

    @classmethod
    def read(cls, path: Path) -> Log:
        """Read a log file; a torn last record is dropped."""
        raw = np.frombuffer(path.read_bytes()[: path.stat().st_size // 16 * 16], dtype="<u8").reshape(-1, 2)
        order = np.argsort(raw[:, 0], kind="stable")
        request, at = raw[order, 0].astype(np.int64), raw[order, 1].astype(np.int64)
        numbers, starts, counts = np.unique(request, return_index=True, return_counts=True)
        return cls(numbers, starts.astype(np.int64), counts.astype(np.int64), at)

    def select(self, keep: npt.NDArray[np.bool_]) -> Log:
        """Only some of the requests."""
        counts = self.counts[keep]
        at = self.at[np.repeat(keep, self.counts)]
        return Log(self.numbers[keep], np.cumsum(counts) - counts, counts, at)

    @property
    def first(self) -> Ints:
        """Arrival (server) or sending (client) of each request."""
        stamps: Ints = self.at[self.starts]
        return stamps

    @property
    def last(self) -> Ints:
        """Last stamp of each request."""
        stamps: Ints = self.at[self.starts + self.counts - 1]
        return stamps

    def chunks(self) -> Ints:
        """Stamps of all content chunks, by request."""
        return np.delete(self.at, self.starts)

    def ttft_s(self) -> Floats:
        """First chunk minus the request's first stamp, of each request that has a chunk."""
        some = self.starts[self.counts > 1]
        return (self.at[some + 1] - self.at[some]) / NS

    def itl_s(self, window_ns: tuple[int, int] | None = None) -> Floats:
        """Gaps between successive chunks of one request, pooled; of a window: those that closed in it."""
        keep = np.ones(max(len(self.at) - 1, 0), dtype=bool)
        keep[self.starts[1:] - 1] = False  # across two requests
        keep[self.starts[self.counts > 1]] = False  # from the request to its first chunk
        if window_ns is not None:
            keep &= (self.at[1:] >= window_ns[0]) & (self.at[1:] < window_ns[1])
        return np.diff(self.at)[keep] / NS


@dataclass(frozen=True, slots=True)
class Load:
    """What the server saw of one client's load."""

    began_ns: int
    ended_ns: int
    """Last chunk sent."""
    tokens: int
    achieved_tokens_per_s: float
    """In the window in which every stream should have been busy."""
    in_flight: float
    """Mean number of requests in that window."""
    window_s: float
    num_requests: int
    num_whole: int
    """Requests that were answered to the end."""


def observed(log: Log, case: Case) -> Load:
    """The load in the window from the first request of the second round to the first request of the last round.

    Between the two every stream should be busy. Both ends are at the same phase of a round, so that a client whose
    streams move in step is not measured on a part of its cycle. Of a client that never sent three rounds: the middle
    third of its requests, or all of its load when that is shorter than half a request.

    Raises:
        UnusableLogError: too few requests came.
    """
    arrivals = np.sort(log.first)
    began = _began(arrivals, case.streams)
    arrivals = arrivals[arrivals >= began]
    margin = min(case.streams, len(arrivals) // MIN_ROUNDS)
    low, high = arrivals[margin], arrivals[-max(margin, 1)]
    if high - low < case.request_s * NS / 2:
        low, high = began, log.last.max()
    if high <= low:
        raise UnusableLogError(f"{len(arrivals)} requests reached the server: no load to measure")
    chunks = log.chunks()
    window_s = (high - low) / NS
    busy_ns = np.clip(log.last, low, high) - np.clip(log.first, low, high)
    return Load(
        began_ns=int(began),
        ended_ns=int(log.last.max()),
        tokens=int(np.count_nonzero(chunks >= began)),
        achieved_tokens_per_s=float(np.count_nonzero((chunks >= low) & (chunks < high)) / window_s),
        in_flight=float(busy_ns.sum() / (high - low)),
        window_s=float(window_s),
        num_requests=len(arrivals),
        num_whole=int(np.count_nonzero(whole(log, case))),
    )


def whole(log: Log, case: Case) -> npt.NDArray[np.bool_]:
    """Which requests were answered to the end."""
    mask: npt.NDArray[np.bool_] = log.counts == case.output_tokens + 1
    return mask


def _began(arrivals: Ints, streams: int) -> int:
    """When the load began: probes that some tools send alone before it are passed over."""
    burst = min(streams, MAX_BURST) // 2
    if len(arrivals) <= burst:
        raise UnusableLogError(f"only {len(arrivals)} requests reached the server")
    together = np.flatnonzero(arrivals[burst:] - arrivals[: len(arrivals) - burst] <= BURST_NS)
    if not len(together):
        raise UnusableLogError(f"never {burst + 1} requests within a second reached the server")
    return int(arrivals[together[0]])


@dataclass(frozen=True, slots=True)
class StampErrors:
    """Client's stamp minus the server's, chunk by chunk: absolute values, in seconds."""

    num_chunks: int
    chunk_p50_s: float
    chunk_p99_s: float
    chunk_max_s: float
    itl_p50_s: float
    itl_p99_s: float
    itl_max_s: float


def stamp_errors(client: Log, server: Log) -> StampErrors | None:
    """Pair the two logs by request number and position; None when no request is in both with as many chunks."""
    _, mine, theirs = np.intersect1d(client.numbers, server.numbers, return_indices=True)
    same = client.counts[mine] == server.counts[theirs]
    if not same.any():
        return None
    seen, sent = client.select(_mask(client, mine[same])), server.select(_mask(server, theirs[same]))
    chunk_s = np.quantile(np.abs((seen.chunks() - sent.chunks()) / NS), SHARES)
    itl_s = np.quantile(np.abs(seen.itl_s() - sent.itl_s()), SHARES)
    return StampErrors(len(sent.chunks()), *map(float, (*chunk_s, *itl_s)))


def _mask(log: Log, indices: Ints) -> npt.NDArray[np.bool_]:
    mask = np.zeros(len(log.numbers), dtype=bool)
    mask[indices] = True
    return mask
