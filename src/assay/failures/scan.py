"""One pass over the logs of a failure: what rules match, how far the server had come by then, and the lines around.

Memory does not grow with the log: a rule keeps its first matches only, a process the functions of its last traceback.
"""

from __future__ import annotations

from collections.abc import Iterable

from assay.failures.found import Found, Native, Said
from assay.failures.nearest import Nearest
from assay.failures.reader import MOST_COMMENTS, Reader
from assay.failures.service import Service
from assay.failures.stages import Marker, of_frames
from assay.records.failure import Stage


class Scan:
    """What the logs of one failure hold; files are read one after another."""

    def __init__(self, engine: str | None = None) -> None:
        self.engine = engine
        self.found: list[Found] = []
        self.nearest = Nearest()
        self.comments: list[str] = []
        self.natives: list[Native] = []
        self.has_served = False
        self.milestone: Stage | None = None
        """The last one of the first file that has any: how far the server came by the end."""
        self.num_lines = 0
        self.frames: Marker | None = None
        """What the functions of all last tracebacks together tell."""
        self.service = Service()
        self.last: Said | None = None
        """The last line that is not empty, of the last file that has one."""

    def read(self, order: int, name: str, lines: Iterable[str]) -> None:
        """Read one file; its lines come as they are, longer ones may be cut."""
        reader = Reader(order, name, self.engine)
        reader.read(lines)
        self.num_lines += reader.number
        self.found += reader.found
        self.natives += reader.natives
        self.comments = [*self.comments, *reader.comments][:MOST_COMMENTS]
        self.has_served = self.has_served or reader.progress.has_served
        self.milestone = self.milestone or reader.progress.milestone
        self.service.join(reader.service)
        self.nearest.join(reader.nearest)
        self.last = reader.last() or self.last
        self.frames = self.frames or of_frames(reader.tracebacks.functions())
