"""A plain TCP connection whose arrival stamps come from the kernel: exact even when this process is late.

Linux stamps every packet as it receives it (`SO_TIMESTAMPING`, software receive stamps) and hands the stamp of the last
packet of a read out with it. Stamps are wall-clock; `Clock` maps them to the monotonic clock and notices a step.
Several chunks in one read share the last one's stamp: `Exchange.merged` counts them.
Source: Documentation/networking/timestamping.rst of the Linux kernel.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket
import struct
import sys
import time
from typing import NamedTuple

from assay.load.exchange import Exchange

SO_TIMESTAMPING = 37
"""asm-generic/socket.h; Python's socket module does not name it."""
RX_SOFTWARE, SOFTWARE = 1 << 3, 1 << 4
"""linux/net_tstamp.h: make a stamp when a packet is received; report software stamps."""
STAMP = struct.Struct("qq")
READ_BYTES = 262_144
READS_IN_A_TURN = 512
"""Timers and new requests get their turn in between."""
ANCILLARY_BYTES = 256
SETTLE_S = 1.0
"""How long after the end of the response the server may take to close the connection itself; nobody waits for it."""
MAX_STEP_NS = 1_000_000
MAX_AGE_NS = 60_000_000_000
NUM_BINS = 128
BIN_SHIFT = 20
"""Reading delays are counted in bins of 2**20 ns, about a millisecond."""


def available() -> bool:
    """Whether this platform stamps received packets."""
    if sys.platform != "linux":
        return False
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RX_SOFTWARE | SOFTWARE)
    except OSError:
        return False
    return True


class Clock:
    """The offset from the wall clock to the monotonic clock, and whether the wall clock was set meanwhile."""

    def __init__(self) -> None:
        self.offset_ns = _offset_ns()
        self.stepped = False

    def check(self) -> None:
        """Look again; small drift is followed, a step is remembered."""
        offset_ns = _offset_ns()
        self.stepped = self.stepped or abs(offset_ns - self.offset_ns) > MAX_STEP_NS
        self.offset_ns = offset_ns


def _offset_ns() -> int:
    """Wall minus monotonic: the tightest of a few readings, so that being preempted between the two does not count."""
    best = (1 << 62, 0)
    for _ in range(5):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        best = min(best, (after - before, wall - (before + after) // 2))
    return best[1]


class Reader:
    """What all connections of a process share: one epoll, one buffer, the clock, how late reads were.

    The event loop watches the epoll's own descriptor and nothing else: a wake-up serves all sockets that have
    something, without the loop's cost for each of them.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._connections: dict[int, KernelConnection] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.buffer = bytearray(READ_BYTES)
        self.buffers = [self.buffer]
        self.view = memoryview(self.buffer)
        self.clock = Clock()
        self.delays = [0] * NUM_BINS
        """Reads by how long their bytes had waited in the socket, in bins of 1.05 ms; the last bin holds the rest."""
        self.without_stamp = 0

    def watch(self, fd: int, connection: KernelConnection) -> None:
        """Have a connection told whenever its socket has something."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._epoll.fileno(), self._serve)
        self._connections[fd] = connection
        self._epoll.register(fd, select.EPOLLIN)

    def forget(self, fd: int) -> None:
        """Watch a socket no more; before it is closed."""
        if self._connections.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        """Watch nothing any more. Idempotent."""
        if self._loop is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._loop = None
        self._epoll.close()

    def _serve(self) -> None:
        connections = self._connections
        for fd, _ in self._epoll.poll(0, READS_IN_A_TURN):
            if (connection := connections.get(fd)) is not None:  # one read can end another connection
                connection.readable()


class Address(NamedTuple):
    """Where to connect."""

    family: int
    host: str
    port: int


class KernelConnection:
    """Carries one exchange over a socket that is read here."""

    def __init__(self, sock: socket.socket, exchange: Exchange, reader: Reader) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._fd = sock.fileno()
        self._exchange = exchange
        self._reader = reader
        self._finished: asyncio.Future[None] = self._loop.create_future()
        self._settling: asyncio.TimerHandle | None = None
        self._unsent = memoryview(b"")
        self._writing = False

    @classmethod
    async def open(cls, address: Address, exchange: Exchange, reader: Reader) -> KernelConnection:
        """Connect.

        Raises:
            OSError: nobody listens there.
        """
        sock = socket.socket(address.family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RX_SOFTWARE | SOFTWARE)
            await _connect(sock, (address.host, address.port))
        except BaseException:
            sock.close()
            raise
        return cls(sock, exchange, reader)

    async def perform(self, request: bytes) -> None:
        """Send the request and wait for the end of its response; what happened is in the exchange."""
        self._reader.watch(self._fd, self)
        self._exchange.sent_ns = time.monotonic_ns()
        self._unsent = memoryview(request)
        self._write()
        try:
            await self._finished
        except asyncio.CancelledError:
            self.abort()
            raise

    def abort(self) -> None:
        """Close at once. Idempotent."""
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None
        if self._fd < 0:
            return
        self._reader.forget(self._fd)
        if self._writing:
            self._loop.remove_writer(self._fd)
        self._fd = -1
        self._socket.close()

    @property
    def closed(self) -> bool:
        """Whether the socket is gone."""
        return self._fd < 0

    def _write(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._lost(error)
            return
        self._unsent = self._unsent[sent:]
        if bool(self._unsent) != self._writing:
            self._writing = not self._writing
            if self._writing:
                self._loop.add_writer(self._fd, self._write)
            else:
                self._loop.remove_writer(self._fd)

    def readable(self) -> None:
        """The socket has something, or its end."""
        reader = self._reader
        try:
            size, ancillary, _, _ = self._socket.recvmsg_into(reader.buffers, ANCILLARY_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lost(error)
            return
        if size == 0:
            self._lost(None)
            return
        now_ns = at_ns = time.monotonic_ns()
        if ancillary:
            seconds, nanoseconds = STAMP.unpack_from(ancillary[0][2])
            stamp_ns = seconds * 1_000_000_000 + nanoseconds - reader.clock.offset_ns
            waited_ns = now_ns - stamp_ns
            if -MAX_STEP_NS < waited_ns < MAX_AGE_NS:
                at_ns = min(stamp_ns, now_ns)
                reader.delays[min(max(waited_ns, 0) >> BIN_SHIFT, NUM_BINS - 1)] += 1
            else:
                reader.without_stamp += 1
        else:
            reader.without_stamp += 1
        if self._finished.done():
            return  # what comes after the end of the response is read only to see the connection close
        self._exchange.take(reader.view[:size].tobytes(), at_ns)
        if self._exchange.ended:
            self._finish()

    def _lost(self, error: OSError | None) -> None:
        self.abort()
        if not self._finished.done():  # else it has ended, or our drain has cut it and will say so
            self._exchange.lost(time.monotonic_ns(), error)
            self._finished.set_result(None)

    def _finish(self) -> None:
        self._finished.set_result(None)
        if self._exchange.error is not None:
            self.abort()
        else:
            self._settling = self._loop.call_later(SETTLE_S, self.abort)


async def _connect(sock: socket.socket, address: tuple[str, int]) -> None:
    """Connect a non-blocking socket.

    The event loop's own way asks a thread whether the address is one, which costs more than the connection.

    Raises:
        OSError: nobody listens there.
    """
    code = sock.connect_ex(address)
    if code == errno.EINPROGRESS:
        at_once = select.poll()
        at_once.register(sock, select.POLLOUT)
        if not at_once.poll(0):  # over loopback it has succeeded or failed already
            await _writable(sock)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))


async def _writable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(sock, _tell, ready)
    try:
        await ready
    finally:
        loop.remove_writer(sock)


def _tell(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
