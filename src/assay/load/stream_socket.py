"""A connection over asyncio's own transports: TLS, and platforms whose kernel stamps nothing.

The stamp is taken as the first act of `data_received`: it is as late as the event loop is, and the result says so.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import cast

from assay.load.exchange import Exchange
from assay.load.kernel_socket import SETTLE_S, Address


class StreamConnection(asyncio.Protocol):
    """Carries one exchange, from its request to the end of its response."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._settling: asyncio.TimerHandle | None = None

    @classmethod
    async def open(
        cls, address: Address, exchange: Exchange, tls: ssl.SSLContext | None, server_name: str
    ) -> StreamConnection:
        """Connect.

        Raises:
            OSError: nobody listens there, or its certificate is refused.
        """
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: cls(exchange),
            address.host,
            address.port,
            family=address.family,
            ssl=tls,
            server_hostname=server_name if tls else None,
        )
        return connection

    async def perform(self, request: bytes) -> None:
        """Send the request and wait for the end of its response; what happened is in the exchange."""
        if self._transport is None:
            raise RuntimeError("perform() before the connection was made")
        self._exchange.sent_ns = time.monotonic_ns()
        self._transport.write(request)
        try:
            await self._finished
        except asyncio.CancelledError:
            self.abort()
            raise

    def abort(self) -> None:
        """Close at once. Idempotent."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def closed(self) -> bool:
        """Whether the transport is gone."""
        return self._transport is None or self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop: stamp, then parse."""
        at_ns = time.monotonic_ns()
        if self._finished.done():
            return
        self._exchange.take(data, at_ns)
        if self._exchange.ended:
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop: the server closed, or the connection broke."""
        at_ns = time.monotonic_ns()
        if self._settling is not None:
            self._settling.cancel()
        if not self._finished.done():
            self._exchange.lost(at_ns, exc if isinstance(exc, OSError) else None)
            self._finished.set_result(None)

    def _finish(self) -> None:
        self._finished.set_result(None)
        if self._exchange.error is not None:
            self.abort()
        elif self._transport is not None:
            self._settling = asyncio.get_running_loop().call_later(SETTLE_S, self._transport.abort)
