"""What a server said of its service: requests that it answered, options that are not in force, an end in order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from assay.failures.found import Said
from assay.failures.lines import Line, plain

ANSWERED = re.compile(
    r'"POST /(?:v\d/\S{0,60}(?:completions|responses|messages|embeddings|rerank)|generate|completions?|chat|infill)'
    r'\b\S{0,80} HTTP/[\d.]{1,3}" 200'
    r"|launch_slot_.{0,40}\bprocessing task"
)
"""A request that was answered, or that llama.cpp began to."""
NOT_APPLIED = re.compile(
    r"(?:option|flag|argument)s? (?:is|are|will be) ignored|failed to initialize speculative decoding context"
)
"""What was asked for and is not in force, while the server goes on."""
MOST_NOTES = 5


@dataclass(slots=True)
class Service:
    """Of one file of a log, or of several together."""

    stop: Said | None = None
    """Where the server began to end in order, with nothing wrong before: what follows is no failure."""
    has_complained: bool = False
    """Something went wrong since it was ready, or since the log began."""
    num_answered: int = 0
    not_applied: list[str] = field(default_factory=list)

    @property
    def may_stop(self) -> bool:
        """Whether a shutdown would be one in order, and is not told yet, or by no more than the signal."""
        return not self.has_complained and (self.stop is None or _is_bare(self.stop.line))

    def hear(self, text: str) -> None:
        """Any line, as it comes."""
        if ("POST /" in text or "launch_slot_" in text) and ANSWERED.search(text):
            self.num_answered += 1
        if ("ignored" in text or "speculative" in text) and len(self.not_applied) < MOST_NOTES:
            self.not_applied += [plain(text).strip()] if NOT_APPLIED.search(text) else []

    def begin(self) -> None:
        """The server starts, or is ready: what was before is over."""
        self.stop, self.has_complained, self.num_answered = None, False, 0

    def join(self, other: Service) -> None:
        """And what another file says, of the same server."""
        self.stop = self.stop or other.stop
        self.has_complained = self.has_complained or other.has_complained
        self.num_answered += other.num_answered
        self.not_applied += other.not_applied


def _is_bare(line: Line) -> bool:
    """Whether it is Python's word for a signal and says nothing of a shutdown."""
    return line.body.strip() == "KeyboardInterrupt"
