"""What an OpenAI-compatible server lists: its models, and what it says of its version."""

from __future__ import annotations

from typing import Any

from assay.engines.openai_client import OpenAiClient
from assay.errors import EngineError, MeasurementError
from assay.records.listing import chosen, entries

LIST_TIMEOUT_S = 10.0


def served(client: OpenAiClient, url: str, wanted: str | None) -> str:
    """The model to measure, by `assay.records.listing.chosen`.

    Raises:
        EngineError: nobody answers, or no OpenAI-compatible server does.
        UsageError: it is not served, or several are and none was named.
    """
    return str(chosen(listed(client), url, wanted)["id"])


def listed(client: OpenAiClient) -> list[dict[str, Any]]:
    """The entries of `/v1/models`.

    Raises:
        EngineError: there are none.
    """
    try:
        answer = client.get("/v1/models", timeout_s=LIST_TIMEOUT_S)
    except MeasurementError as error:
        raise EngineError(error.message, hint=error.hint) from error
    found = entries(answer)
    if not found:
        raise EngineError(
            f"{client.host}:{client.port}/v1/models names no model", hint="is it an OpenAI-compatible server?"
        )
    return found


def version_of(client: OpenAiClient) -> str | None:
    """What it says its version is, where it says so."""
    for path, key in (("/version", "version"), ("/server_info", "version"), ("/props", "build_info")):
        if version := optional(client, path).get(key):
            return str(version)
    return None


def optional(client: OpenAiClient, path: str) -> dict[str, Any]:
    """A JSON object, or nothing."""
    try:
        answer = client.get(path, absent={}, timeout_s=LIST_TIMEOUT_S)
    except MeasurementError:
        return {}
    return answer if isinstance(answer, dict) else {}
