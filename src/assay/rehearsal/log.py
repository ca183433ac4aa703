"""The simulated server's log on stdout: one stamped line an event, as engines write them."""

from __future__ import annotations

import sys
import time


def say(text: str, level: str = "INFO") -> None:
    """Write one or more lines, stamped, at once."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    for line in text.splitlines() or [""]:
        sys.stdout.write(f"[{stamp}] {level} {line}\n")
    sys.stdout.flush()


def bare(text: str) -> None:
    """Write lines as they are: what a compiler or the interpreter would print."""
    sys.stdout.write(text.rstrip("\n") + "\n")
    sys.stdout.flush()
