"""What only a simulated server's failure needs: its stamp, its fatal lines, and what it was doing."""

from __future__ import annotations

import re

from assay.engines.failure import failure_of
from assay.records.run import Failure

STAMP = re.compile(r"^\[[\d :-]+\] (?:INFO|WARN|ERROR) ")
READY = "The server is ready on "
STAGES = (
    (re.compile(r"^Capture cuda graph begin"), "capturing graphs"),
    (re.compile(r"^Load weight end"), "allocating the cache"),
    (re.compile(r"^Load weight begin"), "loading weights"),
)
"""What it was doing, by the last of these lines."""


FATAL = re.compile(r"^(?:\[[\d :-]+\] ERROR |\S+: error: )")
"""Lines after which it will not become ready."""


def classify(log: str, log_name: str, exit_code: int | None, *, was_ready: bool, timed_out: bool = False) -> Failure:
    """Stage, cause and the line to quote, with what it was doing; see `assay.engines.failure.failure_of`."""
    found = failure_of(log, log_name, exit_code, engine="rehearsal", was_ready=was_ready, timed_out=timed_out)
    stage = None if was_ready or found.stage == "arguments" else doing(log)
    return found.model_copy(update={"line": f"{found.line} (while {stage})"}) if stage else found


def doing(log: str) -> str | None:
    """What a server that starts was doing last; None once it is ready, or before it began."""
    lines = [plain(line) for line in log.splitlines()]
    if any(line.startswith(READY) for line in lines):
        return None
    return next((words for pattern, words in STAGES if any(pattern.match(line) for line in lines)), None)


def plain(line: str) -> str:
    """The line without its stamp."""
    return STAMP.sub("", line).strip()
