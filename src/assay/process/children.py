"""Start a child in a session of its own, know it again later, and end all of it.

The only place (with its sibling `guardian`) that starts processes.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import psutil

from assay.errors import EngineError, RecordError
from assay.process.undisturbed import undisturbed
from assay.records.run import ServerIdentity

SIGNALS = ((signal.SIGINT, 3.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 10.0))
"""What is sent to a child's session, and how long each gets."""
POLL_S = 0.01
HANG_UP_S = 40.0
"""What a child that was told something gets to end by itself once nobody can tell it more."""
START_TOLERANCE_S = 0.02
"""psutil's start times carry the clock tick's resolution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """How a short helper command ended."""

    exit_code: int
    output: str


class Child:
    """A process we started, its output going to a log file."""

    def __init__(
        self, popen: subprocess.Popen[bytes], create_time: float, before_end: Callable[[], object] | None = None
    ) -> None:
        self._popen = popen
        self._before_end = before_end
        self.pid = popen.pid
        self.create_time = create_time

    def exit_code(self) -> int | None:
        """None while it lives; minus the signal's number when a signal ended it. Reaps it."""
        return self._popen.poll()

    def end(self) -> None:
        """End its whole session. Idempotent.

        A child that was not reaped yet keeps its pid: its start time is read again, since a clock that was set in the
        meantime moves it.

        Raises:
            KeyboardInterrupt: when it has ended, if a signal asked for that in the meantime.
        """
        with undisturbed():
            self._end()

    def _end(self) -> None:
        try:
            if self._before_end is not None:
                self._before_end()
        finally:  # also when what it stands for cannot be ended
            self._hang_up()
            running = self._popen.poll() is None
            end_session(self.pid, _create_time(self.pid) if running else self.create_time)
            self._popen.wait(timeout=10)

    def _hang_up(self) -> None:
        """Close its standard input, where it has one, and let it end by itself."""
        if self._popen.stdin is None or self._popen.stdin.closed:
            return
        with suppress(BrokenPipeError):
            self._popen.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout=HANG_UP_S)


def start(
    argv: Sequence[str],
    env: dict[str, str],
    log: Path,
    *,
    without: str | None = None,
    said: bytes | None = None,
    before_end: Callable[[], object] | None = None,
) -> Child:
    """Start a command in its own session, standard output and error appended to `log`.

    Args:
        argv: the command; never given to a shell.
        env: added to our own environment.
        log: where its output goes.
        without: prefix of inherited variables that it must not see.
        said: written to its standard input, which stays open until the child is ended or we are gone; None: no input.
        before_end: called first when the child is ended: ends what it stands for elsewhere (a container).

    Raises:
        EngineError: the program cannot be executed.
    """
    with _opened(log) as sink:
        try:
            popen = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL if said is None else subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**_inherited(without), **env},
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(
                f"cannot execute {argv[0]}: {error}", hint="check target.executable in assay.toml"
            ) from error
    if said is not None:
        assert popen.stdin is not None
        with suppress(BrokenPipeError):  # it died at once: its exit code says so
            popen.stdin.write(said)
            popen.stdin.flush()
    return Child(popen, _create_time(popen.pid), before_end)


def run_quiet(argv: Sequence[str], *, timeout_s: float, env: dict[str, str] | None = None) -> Quiet:
    """Run a short command to its end, its output taken together.

    Raises:
        EngineError: it cannot be executed, or does not end in time.
    """
    try:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    except OSError as error:
        raise EngineError(f"cannot execute {argv[0]}: {error}", hint="check that the program is installed") from error
    with child:
        try:
            output, _ = child.communicate(timeout=timeout_s)
        except BaseException as error:
            with suppress(ProcessLookupError):  # the group, since its children hold the pipe open, too
                os.killpg(child.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise EngineError(
                f"{argv[0]} did not end within {timeout_s:g} s", hint=f"try it by hand: {shlex.join(argv)}"
            ) from error
    return Quiet(exit_code=child.returncode, output=output.decode(errors="replace"))


def is_ours(pid: int, create_time: float) -> bool:
    """Whether this very process (not a later one with the same pid) is alive."""
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - create_time) <= START_TOLERANCE_S
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def end_session(pid: int, create_time: float) -> bool:
    """End a session leader we started, and everything left in its session or below it.

    Returns:
        Whether anything was alive.

    Raises:
        EngineError: something survived SIGKILL.
    """
    members = _members(pid, create_time)
    if not members:
        return False
    for number, patience_s in SIGNALS:
        for process in members:
            _send(process, number)
        _wait_gone(members, patience_s)
        members = [m for m in {*members, *_members(pid, create_time)} if _alive(m)]
        if not members:
            return True
    raise EngineError(
        f"processes {[m.pid for m in members]} survived SIGKILL",
        hint="they hang in the kernel (driver, file system): the machine may need a restart",
    )


def end_recorded(identity: ServerIdentity) -> bool:
    """End what is left of a server that an earlier Assay recorded; True when something was alive."""
    return end_session(identity.pid, identity.create_time)


def free_port() -> int:
    """A TCP port that is free on loopback right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(pid: int, port: int) -> bool:
    """Whether the listener on a loopback port is this process or a descendant of it."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
        return any(
            connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
            for process in family
            for connection in process.net_connections(kind="tcp")
        )
    except psutil.NoSuchProcess:
        return False


def _opened(log: Path) -> BinaryIO:
    try:
        return log.open("ab")
    except OSError as error:
        raise RecordError(f"cannot write {log}: {error}", hint="free disk space, or move the campaign") from error


def _inherited(without: str | None) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if without is None or not name.startswith(without)}


def _members(pid: int, create_time: float) -> list[psutil.Process]:
    """The leader when it is still ours, its descendants, and what else lives in its session."""
    leader_alive = is_ours(pid, create_time)
    if not leader_alive and psutil.pid_exists(pid) and not _is_zombie(pid):
        return []  # the pid belongs to somebody else by now: so would its session
    members: dict[int, psutil.Process] = {}
    if leader_alive:
        leader = psutil.Process(pid)
        for process in (leader, *_children(leader)):
            members[process.pid] = process
    for process in psutil.process_iter():
        try:
            in_session = os.getsid(process.pid) == pid and process.create_time() >= create_time - START_TOLERANCE_S
        except (ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            continue
        if in_session:
            members[process.pid] = process
    return [process for process in members.values() if _alive(process)]


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _wait_gone(members: Sequence[psutil.Process], patience_s: float) -> None:
    """Poll until all are gone; psutil's own wait would reap our child and lose its exit code."""
    deadline_s = time.monotonic() + patience_s
    while any(_alive(process) for process in members) and time.monotonic() < deadline_s:
        time.sleep(POLL_S)


def _is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _send(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return


def _create_time(pid: int) -> float:
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return 0.0  # died and was reaped between fork and here: no process can match this
