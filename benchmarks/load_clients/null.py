"""The scheduled null server as a process: started on its own core, stopped, its log read."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from case import Case

OURS = (sys.executable, "-m", "assay.load.null_server")
START_S = 20.0
STOP_S = 30.0


class ServerError(Exception):
    """The null server did not start, or ended too early."""


@contextmanager
def on_cores(cores: Iterable[int]) -> Iterator[None]:
    """What is started inside inherits these cores; afterwards this process is where it was."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def null_server(case: Case, folder: Path, core: int, program: tuple[str, ...] = OURS) -> Iterator[str]:
    """Run the server and give its URL; its log lies in `folder / "server.bin"` once the block is left.

    Raises:
        ServerError: it printed no port.
    """
    command = [*program, "--port", "0", "--first-token-s", str(case.first_token_s)]
    command += ["--tokens-per-s", str(case.tokens_per_s), "--log", str(folder / "server.bin")]
    with (folder / "server.txt").open("wb") as talk, on_cores([core]):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=talk)
    try:
        yield f"http://127.0.0.1:{_port(process, folder)}"
        if process.poll() is not None:
            raise ServerError(f"the null server ended with {process.returncode} during the load: {_last(folder)}")
    finally:
        _stop(process)


def _port(process: subprocess.Popen[bytes], folder: Path) -> int:
    assert process.stdout is not None
    deadline = time.monotonic() + START_S
    line = b""
    while not line.endswith(b"\n") and process.poll() is None and time.monotonic() < deadline:
        if select.select([process.stdout], [], [], 0.2)[0]:
            line += os.read(process.stdout.fileno(), 4096)
    try:
        return int(json.loads(line)["port"])
    except (ValueError, KeyError, TypeError) as error:
        raise ServerError(f"the null server did not start: {line!r} {_last(folder)}") from error


def _last(folder: Path) -> str:
    return " ".join((folder / "server.txt").read_text(errors="replace").strip().splitlines()[-2:])


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Terminate, so that it writes the rest of its log; kill when it does not end."""
    process.terminate()
    try:
        process.wait(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
