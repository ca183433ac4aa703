"""When which request is due, for one load process of several: it takes every n-th session and instant.

Closed loop: a stream's next session is due at the instant at which the stream becomes free. Open: an arrival law
(`assay.load.arrival`) gives the instants, whatever the server does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.load.workloads import Source
from assay.records.load import PlannedRequest, Session

NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A request that should be sent at `intended_ns` of the monotonic clock."""

    planned: PlannedRequest
    intended_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Which part of the load a process makes: sessions number, number + count, number + 2 count ..."""

    number: int = 0
    count: int = 1

    def share(self, total: int) -> int:
        """Its part of `total` streams."""
        return len(range(self.number, total, self.count))


class Sessions:
    """The sessions of a shard in order, until the source has no more."""

    def __init__(self, source: Source, shard: Shard) -> None:
        self._source = source
        self._shard = shard
        self._next = shard.number

    @property
    def exhausted(self) -> bool:
        """Whether there is none left."""
        total = self._source.num_sessions
        return total is not None and self._next >= total

    def take(self) -> Session | None:
        """The next one; None when there is none left."""
        if self.exhausted:
            return None
        session = self._source.session(self._next)
        self._next += self._shard.count
        return session


def due_of_shard(offsets_s: Iterator[float], shard: Shard, began_ns: int) -> Iterator[int]:
    """Every n-th instant of an arrival law, on the monotonic clock."""
    for number, offset_s in enumerate(offsets_s):
        if number % shard.count == shard.number:
            yield began_ns + round(offset_s * NS)
