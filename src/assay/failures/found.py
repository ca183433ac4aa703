"""What one pass over a log finds: matches of rules, and lines that tell of an error no rule knows."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.failures.lines import Line
from assay.failures.rules import Rule, Strength
from assay.failures.stages import Marker, of_frames
from assay.records.failure import LogLine, Stage


@dataclass(slots=True, kw_only=True)
class Found:
    """A match of a rule, and what was known when it came."""

    rule: Rule
    strength: Strength
    """The rule's; `frame` for a message that stands in the source line of a traceback."""
    line: Line
    """The line to quote."""
    values: dict[str, str]
    file: str
    order: tuple[int, int]
    """File and line: the earlier comes first."""
    life: int
    """Counts the starts of the server in this log."""
    frames: Marker | None
    milestone: Stage | None
    is_source: bool = False
    """It stands in the source line of a traceback."""
    around: list[LogLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Native:
    """A function on the stack of a native crash that tells how far the server had come."""

    file: str
    number: int
    """Of its line."""
    marker: Marker


@dataclass(slots=True)
class Said:
    """A line that tells of an error no rule knows."""

    line: Line
    file: str
    milestone: Stage | None
    functions: tuple[str, ...]
    """Of its process's traceback, when it came."""
    around: list[LogLine]

    @property
    def frames(self) -> Marker | None:
        """The stage that they tell. Looked for when it is asked: of many lines that are kept for a while few are."""
        return of_frames(self.functions)
