"""What a server's exit status tells, where its log does not."""

from __future__ import annotations

import signal

from assay.records.failure import Cause

SHELL_SIGNAL = 128
"""A shell reports a child that signal n ended as 128 + n."""
FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


def from_signal(exit_code: int | None) -> int | None:
    """The signal that ended it."""
    if exit_code is None or 0 <= exit_code <= SHELL_SIGNAL:
        return None
    return -exit_code if exit_code < 0 else exit_code - SHELL_SIGNAL


def is_end(exit_code: int | None) -> bool:
    """Whether a server that was asked to end may end so."""
    return not exit_code or from_signal(exit_code) in {signal.SIGTERM, signal.SIGINT}


def cause_of(number: int) -> Cause:
    """What a signal alone tells."""
    if number == signal.SIGILL:
        return Cause.ILLEGAL_INSTRUCTION
    return Cause.KILLED if number in FROM_OUTSIDE else Cause.CRASHED


def signal_name(number: int) -> str:
    """For example SIGKILL."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
