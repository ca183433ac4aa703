"""Requests to a server that somebody else runs: http or https, under a path perhaps, with a key perhaps.

The key is read from the environment when it is needed and kept nowhere. A redirect is not followed: it would take the
key, and the load, elsewhere.
"""

from __future__ import annotations

import http.client
import os
import ssl
from urllib.parse import urlsplit

from assay.engines.http_client import HEALTH_TIMEOUT_S, REQUEST_TIMEOUT_S, HttpClient
from assay.errors import MeasurementError, UsageError

SECURE = "https"
DEFAULT_PORTS = {"http": 80, SECURE: 443}


class OpenAiClient(HttpClient):
    """Like every other client of an engine, but for where it connects to."""

    def __init__(self, url: str, api_key_env: str | None = None) -> None:
        """Remember the address; asks nothing yet."""
        parts = urlsplit(base_url(url))
        self.host = parts.hostname or ""
        self.port = parts.port or DEFAULT_PORTS[parts.scheme]
        self._secure, self._path, self._api_key_env = parts.scheme == SECURE, parts.path.rstrip("/"), api_key_env
        super().__init__(self.port, f"is {url} up? it is not Assay's to start", lambda _: None, host=self.host)

    def is_ok(self, path: str) -> bool:
        """Whether the path answers 200 at once; never raises."""
        try:
            return self.exchange("GET", path, None, timeout_s=HEALTH_TIMEOUT_S)[0] == http.client.OK
        except MeasurementError:
            return False

    def exchange(
        self, method: str, path: str, body: str | None, *, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> tuple[int, bytes]:
        """Status and body of one request, whatever they are.

        Raises:
            MeasurementError: the connection broke, or nothing came in time.
            UsageError: the variable that holds the key is not set.
        """
        connection = self._connection(timeout_s)
        try:
            connection.request(method, self._path + path, body, self._headers())
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise MeasurementError(f"{method} {self.host}:{self.port}{path}: {error}", hint=self._hint) from error
        finally:
            connection.close()

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        if not self._secure:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
        trusted = ssl.create_default_context()
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s, context=trusted)

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json"}
        if self._api_key_env is None:
            return headers
        key = os.environ.get(self._api_key_env, "")
        if not key or not key.isprintable():
            raise UsageError(
                f"the environment variable {self._api_key_env} holds no usable API key",
                hint=f"export {self._api_key_env}=... first, or remove target.api_key_env",
            )
        return {**headers, "authorization": f"Bearer {key}"}


def base_url(url: str) -> str:
    """The address without `/v1` and what follows it."""
    base = url.rstrip("/")
    for end in ("/chat/completions", "/completions", "/v1"):
        base = base.removesuffix(end)
    return base
