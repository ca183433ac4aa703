"""Server-sent events, decoded from bytes that arrive in any pieces.

Follows the event-stream grammar: lines end in CR, LF or CRLF; a blank line ends an event; several `data` lines are
one event; lines that begin with a colon are comments (keep-alives). Data stays bytes until an event is whole, so a
character that is split between two reads is never damaged. Events past `MAX_EVENT_BYTES` are refused.
"""

from __future__ import annotations

from typing import NamedTuple

from assay.load.http1 import ProtocolError

MAX_EVENT_BYTES = 1_048_576
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event; `kind` is its `event` field, "message" when it has none, "error" for a bare `error:` line."""

    kind: str
    data: bytes


class EventDecoder:
    """Takes the bytes of an event stream; gives back the events that they complete."""

    __slots__ = ("_data", "_kind", "_partial", "_size", "_skip_newline", "_started")

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._data: list[bytes] = []
        self._kind = b""
        self._size = 0
        self._skip_newline = False
        self._started = False

    @property
    def between_events(self) -> bool:
        """Whether nothing of an unfinished event is held."""
        return not (self._partial or self._data or self._kind or self._skip_newline) and self._started

    def feed(self, data: bytes) -> list[Event]:
        """Decode the next bytes of the body.

        Raises:
            ProtocolError: an event is longer than `MAX_EVENT_BYTES`.
        """
        if not data:
            return []
        if self._skip_newline:
            data = data.removeprefix(b"\n")
        events: list[Event] = []
        for line in data.splitlines(keepends=True):
            self._size += len(line)
            if self._size > MAX_EVENT_BYTES:
                raise ProtocolError(f"an event of more than {MAX_EVENT_BYTES} bytes")
            self._partial.append(line)
            if line.endswith((b"\n", b"\r")):
                self._line(b"".join(self._partial).rstrip(b"\r\n"), events)
                self._partial.clear()
        # The other half of a CRLF may come with the next read.
        self._skip_newline = data.endswith(b"\r")
        return events

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._kind = value
        elif name == b"error":  # not in the grammar: how some servers report a failure in the middle of a stream
            self._kind = b"error"
            self._data.append(value)
        elif not self._data:
            self._size = 0  # comments between events do not add up

    def _dispatch(self, events: list[Event]) -> None:
        if self._data:
            kind = self._kind.decode("utf-8", "replace") or "message"
            events.append(Event(kind, b"\n".join(self._data)))
        self._data.clear()
        self._kind = b""
        self._size = 0
