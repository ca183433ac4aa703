"""A server of unknown kind is ours when its listener is: below the command, or marked by it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from assay.engines.any_server import AnyServer, Command, may_be_elsewhere
from assay.ports import LaunchFailed
from assay.process import free_port
from assay.process.listening import carries, listeners
from assay.records.failure import Cause
from tests.contract.null import null_server

SLEEP = "import time; time.sleep(60)"
MARKER = {"ASSAY_TEST_MARK": "a1b2"}
NULL = [sys.executable, "-m", "assay.load.null_server", "--port"]
DETACHED = """
import os, subprocess, sys, time
if os.fork() == 0:
    subprocess.Popen(sys.argv[1:], start_new_session=True, stdout=subprocess.DEVNULL)
    os._exit(0)
os.wait()
time.sleep(60)
"""


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def started(argv: list[str], port: int, log: Path) -> AnyServer:
    return AnyServer(Command(argv=argv, port=port), MARKER, log)


def test_a_server_below_the_command_is_ours_without_a_word(tmp_path: Path) -> None:
    port = free_port()
    server = started([*NULL, str(port)], port, tmp_path / "log")
    try:
        server.wait_ready(30)
        assert server.unproven is None
    finally:
        server.stop()


def test_somebody_elses_server_on_the_port_ends_the_wait_at_once_and_is_named(tmp_path: Path) -> None:
    with null_server() as theirs:
        server = started([sys.executable, "-c", SLEEP], port_of(theirs.url), tmp_path / "log")
        try:
            with pytest.raises(LaunchFailed) as caught:
                server.wait_ready(30)
        finally:
            server.stop()
    assert caught.value.failure.cause is Cause.PORT_IN_USE
    assert f"process {theirs.pid} listens on port {port_of(theirs.url)}" in caught.value.failure.line


def test_one_that_was_there_before_is_not_ours_even_where_a_script_may_start_elsewhere(tmp_path: Path) -> None:
    with null_server() as theirs:
        server = started(["sh", "-c", f"exec {sys.executable} -c '{SLEEP}'"], port_of(theirs.url), tmp_path / "log")
        try:
            with pytest.raises(LaunchFailed, match="not started here"):
                server.wait_ready(30)
        finally:
            server.stop()


def test_where_a_command_may_start_its_server_elsewhere_it_is_said_that_nothing_proves_it(tmp_path: Path) -> None:
    port = free_port()
    server = started(["sh", "-c", f"exec {sys.executable} -c '{SLEEP}'"], port, tmp_path / "log")
    try:
        with subprocess.Popen([*NULL, str(port)], stdout=subprocess.DEVNULL) as other:
            server.wait_ready(30)
            assert f"process {other.pid} listens on port {port}" in str(server.unproven)
            assert "cannot be proved from here" in str(server.unproven)
            other.terminate()
    finally:
        server.stop()


def test_a_listener_that_left_the_tree_is_known_by_its_marker_and_ended_by_it(tmp_path: Path) -> None:
    port = free_port()
    server = started([sys.executable, "-c", DETACHED, *NULL, str(port)], port, tmp_path / "log")
    try:
        server.wait_ready(30)
        (there,) = listeners(port)
        assert carries(there.pid, list(MARKER.items()))
        assert not carries(there.pid, [("ASSAY_TEST_MARK", "another")])
        assert server.unproven is None
    finally:
        server.stop()
    assert listeners(port) == []


@pytest.mark.parametrize(
    ("words", "elsewhere"),
    [
        (["vllm", "serve", "m"], False),
        (["python", "-m", "sglang.launch_server"], False),
        (["docker", "run", "x"], True),
        (["env", "A=b", "/usr/bin/podman", "run"], True),
        (["ssh", "box", "vllm"], True),
        (["./start.sh"], True),
    ],
)
def test_a_container_another_machine_and_a_script_may_serve_elsewhere(words: list[str], elsewhere: bool) -> None:
    assert may_be_elsewhere(words) is elsewhere
