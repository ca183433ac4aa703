"""Servers found by their ports: real listeners on the loopback address, each speaking one engine's dialect."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from assay.probes.listening import Listener, listeners
from assay.probes.server_ask import ask
from assay.probes.server_dialects import identify
from assay.probes.servers import servers

Answers = dict[str, Any]


@contextmanager
def server(answers: Answers) -> Iterator[tuple[Listener, list[str]]]:
    """Answers these paths with JSON and all others with 404; a number is a status. Notes what was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            answer = answers.get(self.path, 404)
            body = b"<html>" if isinstance(answer, int) else json.dumps(answer).encode()
            self.send_response(answer if isinstance(answer, int) else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Listener(port=listening.server_port, host="127.0.0.1", pid=4711), asked
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def models(owner: str, *names: str) -> Answers:
    return {"/v1/models": {"object": "list", "data": [{"id": name, "owned_by": owner} for name in names]}}


VLLM = {**models("vllm", "/srv/models/Qwen3-8B"), "/version": {"version": "0.26.0"}}
SGLANG_INFO = {"version": "0.5.17", "model_path": "/srv/x", "tp_size": 8, "max_running_requests": 2048,
               "api_key": "sk-1234567890", "admin_api_key": "y"}  # fmt: skip
LLAMACPP = {
    **models("llamacpp", "model.gguf"),
    "/props": {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 4, "build_info": "b9000"},
}
TGI = {**models("org", "org/model"), "/info": {"model_id": "org/model", "max_concurrent_requests": 128, "version": "3"}}
OLLAMA = {**models("library", "llama3:8b"), "/api/version": {"version": "0.9.1"}}


@pytest.mark.parametrize(
    ("answers", "engine", "version", "names", "settings"),
    [
        (VLLM, "vllm", "0.26.0", ["Qwen3-8B"], {}),
        ({**models("sglang", "glm"), "/server_info": SGLANG_INFO}, "sglang", "0.5.17", ["glm"],
         {"tp_size": 8, "max_running_requests": 2048}),
        ({**models("sglang", "glm"), "/get_server_info": SGLANG_INFO}, "sglang", "0.5.17", ["glm"],
         {"tp_size": 8, "max_running_requests": 2048}),
        (LLAMACPP, "llamacpp", "b9000", ["model.gguf"], {"total_slots": 4}),
        (TGI, "tgi", "3", ["org/model"], {"max_concurrent_requests": 128}),
        (OLLAMA, "ollama", "0.9.1", ["llama3:8b"], {}),
        (models("me", "mine"), "openai", None, ["mine"], {}),
    ],
)  # fmt: skip
def test_each_engine_is_known_by_what_only_it_says(answers, engine, version, names, settings):
    with server(answers) as (listener, _):
        found = identify(listener, None)
    assert found is not None
    assert (found.engine, found.version, found.models, found.settings) == (engine, version, names, settings)
    assert (found.port, found.pid) == (listener.port, 4711)
    assert "sk-1234567890" not in found.model_dump_json()


def test_a_web_server_is_no_inference_server():
    with server({"/": {"hello": "world"}}) as (listener, asked):
        assert identify(listener, None) is None
    assert "/v1/models" in asked


def test_vllm_is_not_asked_for_what_it_does_not_have():
    with server(VLLM) as (listener, asked):
        identify(listener, None)
    assert len(asked) <= 3


def test_a_server_that_wants_a_key_is_listed_by_its_program():
    with server({"/v1/models": 401, "/version": {"version": "0.26.0"}}) as (listener, _):
        found = identify(listener, "vllm")
    assert found is not None
    assert (found.engine, found.version, found.models, found.problem) == ("vllm", "0.26.0", [], "wants an API key")


def test_a_server_that_is_still_loading_is_listed_by_its_program():
    listener = Listener(port=1, host="127.0.0.1", pid=7)
    found = identify(listener, "sglang.launch_server")
    assert found is not None
    assert (found.engine, found.problem) == ("sglang", "does not answer (yet)")
    assert identify(listener, None) is None


def test_what_does_not_listen_on_loopback_is_not_asked():
    listener = Listener(port=8000, host=None, pid=7)
    assert identify(listener, None) is None
    found = identify(listener, "vllm")
    assert found is not None
    assert found.problem == "not asked: it does not listen on the loopback address"


@contextmanager
def talker(send: bytes, *, keep_open: bool = True) -> Iterator[int]:
    """Accepts one connection, sends bytes, and keeps it open."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        done = threading.Event()

        def talk():
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(send)
                if keep_open:
                    done.wait(10)

        thread = threading.Thread(target=talk)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            done.set()
            thread.join()


def test_a_server_that_never_closes_costs_the_budget_and_no_more():
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    with talker(reply) as port:
        answer = ask("127.0.0.1", port, "/", until_s=time.monotonic() + 0.2)
    assert answer is not None
    assert (answer.status, answer.document) == (200, {})


@pytest.mark.parametrize("sent", [b"SSH-2.0-OpenSSH_9.6\r\n", b"", b"HTTP/1.1 200 OK\r\n", b"\x00\xff" * 100])
def test_what_is_no_http_is_no_answer(sent):
    with talker(sent, keep_open=False) as port:
        answer = ask("127.0.0.1", port, "/", until_s=time.monotonic() + 1)
    assert answer is None or not answer.ok


def test_chunked_replies_are_read():
    body = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{"a": 1}\r\n0\r\n\r\n'
    with talker(body, keep_open=False) as port:
        answer = ask("127.0.0.1", port, "/", until_s=time.monotonic() + 1)
    assert answer is not None
    assert answer.document == {"a": 1}


def test_listening_ports_are_found_once_and_our_own_can_be_left_out():
    import os

    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
        found = [listener for listener in listeners(()) if listener.port == port]
        assert [(listener.host, listener.pid) for listener in found] == [("127.0.0.1", os.getpid())]
        assert port not in [listener.port for listener in listeners({os.getpid()})]


@pytest.mark.parametrize(("port", "other"), [(22, True), (5432, True), (80, False), (8000, False), (443, True)])
def test_ports_of_other_protocols_are_left_alone(port, other):
    assert Listener(port=port, host="127.0.0.1", pid=None).is_other_protocol is other


def test_our_own_servers_are_never_listed():
    with server(VLLM) as (listener, asked):
        assert listener.port not in [found.port for found in servers()]
    assert asked == []
