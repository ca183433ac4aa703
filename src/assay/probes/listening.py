"""Who listens on this machine, and where it can be asked without leaving the machine."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import psutil

_OTHER_PROTOCOLS = frozenset({2379, 2380, 3306, 3389, 4369, 5432, 5672, 5900, 6379, 9092, 11211, 27017})
"""Databases, queues and desktops by their registered ports: an HTTP request would only trouble their logs."""
_FIRST_UNPRIVILEGED = 1024
_HTTP = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A listening socket."""

    port: int
    host: str | None
    """A loopback address to ask it at; None when it listens on other addresses only."""
    pid: int | None

    @property
    def is_other_protocol(self) -> bool:
        """Whether its port belongs to something that does not speak HTTP, as far as numbers tell."""
        return self.port in _OTHER_PROTOCOLS or (self.port < _FIRST_UNPRIVILEGED and self.port != _HTTP)


def listeners(but_not: Collection[int]) -> list[Listener]:
    """Every port with a listener once; `but_not` are processes to leave out."""
    found: dict[int, Listener] = {}
    for connection in _connections():
        if connection.status != psutil.CONN_LISTEN or not connection.laddr or connection.pid in but_not:
            continue
        listener = Listener(
            port=connection.laddr.port, host=loopback_of(connection.laddr.ip), pid=connection.pid or None
        )
        known = found.get(listener.port)
        if known is None or (known.host is None and listener.host):
            found[listener.port] = listener
    return [found[port] for port in sorted(found)]


def loopback_of(address: str) -> str | None:
    """Where to ask a socket bound to this address: loopback, or not at all.

    >>> loopback_of("0.0.0.0"), loopback_of("::"), loopback_of("127.0.0.1"), loopback_of("10.0.0.7")
    ('127.0.0.1', '::1', '127.0.0.1', None)
    """
    parsed = ip_address(address.partition("%")[0])
    if parsed.is_unspecified:
        return "127.0.0.1" if parsed.version == 4 else "::1"  # noqa: PLR2004 - IP version 4
    return address if parsed.is_loopback else None


def _connections() -> list[Any]:
    try:
        return psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):  # macOS shows them to root only
        return []
