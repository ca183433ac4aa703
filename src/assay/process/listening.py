"""Who listens on a TCP port of this machine, as far as this user may see."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import psutil

from assay.process.children import START_TOLERANCE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A process that listens on a port."""

    pid: int | None
    """None: another user's, or not told on this platform."""
    create_time: float | None = None
    """Seconds since the epoch."""
    command: str = ""

    def is_older_than(self, create_time: float) -> bool:
        """Whether it was there before; False where that is not known."""
        return self.create_time is not None and self.create_time < create_time - START_TOLERANCE_S


def listeners(port: int) -> list[Listener]:
    """Everything that listens on the port, on whichever address; empty where that cannot be seen or nobody does."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.AccessDenied, OSError):
        return []
    pids = {one.pid for one in connections if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port}
    return [_listener(pid) for pid in sorted(pids, key=lambda pid: pid or 0)]


def carries(pid: int | None, markers: Collection[tuple[str, str]]) -> bool:
    """Whether a process was started with one of these variables: one that left its parent's tree is known by them."""
    try:
        environment = psutil.Process(pid).environ() if pid is not None else {}
    except (psutil.Error, OSError):
        return False
    return any(environment.get(name) == value for name, value in markers)


def _listener(pid: int | None) -> Listener:
    try:
        process = psutil.Process(pid) if pid is not None else None
        if process is None:
            return Listener(pid=None)
        return Listener(pid=pid, create_time=process.create_time(), command=" ".join(process.cmdline()))
    except psutil.Error:
        return Listener(pid=pid)
