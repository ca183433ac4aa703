"""One request on one connection, stamped as its bytes arrive.

A connection carries one request. Servers close a kept-alive connection after a stream without having announced it
(llama.cpp does), and a request written into that closing socket would count as the server's failure; and servers
that lend a thread to each open connection would starve the streams beyond their number. Connecting over loopback
costs 0.1 ms, outside TTFT, which starts when the request's bytes are handed over.

The stamp is taken as the first act of `data_received`, before anything is parsed, so that the cost of parsing one
chunk never ages another chunk of the same read. `Exchange` is what the parsing leaves behind; it becomes a frozen
`RequestSample` after the run, when the phases are known.
"""

from __future__ import annotations

import asyncio
import time
from typing import cast

from assay.load.http1 import STATUS_OK, ProtocolError, ResponseDecoder
from assay.load.reply import Reply, status_problem
from assay.load.schedule import Due
from assay.load.sse import EventDecoder
from assay.records.load import RequestSample

MAX_ERROR_BODY_BYTES = 4_096
SETTLE_S = 1.0
"""How long after `[DONE]` the server may take to close the connection itself; the stream does not wait for it."""
CUT_BY_DRAIN = "cut-by-drain"
"""The error of a request that our own drain cut off: not a failure, and in no statistics of whole requests."""


class Exchange:
    """What one request did, as far as it got."""

    __slots__ = ("due", "ended_ns", "error", "reply", "sent_ns", "status", "stream")

    def __init__(self, due: Due, stream: int) -> None:
        self.due = due
        self.stream = stream
        self.reply = Reply()
        self.status: int | None = None
        self.sent_ns = time.monotonic_ns()
        """Until the bytes are handed over: when the attempt began."""
        self.ended_ns: int | None = None
        self.error: str | None = None

    def end(self, at_ns: int, error: str | None) -> None:
        """Note the end, once."""
        if self.ended_ns is None:
            self.ended_ns = at_ns
            self.error = error


class Connection(asyncio.Protocol):
    """Carries one exchange, from its request to the end of its response."""

    def __init__(self, exchange: Exchange, arrivals: list[int]) -> None:
        self._exchange = exchange
        self._arrivals = arrivals
        self._decoder = ResponseDecoder()
        self._events = EventDecoder()
        self._error_body = b""
        self._finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._settling: asyncio.TimerHandle | None = None

    async def perform(self, request: bytes) -> None:
        """Send the request and wait for the end of its response; what happened is in the exchange."""
        if self._transport is None:
            raise RuntimeError("perform() before the connection was made")
        self._exchange.sent_ns = time.monotonic_ns()
        self._transport.write(request)
        try:
            await self._finished
        except asyncio.CancelledError:
            self._exchange.end(time.monotonic_ns(), CUT_BY_DRAIN)
            self.abort()
            raise

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop: stamp, then parse."""
        at_ns = time.monotonic_ns()
        if self._finished.done():
            return
        try:
            self._take(data, at_ns)
        except ProtocolError as error:
            self._finish(at_ns, f"protocol: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop: the server closed, or the connection broke."""
        at_ns = time.monotonic_ns()
        if self._settling is not None:
            self._settling.cancel()
        if self._finished.done():
            return
        try:
            self._decoder.end_of_input()
        except ProtocolError as error:
            self._finish(at_ns, f"reset: {exc or error}")
        else:
            self._finish(at_ns, None)

    def _take(self, data: bytes, at_ns: int) -> None:
        reply, decoder = self._exchange.reply, self._decoder
        body = decoder.feed(data)
        self._exchange.status = decoder.status
        if decoder.status not in {None, STATUS_OK}:
            self._error_body = (self._error_body + body)[:MAX_ERROR_BODY_BYTES]
        elif body:
            for event in self._events.feed(body):
                if reply.take(event, at_ns):
                    self._arrivals.append(at_ns)
        if decoder.complete or reply.done_ns is not None or reply.in_band_error is not None:
            self._finish(at_ns, None)

    def _finish(self, at_ns: int, transport_error: str | None) -> None:
        """The response has ended, well or not."""
        exchange = self._exchange
        problem = status_problem(exchange.status, self._error_body) if exchange.status is not None else None
        if problem is None and exchange.reply.in_band_error is None:
            problem = transport_error  # a server that reports its failure and hangs up: the report says more
        exchange.end(at_ns, problem or exchange.reply.problem(exchange.due.planned.output_tokens))
        self._finished.set_result(None)
        if self._transport is None or transport_error is not None:
            self.abort()
        else:
            self._settling = asyncio.get_running_loop().call_later(SETTLE_S, self._transport.abort)


def to_sample(exchange: Exchange, began_ns: int | None, ended_ns: int | None) -> RequestSample:
    """The frozen record of an exchange that has ended.

    Args:
        exchange: what the client left.
        began_ns: start of the first measured window; None when it never came.
        ended_ns: end of the last one.
    """
    reply = exchange.reply
    return RequestSample(
        index=exchange.due.planned.index,
        stream=exchange.stream,
        intended_ns=exchange.due.intended_ns,
        sent_ns=exchange.sent_ns,
        first_content_ns=reply.chunk_ns[0] if reply.chunk_ns else None,
        chunk_ns=reply.chunk_ns,
        ended_ns=exchange.sent_ns if exchange.ended_ns is None else exchange.ended_ns,
        input_tokens=reply.prompt_tokens,
        output_tokens=reply.completion_tokens,
        cached_tokens=reply.cached_tokens,
        wanted_output_tokens=exchange.due.planned.output_tokens,
        status=exchange.status,
        finish_reason=reply.finish_reason,
        first_text=reply.first_text,
        error=exchange.error,
        phase=_phase(exchange, began_ns, ended_ns),
    )


def _phase(exchange: Exchange, began_ns: int | None, ended_ns: int | None) -> str:
    """By the time of sending; a request that our drain cut belongs to the drain."""
    if exchange.error == CUT_BY_DRAIN or (ended_ns is not None and exchange.sent_ns >= ended_ns):
        return "drain"
    return "warm-up" if began_ns is None or exchange.sent_ns < began_ns else "measured"
