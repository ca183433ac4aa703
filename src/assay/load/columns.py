"""The finished requests of one load test as columns: what metrics and gates are computed from.

Axes: `requests` (as spooled), `chunks` (content chunks of all requests, request after request, in order of arrival
within each). A missing number is -1 in integer columns; nothing here is negative otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.load.exchange import CUT_BY_DRAIN
from assay.load.spool import SpooledRequest

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
MISSING = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """All requests of a load test. Stamps: nanoseconds of the monotonic clock."""

    index: Ints
    turn: Ints
    stream: Ints
    intended_ns: Ints
    sent_ns: Ints
    first_ns: Ints
    """First content chunk."""
    ended_ns: Ints
    input_tokens: Ints
    output_tokens: Ints
    cached_tokens: Ints
    wanted_input_tokens: Ints
    wanted_output_tokens: Ints
    shared_tokens: Ints
    merged: Ints
    num_chunks: Ints
    ok: Bools
    """Ended without an error."""
    cut: Bools
    """Cut by our own drain."""
    errors: list[str | None]
    chunk_ns: Ints
    chunk_tokens: Ints
    """Tokens of each chunk where the stream tells them; else 0."""
    digests: list[bytes]
    openings: list[bytes]

    @property
    def chunk_request(self) -> Ints:
        """The request of each chunk, (chunks,)."""
        return np.repeat(np.arange(len(self.index)), self.num_chunks)

    def __len__(self) -> int:
        return len(self.index)


def columns(requests: Iterable[SpooledRequest]) -> Columns:
    """Read requests into columns."""
    rows, chunks, tokens = [], [], []
    errors: list[str | None] = []
    digests: list[bytes] = []
    openings: list[bytes] = []
    for request in requests:
        arrivals = np.frombuffer(request.chunks, dtype=np.int64)
        chunks.append(arrivals)
        tokens.append(np.frombuffer(request.chunk_tokens, dtype=np.int32))
        rows.append(_row(request, arrivals))
        errors.append(request.error)
        digests.append(request.digest)
        openings.append(request.opening)
    table = np.array(rows, dtype=np.int64).reshape(len(rows), len(_NAMES))
    named = {name: table[:, number] for number, name in enumerate(_NAMES)}
    return Columns(
        **named,
        ok=np.array([error is None for error in errors], dtype=np.bool_),
        cut=np.array([error == CUT_BY_DRAIN for error in errors], dtype=np.bool_),
        errors=errors,
        chunk_ns=np.concatenate(chunks) if chunks else np.empty(0, dtype=np.int64),
        chunk_tokens=np.concatenate(tokens).astype(np.int64) if tokens else np.empty(0, dtype=np.int64),
        digests=digests,
        openings=openings,
    )


def workload_sha256(requests: Columns) -> str:
    """Of what was asked, whatever order the answers came in."""
    asked = sorted(zip(requests.index.tolist(), requests.turn.tolist(), requests.digests, strict=True))
    return hashlib.sha256(b"".join(digest for _, _, digest in asked)).hexdigest()


_NAMES = (
    "index", "turn", "stream", "intended_ns", "sent_ns", "first_ns", "ended_ns", "input_tokens", "output_tokens",
    "cached_tokens", "wanted_input_tokens", "wanted_output_tokens", "shared_tokens", "merged", "num_chunks",
)  # fmt: skip


def _row(request: SpooledRequest, arrivals: Ints) -> tuple[int, ...]:
    return (
        request.index,
        request.turn,
        request.stream,
        request.intended_ns,
        request.sent_ns,
        int(arrivals[0]) if len(arrivals) else MISSING,
        request.ended_ns,
        _known(request.input_tokens),
        _known(request.output_tokens),
        _known(request.cached_tokens),
        _known(request.wanted_input_tokens),
        request.wanted_output_tokens,
        request.shared_tokens,
        request.merged,
        len(arrivals),
    )


def _known(value: int | None) -> int:
    return MISSING if value is None else value
