"""A small process that outlives a killed Assay just long enough to end the server it left behind.

Assay holds the only write end of a pipe to it. A kill -9 closes that end, the guardian reads end-of-file, ends every
process that carries the current run's marker, and ends itself. PR_SET_PDEATHSIG would do part of this on Linux, but it
follows the thread that forked, is cleared by setuid programs, and does not reach grandchildren.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from assay.process.marked import end_marked

VARIABLE = "ASSAY_RUN_TOKEN"
FAREWELL = "farewell"
"""The line that says: Assay ends in an orderly way, there is nothing to do."""


class Guardian:
    """Assay's end of the pipe."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child

    def expect(self, token: str) -> None:
        """Tell which marker the next server will carry; call it before the launch."""
        assert self._child.stdin is not None
        self._child.stdin.write(f"{token}\n".encode())
        self._child.stdin.flush()


@contextmanager
def guard() -> Iterator[Guardian]:
    """Start a guardian in a session of its own, and dismiss it at the end."""
    child = subprocess.Popen(
        [sys.executable, "-m", "assay.process.guardian"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    guardian = Guardian(child)
    try:
        yield guardian
    finally:
        guardian.expect(FAREWELL)
        child.communicate()


def watch() -> None:
    """The guardian's own life: remember the newest marker; at end-of-file, end what carries it."""
    token = FAREWELL
    for line in sys.stdin:
        token = line.strip()
    if token != FAREWELL:
        end_marked(VARIABLE, token)


if __name__ == "__main__":
    watch()
