"""What a load process is told, and what it tells: the lines of `assay.load.worker`'s standard input and output."""

from __future__ import annotations

import msgspec

from assay.errors import AssayError

BIN_NS = 50_000_000
"""Arrivals are counted in bins of 50 ms of the monotonic clock, so that processes can be added up."""


class Job(msgspec.Struct):
    """What a load process is told."""

    spec: dict[str, object]
    """A `BenchSpec`, as JSON."""
    shard: int
    shards: int
    spool: str
    corpus: str | None = None
    """File of token ids (int32) that prompts are made of; None: prompts are text."""
    tokens_per_word: float = 1.3


class Beat(msgspec.Struct):
    """What happened since the last beat, and how things stand."""

    at_ns: int
    bins: dict[int, int]
    """Content chunks since the last beat, by number of their bin."""
    in_flight: int
    begun_streams: int
    """Streams that have received content."""
    completed: int
    failed: int
    ttft_ns: list[int]
    """Of requests whose first content came since the last beat (at most 64 of them)."""
    gap_ns: list[int]
    """A sample of gaps between chunks."""
    lag_ns: int
    """Worst lag of the event loop since the last beat."""
    cpu_ns: int
    """CPU time of this process so far."""
    rss_bytes: int
    exhausted: bool
    """Whether no session is left and none is in flight."""
    clock_stepped: bool


class Ended(msgspec.Struct):
    """The last line."""

    ended: bool
    lags: list[tuple[int, float]]
    """(instant, seconds late) of every look at the event loop."""
    delays: list[int]
    """Reads by how long their bytes had waited in the socket (`kernel_socket.Reader.delays`); empty without stamps."""
    without_stamp: int


def refusal(error: BaseException) -> bytes:
    """An error as the controlling process is told it."""
    if isinstance(error, AssayError):
        said = {"error": error.message, "hint": error.hint, "kind": type(error).__name__}
    else:
        said = {
            "error": f"a load process failed: {error!r}",
            "hint": "this is a defect of Assay: report it",
            "kind": "",
        }
    return msgspec.json.encode(said)
