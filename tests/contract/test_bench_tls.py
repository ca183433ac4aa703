"""`assay bench` over TLS: a server whose certificate nobody here has signed, and what to do about it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from assay.errors import EngineError
from assay.load.server import Server
from tests.contract.null import null_server

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")


def certificate(folder: Path, names: str = "IP:127.0.0.1", name: str = "server") -> Path:
    """A self-signed certificate, its key beside it."""
    path = folder / f"{name}.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=assay-test"
    files = ["-out", str(path), "-keyout", str(path.with_suffix(".key"))]
    subprocess.run(["openssl", *words.split(), "-addext", f"subjectAltName={names}", *files], check=True)
    return path


@contextmanager
def tls_in_front_of(port: int, cert: Path) -> Iterator[str]:
    """A TLS door on loopback; what comes through it goes to a plain server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, cert.with_suffix(".key"))
    loop = asyncio.new_event_loop()

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
        sink.close()

    async def through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    server = loop.run_until_complete(asyncio.start_server(through, "127.0.0.1", 0, ssl=context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        server.close()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


@contextmanager
def tls_null_server(cert: Path) -> Iterator[str]:
    with null_server() as null, tls_in_front_of(int(null.url.rpartition(":")[2]), cert) as url:
        yield url


def refusal(url: str) -> str:
    with pytest.raises(EngineError, match="did not answer") as refused:
        Server(url).served()
    return refused.value.hint or ""


def test_a_self_signed_certificate_is_refused_with_how_to_trust_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with tls_null_server(certificate(tmp_path)) as url:
        hint = refusal(url)
    assert f"openssl s_client -connect {url.removeprefix('https://')}" in hint
    assert "export SSL_CERT_FILE=server.pem" in hint


@pytest.mark.slow
def test_with_ssl_cert_file_a_self_signed_server_is_measured_like_any_other(tmp_path: Path):
    cert = certificate(tmp_path)
    words = "--input 16 --output 20 --window 0.4 --windows 1 --warmup-max 10 --processes 1 --json"
    with tls_null_server(cert) as url:
        command = [sys.executable, "-m", "assay", "bench", url, *words.split(), "--folder", str(tmp_path / "out")]
        done = subprocess.run(
            command, env=os.environ | {"SSL_CERT_FILE": str(cert)}, capture_output=True, text=True, check=False
        )
    told = json.loads(done.stdout)
    assert "error" not in told
    assert told["measures"]["requests_completed"] > 0
    assert (told["errors"], told["client"]["stamps"]) == ({}, "event-loop")


def test_a_certificate_file_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with tls_null_server(certificate(tmp_path)) as url:
        assert "none.pem, and there is no such file" in refusal(url)


def test_https_to_a_server_of_plain_http_is_refused_with_the_address_that_works():
    class Quiet(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Nothing: it refuses the handshake as a request that is none."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            hint = refusal(f"https://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()
    assert hint.endswith(f"http://127.0.0.1:{server.server_port}")
