"""The program: `assay` and `python -m assay`."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from assay.cli import run_command

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

AGAIN_S = 0.01
"""From an interrupt that was lost to its repetition: long enough to be out of the callback that lost it."""


def main() -> NoReturn:
    """Run one command."""
    heed_interrupts()
    sys.exit(run_command(sys.argv[1:]))


def heed_interrupts() -> None:
    """SIGTERM and a lost terminal end a command as Ctrl-C does: servers are stopped, the record is closed."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGALRM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # ignored under nohup: then it must go on
        signal.signal(signal.SIGHUP, _interrupt)
    sys.unraisablehook = _send_lost_interrupts_again


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _send_lost_interrupts_again(lost: UnraisableHookArgs) -> None:
    """Python drops what is raised in a destructor or a weak reference's callback, a Ctrl-C as well."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    else:
        sys.__unraisablehook__(lost)


if __name__ == "__main__":
    main()
