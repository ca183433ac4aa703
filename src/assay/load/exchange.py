"""One request as its answer arrives: bytes with their stamps in, a finished exchange out.

The stamp is taken before anything is parsed (by the kernel where it can: `kernel_socket`), so that the cost of parsing
one chunk never ages another.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from assay.load.http1 import STATUS_OK, ProtocolError, ResponseDecoder
from assay.load.reply import Reply, status_problem
from assay.load.schedule import Due
from assay.load.sse import EventDecoder

MAX_ERROR_BODY_BYTES = 4_096
CUT_BY_DRAIN = "cut-by-drain"
"""The error of a request that our own drain cut off: not a failure, and in no statistics of whole requests."""
GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
DATA = b"data: "
END_OF_EVENT = b"\n\n\r\n"
"""How a read ends that is one event in one transfer chunk."""
SIZE_LINE_BYTES = 10
"""Within which the size line of such a chunk ends."""


class Exchange:
    """What one request did, as far as it got."""

    __slots__ = (
        "_decoder",
        "_error_body",
        "_events",
        "_force_length",
        "_inflate",
        "_on_content",
        "_plain",
        "due",
        "ended_ns",
        "error",
        "merged",
        "reply",
        "sent_ns",
        "status",
        "stream",
    )

    def __init__(
        self,
        due: Due,
        stream: int,
        now_ns: int,
        on_content: Callable[[int], None],
        *,
        force_length: bool = True,
        keep_text: bool = False,
    ) -> None:
        """Begin.

        Args:
            due: the request.
            stream: which stream sends it.
            now_ns: when the attempt began.
            on_content: called with the stamp of every content chunk.
            force_length: whether an answer shorter than asked for is a failure.
            keep_text: whether the answer's text is wanted afterwards.
        """
        self.due = due
        self.stream = stream
        self.reply = Reply(keep_text=keep_text)
        self.status: int | None = None
        self.sent_ns = now_ns
        """Until the bytes are handed over: when the attempt began."""
        self.ended_ns: int | None = None
        self.error: str | None = None
        self.merged = 0
        """Content chunks that were read together with the one before them, and so share its stamp."""
        self._force_length = force_length
        self._on_content = on_content
        self._decoder = ResponseDecoder()
        self._events = EventDecoder()
        self._error_body = b""
        self._inflate: Callable[[bytes], bytes] | None = None
        self._plain = False
        """Whether the next byte begins a transfer chunk and an event, nothing compressed: what `_one_event` needs."""

    @property
    def ended(self) -> bool:
        """Whether nothing more can change it."""
        return self.ended_ns is not None

    def end(self, at_ns: int, error: str | None) -> None:
        """Note the end, once."""
        if self.ended_ns is None:
            self.ended_ns = at_ns
            self.error = error

    def take(self, data: bytes, at_ns: int) -> None:
        """Bytes arrived at `at_ns`; afterwards `ended` says whether they ended the exchange, well or not."""
        if self._plain and data.endswith(END_OF_EVENT) and (event := _one_event(data)) is not None:
            if self.reply.take_data(event, at_ns):
                self._on_content(at_ns)
            elif self.reply.over:
                self._finish(at_ns, None)
            return
        try:
            self._read(data, at_ns)
        except (ProtocolError, zlib.error) as error:
            self._finish(at_ns, f"protocol: {error}")

    def lost(self, at_ns: int, error: OSError | None) -> None:
        """The server closed the connection, or it broke."""
        if self.ended:
            return
        try:
            self._decoder.end_of_input()
        except ProtocolError as cut:
            self._finish(at_ns, f"reset: {error or cut}")
        else:
            self._finish(at_ns, None)

    def _read(self, data: bytes, at_ns: int) -> None:
        decoder, contents = self._decoder, 0
        if self.status == STATUS_OK and self._inflate is None:
            bodies, consumed = decoder.whole_chunks(data)
            for body in bodies:
                contents += self._read_events(body, at_ns)
            data = data[consumed:] if consumed else data
        if data:
            contents += self._read_any(data, at_ns)
        if contents > 1:
            self.merged += contents - 1
        if self.reply.over or decoder.complete:
            self._finish(at_ns, None)
        self._plain = (
            self.status == STATUS_OK
            and self._inflate is None
            and decoder.between_chunks
            and self._events.between_events
        )

    def _read_events(self, body: bytes, at_ns: int) -> int:
        contents = 0
        for event in self._events.feed(body):
            if self.reply.take(event, at_ns):
                contents += 1
                self._on_content(at_ns)
        return contents

    def _read_any(self, data: bytes, at_ns: int) -> int:
        decoder = self._decoder
        body = decoder.feed(data)
        if self.status is None and decoder.status is not None:
            self.status = decoder.status
            if decoder.headers.get("content-encoding", "identity") in {"gzip", "x-gzip", "deflate"}:
                self._inflate = zlib.decompressobj(GZIP_OR_ZLIB).decompress
        self.status = decoder.status
        if body and self._inflate is not None:
            body = self._inflate(body)
        if decoder.status not in {None, STATUS_OK}:
            self._error_body = (self._error_body + body)[:MAX_ERROR_BODY_BYTES]
            return 0
        return self._read_events(body, at_ns) if body else 0

    def _finish(self, at_ns: int, transport_error: str | None) -> None:
        """The response has ended, well or not."""
        problem = status_problem(self.status, self._error_body) if self.status is not None else None
        if problem is None and self.reply.in_band_error is None:
            problem = transport_error  # a server that reports its failure and hangs up: the report says more
        wanted = self.due.planned.output_tokens if self._force_length else None
        self.end(at_ns, problem or self.reply.problem(wanted))


def _one_event(data: bytes) -> bytes | None:
    """The data of a read that is one transfer chunk holding one plain event, as most servers write a token.

    None for anything else, which goes the long way.
    """
    end = data.find(b"\r\n", 1, SIZE_LINE_BYTES)
    begin = end + 2 + len(DATA)
    if end < 0 or data[end + 2 : begin] != DATA or data.find(b"\n", begin) != len(data) - len(END_OF_EVENT):
        return None
    if not data[:end].isalnum() or b"\r" in data[begin : -len(END_OF_EVENT)]:
        return None
    try:
        size = int(data[:end], 16)
    except ValueError:
        return None
    return data[begin : -len(END_OF_EVENT)] if size == len(data) - end - 4 else None
