"""What only a llama.cpp server's failure needs: lines after which it will not become ready.

The embedded wheel exits 1 for every failure, so the log decides; the exit code only where the log is silent. Lines of
information and warnings are never a root cause: a server that cannot lock its memory says so and serves.
"""

from __future__ import annotations

import re

from assay.engines.failure import failure_of
from assay.records.run import Failure

FATAL = re.compile(
    r"error: invalid argument|error while handling argument|the argument has been removed|exiting due to|"
    r"GGML_ASSERT|terminate called|embedded server: |embedded engine is"
)
"""Lines after which a server that still lives will not become ready."""


def classify(log: str, log_name: str, exit_code: int | None, *, was_ready: bool, timed_out: bool = False) -> Failure:
    """Stage, cause and the line to quote; see `assay.engines.failure.failure_of`."""
    return failure_of(log, log_name, exit_code, engine="llamacpp", was_ready=was_ready, timed_out=timed_out)
