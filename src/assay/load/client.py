"""The streaming client: takes requests from a schedule, makes one exchange after the other on each stream.

No retries: a request that fails is a failed request, and the stream goes on with the next one.

Where scale goes: everything a run needs is the schedule it is given and the list it appends to, so more processes
means one `Client` each with a schedule of every n-th index, and the exchanges merged afterwards by their monotonic
stamps (one clock per machine). Kernel receive stamps replace the first line of `Connection.data_received`: a
connection that reads its socket itself with `recvmsg` calls the same `_take` with the kernel's stamp.
"""

from __future__ import annotations

import asyncio
import json
import time
from urllib.parse import urlsplit

from assay.errors import UsageError
from assay.load.exchange import CUT_BY_DRAIN, Connection, Exchange
from assay.load.schedule import Due, Schedule
from assay.records.load import PlannedRequest

AFTER_FAILURE_S = 0.05
"""Pause of a stream whose request failed, so that a refusing server is not hammered."""


class Client:
    """Sends what a schedule says to one server."""

    def __init__(self, base_url: str, model: str, schedule: Schedule) -> None:
        """Prepare; connects nothing yet.

        Raises:
            UsageError: the address is not `http://host:port`.
        """
        parts = urlsplit(base_url)
        if parts.scheme != "http" or not parts.hostname:
            raise UsageError(
                f"cannot send load to {base_url!r}", hint="give the server's address as http://127.0.0.1:PORT"
            )
        self._host, self._port = parts.hostname, parts.port or 80
        self._path = parts.path.rstrip("/") + "/v1/completions"
        self._model = model
        self._schedule = schedule
        self.exchanges: list[Exchange] = []
        """Every request so far, in the order of sending."""
        self.arrivals: list[int] = []
        """Arrival stamp of every content chunk of every request, in order."""
        self._open: set[asyncio.Transport] = set()

    async def stream(self, number: int) -> None:
        """One stream: a request at a time until cancelled."""
        free_since_ns: int | None = None
        while True:
            exchange = await self.send(await self._schedule.next(free_since_ns), number)
            free_since_ns = exchange.ended_ns
            if exchange.error is not None:
                await asyncio.sleep(AFTER_FAILURE_S)
                free_since_ns = None

    async def send(self, due: Due, stream: int) -> Exchange:
        """One request, to the end of its response or of our patience (cancelling cuts it)."""
        exchange = Exchange(due, stream)
        self.exchanges.append(exchange)
        try:
            await self._perform(exchange)
        except asyncio.CancelledError:
            exchange.end(time.monotonic_ns(), CUT_BY_DRAIN)
            raise
        return exchange

    async def _perform(self, exchange: Exchange) -> None:
        """Connect, send, and follow the response to its end."""
        loop = asyncio.get_running_loop()
        try:
            transport, connection = await loop.create_connection(
                lambda: Connection(exchange, self.arrivals), self._host, self._port
            )
        except OSError as error:
            exchange.end(time.monotonic_ns(), f"connect: {error}")
            return
        self._open.add(transport)
        try:
            await connection.perform(self._request_bytes(exchange.due.planned))
        finally:
            self._open = {transport for transport in self._open if not transport.is_closing()}

    def close(self) -> None:
        """Close what a server has not closed yet."""
        for transport in self._open:
            transport.abort()
        self._open.clear()

    def _request_bytes(self, planned: PlannedRequest) -> bytes:
        body = json.dumps(
            {
                "model": self._model,
                "prompt": planned.prompt,
                "max_tokens": planned.output_tokens,
                "stream": True,
                "stream_options": {"include_usage": True},
                "ignore_eos": True,
                "temperature": 0,
                "cache_prompt": False,
            },
            separators=(",", ":"),
        ).encode()
        head = (
            f"POST {self._path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nContent-Type: application/json\r\n"
            f"Accept: text/event-stream\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        return head.encode() + body
