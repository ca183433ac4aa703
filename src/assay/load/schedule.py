"""When which request is due: the arrival law.

Closed loop for now. An open-loop law (Poisson, trace) is another class with the same `next`, which waits until the
request's instant and returns that instant as `intended_ns`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from assay.load.workload import RequestSource
from assay.records.load import PlannedRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A request that should be sent at `intended_ns` of the monotonic clock."""

    planned: PlannedRequest
    intended_ns: int


class Schedule(Protocol):
    """Hands out the requests of a run."""

    async def next(self, free_since_ns: int | None) -> Due:
        """The next request, when it is due.

        Args:
            free_since_ns: when the asking stream became free; None at its start.
        """


class ClosedLoop:
    """The next request is due at the instant at which a stream becomes free; indices count up over all streams."""

    def __init__(self, source: RequestSource) -> None:
        self._source = source
        self.issued: list[PlannedRequest] = []
        """Every request handed out so far, in order."""

    async def next(self, free_since_ns: int | None) -> Due:
        """The request of the next index, due now."""
        planned = self._source.request(len(self.issued))
        self.issued.append(planned)
        return Due(planned=planned, intended_ns=time.monotonic_ns() if free_since_ns is None else free_since_ns)
