"""The streaming client of one load process: sends what is due, and hands every finished exchange on.

No retries: a request that fails is a failed request. A connection carries one request: servers close a kept-alive
connection after a stream without having announced it (llama.cpp does), and a request written into that closing socket
would count as the server's failure. Connecting happens before the request is handed over, outside TTFT.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from assay.errors import UsageError
from assay.load import kernel_socket
from assay.load.exchange import CUT_BY_DRAIN, Exchange
from assay.load.kernel_socket import Address, KernelConnection, Reader
from assay.load.schedule import Due
from assay.load.stream_socket import StreamConnection
from assay.records.bench import BenchSpec
from assay.records.load import PlannedRequest, Session

AFTER_FAILURE_S = 0.05
"""Pause of a stream whose request failed, so that a refusing server is not hammered."""
MIN_SWEEP = 64
PORTS = {"http": 80, "https": 443}


class Client:
    """Sends requests to one server."""

    def __init__(self, spec: BenchSpec, on_content: Callable[[int], None], on_end: Callable[[Exchange], None]) -> None:
        """Prepare; connects nothing yet.

        Args:
            spec: where to send, and in which form.
            on_content: called with the stamp of every content chunk.
            on_end: called once with every exchange that has ended.

        Raises:
            UsageError: the address cannot be used, or the named key is not in the environment.
        """
        parts = urlsplit(spec.url)
        if parts.scheme not in PORTS or not parts.hostname:
            raise UsageError(
                f"cannot send load to {spec.url!r}", hint="give the server's address as http://127.0.0.1:PORT"
            )
        self._spec = spec
        self._host = parts.hostname
        self._port = parts.port or PORTS[parts.scheme]
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._address: Address | None = None
        self._on_content = on_content
        self._on_end = on_end
        self._open: set[KernelConnection | StreamConnection] = set()
        self._sweep_at = MIN_SWEEP
        self._head = self._request_head(parts.path.rstrip("/"))
        self.reader = Reader() if self._tls is None and kernel_socket.available() else None
        """None: stamps come from the event loop."""
        self.in_flight: dict[int, Exchange] = {}
        """Exchanges that have not ended, by a number of their own."""

    async def session(self, session: Session, first_due_ns: int, stream: int) -> Exchange | None:
        """All turns of a session, one after the other; ends early when one fails. Returns the last exchange."""
        history: list[dict[str, str]] = []
        due_ns, exchange = first_due_ns, None
        for planned in session.requests:
            exchange = await self.send(Due(planned=planned, intended_ns=due_ns), stream, history)
            if exchange.error is not None or exchange.ended_ns is None:
                break
            due_ns = exchange.ended_ns + round(session.think_s * 1e9)
            if session.think_s and not planned.last_turn:
                await asyncio.sleep(session.think_s)
        return exchange

    async def send(self, due: Due, stream: int, history: list[dict[str, str]] | None = None) -> Exchange:
        """One request, to the end of its response or of our patience (cancelling cuts it).

        Args:
            due: the request.
            stream: a number to know its stream by.
            history: messages so far, where it is a turn of a conversation; its own are added.
        """
        history = [] if history is None else history
        keep_text = not due.planned.last_turn
        exchange = Exchange(
            due,
            stream,
            time.monotonic_ns(),
            self._on_content,
            force_length=self._spec.force_length,
            keep_text=keep_text,
        )
        request = self._request(due.planned, history)
        self.in_flight[id(exchange)] = exchange
        try:
            await self._perform(exchange, request)
        finally:
            exchange.end(time.monotonic_ns(), CUT_BY_DRAIN)
            del self.in_flight[id(exchange)]
            self._on_end(exchange)
        if exchange.reply.texts is not None:
            history.append({"role": "assistant", "content": "".join(exchange.reply.texts)})
        return exchange

    async def _perform(self, exchange: Exchange, request: bytes) -> None:
        """Connect, send, and follow the response to its end."""
        try:
            connection = await self._connect(exchange)
        except OSError as error:
            exchange.end(time.monotonic_ns(), f"connect: {error}")
            return
        self._open.add(connection)
        try:
            await connection.perform(request)
        finally:
            if len(self._open) > self._sweep_at:  # few are closed already: the server may take a moment
                self._open = {one for one in self._open if not one.closed}
                self._sweep_at = 2 * len(self._open) + MIN_SWEEP

    async def _connect(self, exchange: Exchange) -> KernelConnection | StreamConnection:
        if self._address is not None:
            return await self._connect_to(self._address, exchange)
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        for number, (family, _, _, _, sockaddr) in enumerate(found, start=1):
            address = Address(family, str(sockaddr[0]), int(sockaddr[1]))
            try:
                connection = await self._connect_to(address, exchange)
            except OSError:
                if number == len(found):
                    raise
            else:
                self._address = address
                return connection
        raise OSError(f"{self._host} has no address")

    async def _connect_to(self, address: Address, exchange: Exchange) -> KernelConnection | StreamConnection:
        if self.reader is not None:
            return await KernelConnection.open(address, exchange, self.reader)
        return await StreamConnection.open(address, exchange, self._tls, self._host)

    def close(self) -> None:
        """Close what a server has not closed yet."""
        for connection in self._open:
            connection.abort()
        self._open.clear()
        if self.reader is not None:
            self.reader.close()

    def _request_head(self, path: str) -> bytes:
        path = path.removesuffix("/v1") + (
            "/v1/chat/completions" if self._spec.endpoint == "chat" else "/v1/completions"
        )
        default = self._port == PORTS["https" if self._tls else "http"]
        lines = [
            f"POST {path} HTTP/1.1",
            f"Host: {self._host}" if default else f"Host: {self._host}:{self._port}",
            "Content-Type: application/json",
            "Accept: text/event-stream",
            "Accept-Encoding: identity",
            "Connection: close",
        ]
        if self._spec.api_key_env is not None:
            key = os.environ.get(self._spec.api_key_env)
            if not key or not key.isascii() or not key.isprintable():
                raise UsageError(
                    f"the environment variable {self._spec.api_key_env} holds no usable API key",
                    hint=f"export {self._spec.api_key_env}=... first, or leave --api-key-env out",
                )
            lines.append(f"Authorization: Bearer {key}")
        return ("\r\n".join(lines) + "\r\nContent-Length: ").encode("latin-1")

    def _request(self, planned: PlannedRequest, history: list[dict[str, str]]) -> bytes:
        body = msgspec.json.encode(self._body(planned, history))
        return b"%s%d\r\n\r\n%s" % (self._head, len(body), body)

    def _body(self, planned: PlannedRequest, history: list[dict[str, str]]) -> dict[str, Any]:
        spec = self._spec
        body: dict[str, Any] = {
            "model": spec.model,
            "max_tokens": planned.output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
        }
        if spec.endpoint == "chat":
            if not history and planned.system:
                history.append({"role": "system", "content": planned.system})
            history.append({"role": "user", "content": str(planned.prompt)})
            body["messages"] = history
        else:
            body["prompt"] = planned.prompt
        if spec.force_length:
            body |= {"ignore_eos": True, "min_tokens": planned.output_tokens}
        return body | spec.extra_body
