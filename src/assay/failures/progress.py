"""How far a server had come in one file of a log, and how often it was started there."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.failures.lines import Line
from assay.failures.stages import Stages, first, load_stages
from assay.records.failure import Stage


@dataclass(slots=True)
class Progress:
    """Milestones come in order; only what was said of serving is not taken back, unless it was no more than a port."""

    life: int = 0
    """Counts the starts."""
    milestone: Stage | None = None
    _stages: Stages = field(default_factory=load_stages)
    _has_served: bool = False
    _has_only_opened: bool = False

    @property
    def has_served(self) -> bool:
        """It answered requests, or said that it was ready to."""
        return self._has_served or self.milestone == "under-load"

    def is_told_by(self, lower: str) -> bool:
        """Whether a line in lower case can be a milestone, a start, or say that the server is ready."""
        return any(word in lower for word in self._stages.milestone_has)

    def is_start(self, line: Line) -> bool:
        """Whether an engine begins to start there."""
        return bool(self._stages.start.search(line.body))

    def is_ready(self, line: Line) -> bool:
        """Whether it says that it is ready."""
        return bool(self._stages.ready.search(line.body))

    def is_stop(self, line: Line) -> bool:
        """Whether a server that served says that it ends in order."""
        return self.has_served and bool(self._stages.stopped.search(line.body))

    def begin_again(self) -> None:
        """The server is started once more."""
        self.life += 1
        self.milestone = None

    def follow(self, line: Line) -> None:
        """Note a milestone."""
        if self.milestone == "artifact" or (self.milestone == "under-load" and not self._has_only_opened):
            return
        reached = (each for each in self._stages.milestones if not each.after or self.milestone in each.after)
        marker = first(reached, line.text)
        if marker is None:
            return
        self.milestone = marker.stage
        self._has_only_opened = marker.stage == "under-load" and bool(self._stages.opened.search(line.body))
        self._has_served = self._has_served or (marker.stage == "under-load" and not self._has_only_opened)
