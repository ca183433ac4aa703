"""The floor: one epoll loop in Python that only receives, stamps and stores; the bytes are parsed after the load.

With `--kernel` the stamps are the kernel's own (`SO_TIMESTAMPING`, software receive), else the clock is read after each
`recv`. Connections are kept open between requests where the server allows it.
"""

from __future__ import annotations

import re
import select
import socket
import struct
import time
from bisect import bisect_left
from itertools import accumulate

from common import Stamps, Task, events, has_content, task

END = b"0\r\n\r\n"
SO_TIMESTAMPING = 37
RECEIVE_SOFTWARE = 1 << 3 | 1 << 4
STAMP = struct.Struct("qq")
READ_BYTES = 262_144
ANCILLARY_BYTES = 256
NUMBER = re.compile(rb"x-null-request: *(\d+)", re.IGNORECASE)


class Stream:
    """One of the loops: a connection and the reads of its present request."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.sent_ns = 0
        self.reads: list[tuple[int, bytes]] = []
        self.connect()

    def connect(self) -> None:
        self.socket = socket.create_connection(self.loop.address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.loop.kernel:
            self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RECEIVE_SOFTWARE)
        self.loop.watch(self)

    def send(self) -> None:
        self.reads = []
        self.loop.requests.append(self.reads)
        self.sent_ns = time.monotonic_ns()
        self.loop.sent_ns.append(self.sent_ns)
        self.socket.sendall(self.loop.request)


class Loop:
    """All streams on one epoll."""

    def __init__(self, work: Task) -> None:
        self.address = work.address
        self.kernel = work.kernel
        self.request = (
            f"POST /v1/completions HTTP/1.1\r\nhost: {self.address[0]}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(work.body)}\r\n\r\n"
        ).encode() + work.body
        self.requests: list[list[tuple[int, bytes]]] = []
        self.sent_ns: list[int] = []
        self.streams: dict[int, Stream] = {}
        self.epoll = select.epoll()
        self.buffer = bytearray(READ_BYTES)
        self.view = memoryview(self.buffer)
        self.offset_ns = time.time_ns() - time.monotonic_ns()

    def watch(self, stream: Stream) -> None:
        self.streams[stream.socket.fileno()] = stream
        self.epoll.register(stream.socket.fileno(), select.EPOLLIN)

    def run(self, num_streams: int, deadline_ns: int) -> None:
        for _ in range(num_streams):
            Stream(self).send()
        receive = self.receive_kernel if self.kernel else self.receive
        busy = num_streams
        while busy:
            for fd, _ in self.epoll.poll():
                stream = self.streams[fd]
                at_ns, size = receive(stream.socket)
                if size:
                    data = self.view[:size].tobytes()
                    stream.reads.append((at_ns, data))
                    if not data.endswith(END):
                        continue
                    if at_ns < deadline_ns:
                        stream.send()
                        continue
                elif at_ns < deadline_ns:
                    self.again(fd, stream)
                    continue
                self.close(fd, stream)
                busy -= 1

    def again(self, fd: int, stream: Stream) -> None:
        """The server closed the connection: open another, and repeat the request if it was not answered."""
        self.close(fd, stream)
        stream.connect()
        stream.send()

    def close(self, fd: int, stream: Stream) -> None:
        del self.streams[fd]
        self.epoll.unregister(fd)
        stream.socket.close()

    def receive(self, connection: socket.socket) -> tuple[int, int]:
        size = connection.recv_into(self.buffer)
        return time.monotonic_ns(), size

    def receive_kernel(self, connection: socket.socket) -> tuple[int, int]:
        size, ancillary, _, _ = connection.recvmsg_into([self.buffer], ANCILLARY_BYTES)
        if not ancillary:
            return time.monotonic_ns(), size
        seconds, nanoseconds = STAMP.unpack_from(ancillary[0][2])
        return seconds * 1_000_000_000 + nanoseconds - self.offset_ns, size


def parsed(loop: Loop) -> Stamps:
    """Every content chunk with the stamp of the read that completed it."""
    stamps = Stamps()
    for sent_ns, reads in zip(loop.sent_ns, loop.requests, strict=True):
        text = b"".join(data for _, data in reads)
        ends = list(accumulate(len(data) for _, data in reads))
        number = NUMBER.search(text)
        if number is None:
            continue
        seen = stamps.of(int(number.group(1)), sent_ns)
        seen.extend(reads[bisect_left(ends, end)][0] for end, event in events(text) if has_content(event))
    return stamps


def main() -> None:
    work = task()
    loop = Loop(work)
    loop.run(work.streams, work.deadline_ns())
    parsed(loop).write(work.stamps)


if __name__ == "__main__":
    main()
