"""The program: `assay` and `python -m assay`."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

from assay.cli import run_command


def main() -> NoReturn:
    """Run one command; SIGTERM and a lost terminal end it as Ctrl-C does: servers are stopped, the record is closed."""

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # ignored under nohup: then it must go on
        signal.signal(signal.SIGHUP, interrupt)
    sys.exit(run_command(sys.argv[1:]))


if __name__ == "__main__":
    main()
