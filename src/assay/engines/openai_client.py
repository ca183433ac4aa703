"""Requests to a server that somebody else runs: http or https, under a path perhaps, with a key perhaps.

The key is read from the environment when it is needed and kept nowhere. A redirect is not followed: it would take the
key, and the load, elsewhere.
"""

from __future__ import annotations

import http.client
import os
import ssl
from urllib.parse import urlsplit

from assay.engines.http_client import HttpClient
from assay.errors import UsageError

SECURE = "https"
DEFAULT_PORTS = {"http": 80, SECURE: 443}


class OpenAiClient(HttpClient):
    """Like every other client of an engine, but for where it connects to."""

    def __init__(self, url: str, api_key_env: str | None = None) -> None:
        """Remember the address; asks nothing yet."""
        parts = urlsplit(base_url(url))
        self.host = parts.hostname or ""
        self.prefix = parts.path.rstrip("/")
        self._secure, self._api_key_env = parts.scheme == SECURE, api_key_env
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        super().__init__(port, f"is {url} up? it is not Assay's to start", lambda _: None)

    def connection(self, timeout_s: float) -> http.client.HTTPConnection:
        """Not open yet; a certificate has to be one that this machine trusts."""
        if not self._secure:
            return super().connection(timeout_s)
        trusted = ssl.create_default_context()
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s, context=trusted)

    def headers(self) -> dict[str, str]:
        """With the key, where there is one.

        Raises:
            UsageError: the variable that holds it is not set.
        """
        headers = super().headers()
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
