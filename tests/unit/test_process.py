"""Processes are started in sessions of their own, known again by pid and start time, and ended whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from assay.errors import EngineError
from assay.process.children import (
    Child,
    end_recorded,
    end_session,
    free_port,
    is_ours,
    listens,
    run_quiet,
    start,
)
from assay.process.guardian import guard
from assay.process.marked import end_marked, find_marked
from assay.records.run import ServerIdentity

STUBBORN = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("ready", flush=True)
signal.pause()
"""
LISTENER = """
import socket, signal
s = socket.socket()
s.bind(("127.0.0.1", {port}))
s.listen()
print("up", flush=True)
signal.pause()
"""
WAITER = "import signal; print('up', flush=True); signal.pause()"
PARENT = """
import subprocess, sys, signal
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(child.pid, flush=True)
signal.pause()
"""


def started(code: str, log: Path, env: dict[str, str] | None = None) -> Child:
    return start([sys.executable, "-c", code], env or {}, log)


def first_line(log: Path, child: Child) -> str:
    """Wait for the child's first line: bounded by the test's own timeout."""
    while "\n" not in (text := log.read_text()):
        assert child.exit_code() is None, text
        os.sched_yield()
    return text.splitlines()[0]


def test_a_child_runs_in_a_session_of_its_own(tmp_path: Path) -> None:
    child = started("import os; print(os.getsid(0) == os.getpid(), flush=True)", tmp_path / "log")
    while child.exit_code() is None:
        os.sched_yield()
    assert (tmp_path / "log").read_text().strip() == "True"


def test_a_child_that_ignores_sigint_is_ended_by_the_next_signal(tmp_path: Path) -> None:
    child = started(STUBBORN, tmp_path / "log")
    first_line(tmp_path / "log", child)
    child.end()
    assert child.exit_code() == -signal.SIGTERM
    assert not is_ours(child.pid, child.create_time)


def test_ending_a_session_ends_its_grandchildren_too(tmp_path: Path) -> None:
    child = started(PARENT, tmp_path / "log")
    grandchild = psutil.Process(int(first_line(tmp_path / "log", child)))
    child.end()
    assert not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE


def test_grandchildren_are_found_after_their_leader_was_killed(tmp_path: Path) -> None:
    child = started(PARENT, tmp_path / "log")
    grandchild = psutil.Process(int(first_line(tmp_path / "log", child)))
    os.kill(child.pid, signal.SIGKILL)
    while child.exit_code() is None:
        os.sched_yield()
    identity = ServerIdentity(pid=child.pid, create_time=child.create_time, port=1, argv=["x"])
    assert end_recorded(identity) is True
    assert not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE
    assert end_recorded(identity) is False


def test_a_pid_that_belongs_to_somebody_else_by_now_is_left_alone() -> None:
    me = psutil.Process()
    assert end_session(me.pid, me.create_time() - 1000) is False
    assert me.is_running()


def test_a_program_that_is_not_there_is_an_engine_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no-such-program"):
        start(["no-such-program-xyz"], {}, tmp_path / "log")


def test_a_helper_command_that_hangs_is_ended_and_named() -> None:
    with pytest.raises(EngineError, match="did not end within"):
        run_quiet([sys.executable, "-c", "import signal; signal.pause()"], timeout_s=0.5)


def test_the_output_of_a_failing_helper_is_kept() -> None:
    done = run_quiet([sys.executable, "-c", "import sys; print('why'); sys.exit(3)"], timeout_s=30)
    assert (done.exit_code, done.output.strip()) == (3, "why")


def test_a_listener_is_told_from_a_stranger_on_the_same_port(tmp_path: Path) -> None:
    port = free_port()
    code = LISTENER.format(port=port)
    child = started(code, tmp_path / "log")
    first_line(tmp_path / "log", child)
    try:
        assert listens(child.pid, port)
        assert not listens(os.getpid(), port) or os.getpid() == psutil.Process(child.pid).ppid()
        stranger = started(WAITER, tmp_path / "log2")
        assert not listens(stranger.pid, port)
        stranger.end()
    finally:
        child.end()


def test_marked_processes_are_found_and_ended_without_knowing_their_pid(tmp_path: Path) -> None:
    token = f"test-{os.getpid()}-{free_port()}"
    child = started(WAITER, tmp_path / "log", {"ASSAY_RUN_TOKEN": token})
    first_line(tmp_path / "log", child)
    assert [process.pid for process in find_marked("ASSAY_RUN_TOKEN", token)] == [child.pid]
    assert end_marked("ASSAY_RUN_TOKEN", token) == 1
    assert end_marked("ASSAY_RUN_TOKEN", token) == 0
    child.end()


ESCAPING = """
import subprocess, sys, signal
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
print(child.pid, flush=True)
signal.pause()
"""


def test_a_grandchild_that_left_the_session_is_ended_with_its_parent(tmp_path: Path) -> None:
    child = started(ESCAPING, tmp_path / "log")
    escaped = psutil.Process(int(first_line(tmp_path / "log", child)))
    assert os.getsid(escaped.pid) == escaped.pid
    child.end()
    assert not escaped.is_running() or escaped.status() == psutil.STATUS_ZOMBIE


def test_a_child_is_ended_though_the_clock_was_set_since_it_started(tmp_path: Path) -> None:
    child = started(WAITER, tmp_path / "log")
    first_line(tmp_path / "log", child)
    child.create_time -= 3600
    child.end()
    assert child.exit_code() is not None


def test_a_helper_that_hangs_takes_its_own_children_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = PARENT.replace("print(child.pid, flush=True)", f"open({str(note)!r}, 'w').write(str(child.pid))")
    with pytest.raises(EngineError, match="did not end within"):
        run_quiet([sys.executable, "-c", code], timeout_s=3)
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in [int(note.read_text())] if psutil.pid_exists(pid)], 20)
    assert not alive


GUARDED = """
import sys, signal
from pathlib import Path
from assay.process.children import start
from assay.process.guardian import guard
with guard() as guardian:
    guardian.expect(sys.argv[1])
    argv = [sys.executable, "-c", "import signal; signal.pause()"]
    child = start(argv, {"ASSAY_RUN_TOKEN": sys.argv[1]}, Path(sys.argv[2]))
    print(child.pid, flush=True)
    signal.pause()
"""


def test_the_guardian_ends_the_server_of_an_assay_that_was_killed(tmp_path: Path) -> None:
    token = f"test-{os.getpid()}-{free_port()}"
    assay = subprocess.Popen(
        [sys.executable, "-c", GUARDED, token, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True
    )
    assert assay.stdout is not None
    server = psutil.Process(int(assay.stdout.readline()))
    assert server.is_running()
    assay.kill()
    assay.communicate()
    _, alive = psutil.wait_procs([server], timeout=20)
    assert not alive


def test_a_dismissed_guardian_ends_nothing(tmp_path: Path) -> None:
    token = f"test-{os.getpid()}-{free_port()}"
    child = started(WAITER, tmp_path / "log", {"ASSAY_RUN_TOKEN": token})
    first_line(tmp_path / "log", child)
    with guard() as guardian:
        guardian.expect(token)
    assert child.exit_code() is None
    child.end()


def test_a_child_is_ended_also_when_what_it_stands_for_cannot_be(tmp_path: Path) -> None:
    def unreachable() -> None:
        raise EngineError("the daemon does not answer", hint="start it")

    log = tmp_path / "log"
    child = start([sys.executable, "-c", WAITER], {}, log, before_end=unreachable)
    first_line(log, child)

    with pytest.raises(EngineError, match="does not answer"):
        child.end()

    assert not is_ours(child.pid, child.create_time)
