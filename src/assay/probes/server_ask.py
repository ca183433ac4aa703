"""One small HTTP request to a server on this machine, with a deadline for the whole of it.

Written on a socket: libraries take proxies from the environment, follow redirects, and bound each read but not all of
them together.
"""

from __future__ import annotations

import io
import json
import socket
import time
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any, cast

_MOST_BYTES = 1 << 20
_OK = 200
_UNAUTHORIZED = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    document: Any
    """The JSON body; None when it is none."""

    @property
    def ok(self) -> bool:
        """Whether it is a JSON document that was asked for."""
        return self.status == _OK and self.document is not None

    @property
    def wants_key(self) -> bool:
        """Whether the server only answers those who have a key."""
        return self.status in _UNAUTHORIZED


def ask(host: str, port: int, path: str, *, until_s: float) -> Answer | None:
    """GET a path; None when nobody answers by then (on the monotonic clock), or not in HTTP."""
    try:
        return _parse(_exchange(host, port, path, until_s))
    except (OSError, HTTPException, ValueError):
        return None


def _exchange(host: str, port: int, path: str, until_s: float) -> bytes:
    """All bytes that come before the other side closes, the deadline, or the limit."""
    named = f"[{host}]" if ":" in host else host
    request = f"GET {path} HTTP/1.1\r\nHost: {named}:{port}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    received = bytearray()
    with socket.create_connection((host, port), timeout=_left_s(until_s)) as connection:
        connection.sendall(request.encode())
        while len(received) < _MOST_BYTES:
            connection.settimeout(_left_s(until_s))
            try:
                chunk = connection.recv(1 << 16)
            except TimeoutError:  # some keep the connection open: what came may be whole
                break
            if not chunk:
                break
            received += chunk
    return bytes(received)


def _left_s(until_s: float) -> float:
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _parse(received: bytes) -> Answer:
    response = HTTPResponse(cast("socket.socket", _Received(received)), method="GET")
    response.begin()
    body = response.read()
    try:
        return Answer(response.status, json.loads(body))
    except ValueError:
        return Answer(response.status, None)


class _Received:
    """Bytes that came already, in place of the socket that `HTTPResponse` reads from."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)
