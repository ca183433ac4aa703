"""HTTP for the simulated server: requests in, answers and event streams out. asyncio, standard library only."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_LENGTH = re.compile(rb"^content-length:\s*(\d+)\s*$", re.IGNORECASE | re.MULTILINE)
MAX_BYTES = 1 << 26
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 413: "Content Too Large"}
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAM_END = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, read whole."""

    method: str
    path: str
    body: bytes

    def json(self) -> dict[str, Any]:
        """Its body as a JSON object.

        Raises:
            ValueError: it is none.
        """
        found = json.loads(self.body or b"{}")
        if not isinstance(found, dict):
            raise ValueError("the body is no JSON object")  # noqa: TRY004 - the client's mistake in a value
        return found


class Connection(asyncio.Protocol):
    """One client's connection; requests on it are answered one after another."""

    def __init__(self, handle: Callable[[Connection, Request], None]) -> None:
        self._handle = handle
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._busy = False
        self.on_lost: Callable[[], None] | None = None
        """Called when the client goes away during an answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: somebody connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """asyncio: it is gone."""
        self._transport = None
        if self.on_lost is not None:
            self.on_lost()

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes."""
        self._received += data
        self._next()

    @property
    def open(self) -> bool:
        """Whether anybody listens."""
        return self._transport is not None and not self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Raw bytes of an answer."""
        if self._transport is not None:
            self._transport.write(data)

    def answer(self, content: bytes, *, status: int = 200, kind: str = "application/json") -> None:
        """A whole answer."""
        head = f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
        self.write(head.encode() + content)
        self.done()

    def done(self) -> None:
        """The answer is complete: the next request may be read."""
        self._busy = False
        self.on_lost = None
        if self._received:
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        if self._busy or not self.open:
            return
        head, separator, rest = bytes(self._received).partition(b"\r\n\r\n")
        if not separator:
            return
        found = _LENGTH.search(head.replace(b"\r\n", b"\n"))
        length = int(found[1]) if found else 0
        if length > MAX_BYTES:
            self.answer(b'{"error": "too large"}', status=413)
            return
        if len(rest) < length:
            return
        del self._received[: len(head) + 4 + length]
        method, path, *_ = (*head.split(b"\r\n", 1)[0].decode("latin-1").split(" "), "", "")
        self._busy = True
        self._handle(self, Request(method=method, path=path.partition("?")[0], body=rest[:length]))


def framed(event: bytes) -> bytes:
    """An event's data as one chunk of the transfer encoding."""
    body = b"data: " + event + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(body), body)
