"""A null server: streams tokens on a schedule of its own, and writes down when it really sent each.

    python -m assay.load.null_server --port 0 --first-token-s 0.1 --tokens-per-s 50 --log sends.bin

What a client says of it can be held against the truth: the first token is due `first-token-s` after the request came,
the others at a fixed pace, whatever the load. With --tokens-per-s 0 it sends as fast as it can (one token for each
turn of its loop and stream), which shows how much a client can take; its own speed is printed when it ends.

Speaks enough of OpenAI's protocol for every load client: completions and chat completions, streamed, `max_tokens`
(`max_completion_tokens`), usage, `[DONE]`, /v1/models, /health, kept-alive connections. One epoll thread; a timer
wheel of 1 ms. Prints one line of JSON with its port when it listens.

The log: little-endian records of (uint64 request number, uint64 monotonic nanoseconds). A request's first record is
the arrival of its bytes, the others are its chunks in order. The number is also in the `x-null-request` header and in
every chunk's `id`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import select
import signal
import socket
import sys
import time
from array import array
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from assay.load.null_answers import HEAD, TOKENS, WORD, about, event, framed, prompt_tokens

SLOT_NS = 1_000_000
LOG_EVERY = 65_536
BACKLOG = 4_096
READ_BYTES = 262_144
_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
DEFAULT_TOKENS = 16


class _Connection:
    """One client's socket and the answer it is being given."""

    __slots__ = (
        "at_ns",
        "chunk",
        "closing",
        "fd",
        "head",
        "left",
        "number",
        "received",
        "sock",
        "tail",
        "total",
    )

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.received = b""
        self.closing = False
        self.head = b""
        self.chunk = b""
        self.tail = b""
        self.number = self.left = self.total = self.at_ns = 0


class NullServer:
    """See the module."""

    def __init__(self, port: int, first_token_s: float, tokens_per_s: float, log: str | None) -> None:
        self._first_ns = round(first_token_s * 1e9)
        self._gap_ns = round(1e9 / tokens_per_s) if tokens_per_s else 0
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._epoll = select.epoll()
        self._epoll.register(self._listener.fileno(), select.EPOLLIN)
        self._connections: dict[int, _Connection] = {}
        self._wheel: dict[int, list[_Connection]] = {}
        self._slot = time.monotonic_ns() // SLOT_NS
        self._eager: deque[_Connection] = deque()
        self._stamps = array("Q")
        self._log = open(log, "wb") if log else None  # noqa: SIM115, PTH123 - lives as long as the server
        self._requests = 0
        self.sent_tokens = 0
        self.dropped = 0
        """Connections whose client did not read, so that the socket was full."""
        self.late_ns = 0
        """Longest delay of a chunk behind its schedule."""
        self._running = True
        self._lifeline: int | None = None

    def end_with(self, fd: int) -> None:
        """End when this pipe ends: its other end is held by whoever started us, and goes with them."""
        self._lifeline = fd
        self._epoll.register(fd, select.EPOLLIN)

    def stop(self, *_: object) -> None:
        """End after this turn."""
        self._running = False

    def serve(self) -> None:
        """Until `stop`."""
        while self._running:
            for fd, _ in self._epoll.poll(self._patience_s()):
                if fd == self._listener.fileno():
                    self._accept()
                elif fd == self._lifeline:
                    self._running = bool(os.read(fd, 4096))
                else:
                    self._receive(self._connections[fd])
            self._send_due()
            for _ in range(len(self._eager)):
                self._send_chunk(self._eager.popleft(), time.monotonic_ns())
        self._write_log()

    def _patience_s(self) -> float:
        if self._eager:
            return 0
        return 0.001 if self._wheel else 0.1

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            while True:
                sock, _ = self._listener.accept()
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._connections[sock.fileno()] = _Connection(sock)
                self._epoll.register(sock.fileno(), select.EPOLLIN)

    def _receive(self, connection: _Connection) -> None:
        try:
            data = connection.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
            return
        at_ns = time.monotonic_ns()
        connection.received += data
        head, separator, body = connection.received.partition(b"\r\n\r\n")
        if not separator:
            return
        found = _LENGTH.search(head)
        length = int(found[1]) if found else 0
        if len(body) < length:
            return
        connection.received = body[length:]
        self._answer(connection, head, body[:length], at_ns)

    def _answer(self, connection: _Connection, head: bytes, body: bytes, at_ns: int) -> None:
        connection.closing = b"connection: close" in head.lower()
        path = head.split(b" ", 2)[1].partition(b"?")[0]
        if not path.endswith(b"/completions"):
            self._say(connection, about(path, body))
            return
        found = TOKENS.search(body)
        chat = b"/chat/" in path
        connection.number = number = self._requests
        self._requests += 1
        connection.total = connection.left = max(int(found[1]) if found else DEFAULT_TOKENS, 1)
        connection.head = HEAD.format(number=number).encode()
        connection.chunk = event(number, chat=chat, text=WORD)
        usage = (prompt_tokens(body), connection.total)
        connection.tail = (
            event(number, chat=chat, finish="length")
            + (event(number, chat=chat, usage=usage) if b"include_usage" in body else b"")
            + framed(b"data: [DONE]\n\n")
            + b"0\r\n\r\n"
        )
        self._note(connection.number, at_ns)
        connection.at_ns = at_ns + self._first_ns
        if self._gap_ns or self._first_ns:
            self._schedule(connection)
        else:
            self._eager.append(connection)

    def _say(self, connection: _Connection, answer: dict[str, object]) -> None:
        body = json.dumps(answer).encode()
        with suppress(OSError):
            connection.sock.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
            )
        if connection.closing:
            self._drop(connection)

    def _schedule(self, connection: _Connection) -> None:
        self._wheel.setdefault(max(connection.at_ns // SLOT_NS, self._slot + 1), []).append(connection)

    def _send_due(self) -> None:
        now_slot = time.monotonic_ns() // SLOT_NS
        while self._slot < now_slot:
            for connection in self._wheel.pop(self._slot, ()):
                self._send_chunk(connection, time.monotonic_ns())
            self._slot += 1

    def _send_chunk(self, connection: _Connection, now_ns: int) -> None:
        if connection.fd < 0:
            return
        connection.left -= 1
        data = connection.chunk
        if connection.head:
            data, connection.head = connection.head + data, b""
        if not connection.left:
            data += connection.tail
        self._note(connection.number, now_ns)
        self.sent_tokens += 1
        self.late_ns = max(self.late_ns, now_ns - connection.at_ns if self._gap_ns else 0)
        try:
            sent = connection.sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop(connection)
            return
        if sent < len(data):  # a client that does not read: nothing can be learned from it any more
            self.dropped += 1
            self._drop(connection)
        elif not connection.left:
            if connection.closing:
                self._drop(connection)
        elif self._gap_ns:
            connection.at_ns += self._gap_ns
            self._schedule(connection)
        else:
            self._eager.append(connection)

    def _drop(self, connection: _Connection) -> None:
        if connection.fd >= 0:
            del self._connections[connection.fd]
            connection.sock.close()  # which takes it out of epoll
            connection.fd = -1

    def _note(self, number: int, at_ns: int) -> None:
        if self._log is None:
            return
        self._stamps.append(number)
        self._stamps.append(at_ns)
        if len(self._stamps) >= LOG_EVERY:
            self._write_log()

    def _write_log(self) -> None:
        if self._log is not None:
            self._log.write(self._stamps.tobytes())
            self._log.flush()
            del self._stamps[:]


def main(words: Sequence[str] | None = None) -> None:
    """Serve until SIGINT, SIGTERM or, where asked to, the end of stdin."""
    parser = argparse.ArgumentParser(prog="python -m assay.load.null_server", description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--first-token-s", type=float, default=0.1)
    parser.add_argument("--tokens-per-s", type=float, default=50.0, help="per stream; 0: as fast as possible")
    parser.add_argument("--log", help="file of the true send times")
    parser.add_argument("--end-with-stdin", action="store_true", help="stdin is a pipe; end when it ends")
    given = parser.parse_args(words)
    server = NullServer(given.port, given.first_token_s, given.tokens_per_s, given.log)
    if given.end_with_stdin:
        server.end_with(sys.stdin.fileno())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.stop)
    print(json.dumps({"port": server.port, "pid": os.getpid()}), flush=True)  # noqa: T201 - its answer
    gc.freeze()
    gc.disable()
    began_s, cpu_s = time.monotonic(), time.process_time()
    server.serve()
    report = {
        "tokens": server.sent_tokens,
        "seconds": time.monotonic() - began_s,
        "cpu_s": time.process_time() - cpu_s,
        "late_max_s": server.late_ns / 1e9,
        "dropped": server.dropped,
    }
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
