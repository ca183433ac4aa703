"""Keeps a server while standard input lasts. Sent to another machine as text: needs Python 3.7 and nothing else."""

import contextlib
import json
import os
import signal
import subprocess  # noqa: TID251 - runs where Assay is not
import sys
import threading
import time

STEPS = ((signal.SIGINT, 10.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))


def main() -> None:
    """Start the command in argv, tell its pid, end its session when input ends; exit as it does."""
    env = json.loads(sys.stdin.readline() or "{}")
    try:
        child = subprocess.Popen(  # noqa: S603 - a list of words
            sys.argv[1:], stdin=subprocess.DEVNULL, env=dict(os.environ, **env), start_new_session=True
        )
    except OSError as error:
        sys.exit("assay: cannot execute %s: %s" % (sys.argv[1], error))  # noqa: UP031
    print("assay: the server is process %d on %s" % (child.pid, os.uname().nodename), flush=True)  # noqa: T201, UP031
    threading.Thread(target=end_when_left, args=(child.pid,), daemon=True).start()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # not reaped yet: its number cannot be somebody else's
    send(child.pid, signal.SIGKILL)  # workers that outlived it
    code = child.wait()
    os._exit(code if code >= 0 else 128 - code)


def end_when_left(leader: int) -> None:
    """Wait for the end of input, then ask the session to end, ever less politely."""
    while sys.stdin.readline():
        pass
    for number, patience_s in STEPS:
        send(leader, number)
        deadline_s = time.monotonic() + patience_s
        while time.monotonic() < deadline_s:
            time.sleep(0.1)


def send(leader: int, number: int) -> None:
    """Signal the whole group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


if __name__ == "__main__":
    main()
