"""The answer to one HTTP/1.1 request, decoded piece by piece: head, transfer coding, end.

Only what a streaming client of a local server needs, and strict about the rest: whatever is not HTTP/1.1 raises
`ProtocolError`, nothing else, and no input makes it hold more than `MAX_HEAD_BYTES` back.
"""

from __future__ import annotations

from enum import Enum, auto

MAX_HEAD_BYTES = 65_536
MAX_SIZE_LINE_BYTES = 1_024
STATUS_OK = 200
_INFORMATIONAL = range(100, 200)
_BODILESS = frozenset({204, 304})
_HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")


class ProtocolError(Exception):
    """The server sent something that is neither HTTP/1.1 nor an event stream."""


class _State(Enum):
    HEAD = auto()
    CHUNK_SIZE = auto()
    CHUNK_DATA = auto()
    CHUNK_END = auto()
    TRAILER = auto()
    LENGTH = auto()
    UNTIL_CLOSE = auto()
    COMPLETE = auto()


class ResponseDecoder:
    """Takes the bytes of one response in any pieces; gives back the bytes of its body."""

    __slots__ = ("_at", "_buffer", "_left", "_state", "headers", "status")

    def __init__(self) -> None:
        self.status: int | None = None
        """None until the head is read."""
        self.headers: dict[str, str] = {}
        """Names in lower case; a repeated header keeps its last value."""
        self._state = _State.HEAD
        self._buffer = b""
        self._at = 0
        """How far the buffer is consumed: a cursor, because cutting the front off each time is quadratic."""
        self._left = 0

    @property
    def complete(self) -> bool:
        """Whether the response has ended as its framing says."""
        return self._state is _State.COMPLETE

    @property
    def between_chunks(self) -> bool:
        """Whether the next byte begins a transfer chunk."""
        return self._state is _State.CHUNK_SIZE and self._at >= len(self._buffer)

    def whole_chunks(self, data: bytes) -> tuple[list[bytes], int]:
        """The transfer chunks that `data` begins with, as far as they are whole, and how many bytes they are.

        What a streaming server sends for most tokens: a few C calls each instead of the state machine's walk. Nothing
        where a chunk was begun before; what follows them (part of a chunk, the end) is for `feed`.
        """
        bodies: list[bytes] = []
        at, length = 0, len(data)
        if not self.between_chunks:
            return bodies, 0
        while at < length:
            end = data.find(b"\r\n", at, at + len("ffffffff") + 2)
            if end <= at or not _HEX_DIGITS.issuperset(data[at:end]):
                break
            begin = end + 2
            stop = begin + int(data[at:end], 16)
            if stop == begin or data[stop : stop + 2] != b"\r\n":
                break
            bodies.append(data[begin:stop])
            at = stop + 2
        return bodies, at

    def feed(self, data: bytes) -> bytes:
        """Decode the next bytes from the socket.

        Returns:
            Bytes of the body that they contain; often all of it.

        Raises:
            ProtocolError: not HTTP/1.1, or bytes after the end.
        """
        self._buffer = self._buffer[self._at :] + data
        self._at = 0
        body: list[bytes] = []
        while self._at < len(self._buffer) and self._step(body):
            pass
        return body[0] if len(body) == 1 else b"".join(body)

    def end_of_input(self) -> None:
        """The server closed the connection.

        Raises:
            ProtocolError: the response had not ended.
        """
        if self._state is _State.UNTIL_CLOSE:
            self._state = _State.COMPLETE
        if self._state is not _State.COMPLETE:
            raise ProtocolError(f"the connection closed in the middle of the response ({self._state.name.lower()})")

    def _step(self, body: list[bytes]) -> bool:
        """Consume one element of the framing; False when it is not there in full yet."""
        match self._state:
            case _State.CHUNK_DATA | _State.LENGTH:
                return self._data(body)
            case _State.CHUNK_SIZE:
                return self._chunk_size()
            case _State.CHUNK_END:
                return self._chunk_end()
            case _State.HEAD:
                return self._head()
            case _State.TRAILER:
                return self._trailer()
            case _State.UNTIL_CLOSE:
                body.append(self._buffer[self._at :])
                self._at = len(self._buffer)
                return False
            case _State.COMPLETE:
                raise ProtocolError(f"{len(self._buffer) - self._at} bytes after the end of the response")

    def _data(self, body: list[bytes]) -> bool:
        piece = self._buffer[self._at : self._at + self._left]
        body.append(piece)
        self._at += len(piece)
        self._left -= len(piece)
        if self._left == 0:
            self._state = _State.CHUNK_END if self._state is _State.CHUNK_DATA else _State.COMPLETE
        return self._left == 0

    def _line(self, limit: int) -> bytes | None:
        """The next line without its end, or None."""
        end = self._buffer.find(b"\n", self._at)
        if (end if end >= 0 else len(self._buffer)) - self._at > limit:
            raise ProtocolError(f"a line of more than {limit} bytes in the framing of the response")
        if end < 0:
            return None
        line = self._buffer[self._at : end]
        self._at = end + 1
        return line.removesuffix(b"\r")

    def _chunk_size(self) -> bool:
        line = self._line(MAX_SIZE_LINE_BYTES)
        if line is None:
            return False
        digits = line.partition(b";")[0].strip()
        if not digits or len(digits) > len("ffffffff") or not _HEX_DIGITS.issuperset(digits):
            raise ProtocolError(f"chunk size {line[:40]!r} is not a hexadecimal number")
        self._left = int(digits, 16)
        self._state = _State.CHUNK_DATA if self._left else _State.TRAILER
        return True

    def _chunk_end(self) -> bool:
        line = self._line(MAX_SIZE_LINE_BYTES)
        if line:
            raise ProtocolError(f"{line[:40]!r} where a chunk should have ended")
        if line is None:
            return False
        self._state = _State.CHUNK_SIZE
        return True

    def _trailer(self) -> bool:
        line = self._line(MAX_HEAD_BYTES)
        if line is None:
            return False
        if not line:
            self._state = _State.COMPLETE
        return True

    def _head(self) -> bool:
        end, length = self._end_of_head()
        if (end if end >= 0 else len(self._buffer)) - self._at > MAX_HEAD_BYTES:
            raise ProtocolError(f"the head of the response is longer than {MAX_HEAD_BYTES} bytes")
        if end < 0:
            return False
        lines = self._buffer[self._at : end].splitlines()
        self._at = end + length
        self._read_status(lines[0] if lines else b"")
        self._read_headers(lines[1:])
        if self.status not in _INFORMATIONAL:
            self._choose_framing()
        return True

    def _end_of_head(self) -> tuple[int, int]:
        """Where the blank line begins and how long it is; -1 when it has not come."""
        found = [(at, len(end)) for end in (b"\r\n\r\n", b"\n\n") if (at := self._buffer.find(end, self._at)) >= 0]
        return min(found, default=(-1, 0))

    def _read_status(self, line: bytes) -> None:
        version, _, rest = line.partition(b" ")
        digits = rest[:3]
        if version not in {b"HTTP/1.1", b"HTTP/1.0"} or len(digits) != len("200") or not digits.isdigit():
            raise ProtocolError(f"{line[:60]!r} is not the status line of an HTTP/1.1 response")
        self.status = int(digits)

    def _read_headers(self, lines: list[bytes]) -> None:
        self.headers = {}
        for line in lines:
            name, colon, value = line.partition(b":")
            if not colon:
                raise ProtocolError(f"{line[:60]!r} is not a header")
            self.headers[name.strip().lower().decode("latin-1")] = value.strip().decode("latin-1")

    def _choose_framing(self) -> None:
        length = self.headers.get("content-length")
        if self.status in _BODILESS:
            self._state = _State.COMPLETE
        elif "chunked" in self.headers.get("transfer-encoding", "").lower():
            self._state = _State.CHUNK_SIZE
        elif length is None:
            self._state = _State.UNTIL_CLOSE
        elif not (length.isascii() and length.isdigit() and len(length) < len("1" * 19)):
            raise ProtocolError(f"content-length {length[:40]!r} is not a number")
        else:
            self._left = int(length)
            self._state = _State.LENGTH if self._left else _State.COMPLETE
