"""One server, asked over plain HTTP on loopback: every answer is JSON, or an error that says what came instead."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any

from assay.errors import MeasurementError

REQUEST_TIMEOUT_S = 60.0
HEALTH_TIMEOUT_S = 2.0
NOT_SERVED = frozenset(
    {http.client.NOT_FOUND, http.client.METHOD_NOT_ALLOWED, http.client.NOT_IMPLEMENTED, http.client.FORBIDDEN}
)
"""How a server without an endpoint, or one that was told to close it, answers."""
SHOWN = 300


class HttpClient:
    """Requests to one server; a new connection each, since a server that dies is part of what is tested."""

    host = "127.0.0.1"
    prefix = ""
    """Of every path."""

    def __init__(self, port: int, hint: str, broken: Callable[[Exception], None]) -> None:
        """Remember the address; asks nothing yet.

        Args:
            port: of the server.
            hint: what to do when it answers otherwise than it should.
            broken: called when a connection broke, before `MeasurementError` is raised; may raise what it knows better.
        """
        self.port, self._hint, self._broken = port, hint, broken

    def connection(self, timeout_s: float) -> http.client.HTTPConnection:
        """Not open yet."""
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)

    def headers(self) -> dict[str, str]:
        """Of every request but `is_ok`'s."""
        return {"content-type": "application/json"}

    def is_ok(self, path: str) -> bool:
        """Whether the path answers 200 at once; never raises."""
        connection = self.connection(HEALTH_TIMEOUT_S)
        try:
            connection.request("GET", self.prefix + path)
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def get(self, path: str, absent: Any = None, *, timeout_s: float = REQUEST_TIMEOUT_S) -> Any:
        """Parsed JSON; `absent` where the server does not serve the path and `absent` is not None.

        Raises:
            MeasurementError: no answer, an error, or no JSON.
        """
        status, content = self.exchange("GET", path, None, timeout_s=timeout_s)
        if absent is not None and status in NOT_SERVED:
            return absent
        return self._parsed(f"GET {path}", status, content)

    def post(self, path: str, body: dict[str, Any], *, timeout_s: float = REQUEST_TIMEOUT_S) -> Any:
        """Parsed JSON.

        Raises:
            MeasurementError: no answer, an error, or no JSON.
        """
        status, content = self.exchange("POST", path, json.dumps(body), timeout_s=timeout_s)
        return self._parsed(f"POST {path}", status, content)

    def text(self, path: str) -> str:
        """Plain text; empty where the server does not serve the path.

        Raises:
            MeasurementError: no answer, or an error.
        """
        status, content = self.exchange("GET", path, None)
        return "" if status in NOT_SERVED else self._checked(f"GET {path}", status, content).decode(errors="replace")

    def act(self, path: str, *, timeout_s: float = REQUEST_TIMEOUT_S) -> bool:
        """POST without a body, for endpoints that do something; False where the server does not serve the path.

        Raises:
            MeasurementError: no answer, or an error.
        """
        status, content = self.exchange("POST", path, None, timeout_s=timeout_s)
        if status in NOT_SERVED:
            return False
        self._checked(f"POST {path}", status, content)
        return True

    def exchange(
        self, method: str, path: str, body: str | None, *, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> tuple[int, bytes]:
        """Status and body of one request, whatever they are.

        Raises:
            MeasurementError: the connection broke, or nothing came in time.
        """
        connection = self.connection(timeout_s)
        try:
            connection.request(method, self.prefix + path, body, self.headers())
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._broken(error)
            where = f"{self.host}:{self.port}{self.prefix}{path}"
            raise MeasurementError(f"{method} {where}: {error}", hint=self._hint) from error
        finally:
            connection.close()

    def _parsed(self, request: str, status: int, content: bytes) -> Any:
        try:
            return json.loads(self._checked(request, status, content))
        except ValueError as error:
            raise MeasurementError(f"{request}: not JSON: {content[:SHOWN]!r}", hint=self._hint) from error

    def _checked(self, request: str, status: int, content: bytes) -> bytes:
        if status != http.client.OK:
            raise MeasurementError(f"{request}: HTTP {status}: {content[:SHOWN]!r}", hint=self._hint)
        return content
