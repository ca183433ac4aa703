"""Ending what we started is not interrupted: a second Ctrl-C would leave a server that nobody ends any more."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HELD_BACK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
"""Signals that end a command of Assay by raising KeyboardInterrupt."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let signals that would end the command wait until the block is done; it must be bounded in time.

    Raises:
        KeyboardInterrupt: at the end of the block, when such a signal came within it.
    """
    if threading.current_thread() is not threading.main_thread():  # handlers are the main thread's, which is asked
        yield
        return
    came: list[int] = []
    before = {number: found for number in HELD_BACK if callable(found := signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda received, _frame: came.append(received))
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(ValueError):  # the interpreter is ending
                signal.signal(number, handler)
        if came:
            raise KeyboardInterrupt
