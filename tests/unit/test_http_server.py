"""The base of every HTTP engine's server, against processes that behave, die, linger and pretend."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from assay.engines.http_server import HttpServer
from assay.errors import MeasurementError
from assay.ports import LaunchFailed
from assay.process import free_port, start

SERVER = """
import json, os, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer

port, manner = int(sys.argv[1]), sys.argv[2]

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        told = {"/health": "", "/metrics": 'up{a="b c"} 2\\nnan_is_none NaN\\nmade_created 17\\n# HELP up 3\\n'}
        self.reply(200 if self.path in told else 404, told.get(self.path, "no"))

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/tokenize":
            self.reply(200, json.dumps({"tokens": list(asked["prompt"].encode())}))
        elif manner == "old" and "return_tokens_as_token_ids" in asked:
            self.reply(200, json.dumps({"choices": [{"logprobs": {"tokens": ["token_id:%d" % asked["prompt"][-1]]}}]}))
        elif manner == "new" and asked.get("return_token_ids"):
            self.reply(200, json.dumps({"choices": [{"token_ids": [asked["prompt"][-1]]}]}))
        elif manner == "lost":
            print("engine loop is dead", flush=True)
            self.reply(500, "dead")
        elif manner == "dies":
            print("worker fell over: gone", flush=True)
            os._exit(7)
        else:
            self.reply(200, json.dumps({"choices": [{"text": "x"}]}))

    def reply(self, status, text):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *words):
        pass

if manner == "fatal":
    print("loading", flush=True)
    print("cannot go on: no such kernel", flush=True)
    time.sleep(600)
if manner == "deaf":
    time.sleep(600)
if manner == "worker":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("worker", child.pid, flush=True)
HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


class PlainServer(HttpServer):
    """The least that an engine gives."""

    engine = "vllm"
    poll_s = 0.02
    last_words_s = 0.2
    fatal = re.compile("cannot go on")
    lost = re.compile("engine loop is dead")

    def effective(self) -> dict[str, Any]:
        return {}

    def fallbacks(self) -> list[str]:
        return []


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Any]:
    servers: list[PlainServer] = []

    def begin(manner: str, port: int | None = None) -> PlainServer:
        port = port or free_port()
        argv = [sys.executable, "-c", SERVER, str(port), manner]
        log = tmp_path / f"{len(servers)}.log"
        servers.append(PlainServer(start(argv, {}, log), port, argv, log, log.name))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


def test_it_is_ready_when_its_own_process_listens_and_is_healthy(launch: Any) -> None:
    server = launch("new")
    assert 0 < server.wait_ready(30) < 30
    assert server.failure() is None
    assert (server.rss_bytes() or 0) > 0


def test_another_server_on_its_port_does_not_make_it_ready(launch: Any) -> None:
    other = launch("new")
    other.wait_ready(30)
    pretender = launch("deaf", other.identity.port)
    with pytest.raises(LaunchFailed) as raised:
        pretender.wait_ready(0.5)
    assert raised.value.failure.cause == "timeout"


def test_a_fatal_line_ends_the_wait_though_the_process_lives(launch: Any) -> None:
    server = launch("fatal")
    with pytest.raises(LaunchFailed) as raised:
        server.wait_ready(60)
    assert raised.value.failure.cause != "timeout"
    assert not psutil.pid_exists(server.identity.pid) or server.failure() is not None


def test_a_lost_server_has_failed_though_its_process_lives(launch: Any) -> None:
    server = launch("lost")
    server.wait_ready(30)
    with pytest.raises(MeasurementError, match="HTTP 500"):
        server.next_token([1])
    failure = server.failure()
    assert failure is not None
    assert failure.stage == "under-load"


def test_a_request_that_kills_it_is_a_failure_with_its_exit_code(launch: Any) -> None:
    server = launch("dies")
    server.wait_ready(30)
    with pytest.raises(LaunchFailed) as raised:
        server.next_tokens([[1, 2]])
    assert raised.value.failure.exit_code == 7


@pytest.mark.parametrize("manner", ["new", "old"])
def test_token_ids_are_asked_for_as_new_and_as_old_versions_give_them(launch: Any, manner: str) -> None:
    server = launch(manner)
    server.wait_ready(30)
    assert server.next_tokens([[5, 9], [4]]) == [9, 4]
    assert server.tokenize("ab") == [97, 98]


def test_an_answer_without_a_token_id_is_no_measurement(launch: Any) -> None:
    server = launch("plain")
    server.wait_ready(30)
    with pytest.raises(MeasurementError, match="without a token"):
        server.next_token([1])


def test_counters_keep_names_and_labels_and_leave_out_what_is_no_number(launch: Any) -> None:
    server = launch("new")
    server.wait_ready(30)
    assert server.counters() == {'up{a="b c"}': 2.0}


def test_stopping_ends_workers_that_a_killed_parent_left_behind(launch: Any) -> None:
    server = launch("worker")
    server.wait_ready(30)
    worker = int(server.log.text().split()[1])
    os.kill(server.identity.pid, signal.SIGKILL)

    server.stop()

    assert not psutil.pid_exists(worker) or psutil.Process(worker).status() == psutil.STATUS_ZOMBIE
