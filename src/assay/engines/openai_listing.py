"""What an OpenAI-compatible server lists: its models, and what it says of its version."""

from __future__ import annotations

from typing import Any

from assay.engines.openai_client import OpenAiClient
from assay.errors import EngineError, MeasurementError, UsageError

LIST_TIMEOUT_S = 10.0
MODELS_SHOWN = 10


def served(client: OpenAiClient, url: str, wanted: str | None) -> str:
    """The model to measure: the wanted one, else the only one, whatever further names and adapters it has.

    Raises:
        EngineError: nobody answers, or no OpenAI-compatible server does.
        UsageError: it is not served, or several are and none was named.
    """
    entries = listed(client)
    names = [str(entry["id"]) for entry in entries]
    shown = ", ".join(names[:MODELS_SHOWN])
    if wanted is not None:
        if wanted not in names:
            raise UsageError(f"{url} does not serve {wanted!r}", hint=f"it serves: {shown}")
        return wanted
    bases = [entry for entry in entries if not entry.get("parent")] or entries
    if len({entry.get("root") or entry["id"] for entry in bases}) > 1:
        raise UsageError(
            f"{url} serves {len(bases)} models", hint=f"name one as target.model, or with --model: {shown}"
        )
    return str(bases[0]["id"])


def listed(client: OpenAiClient) -> list[dict[str, Any]]:
    """The entries of `/v1/models`.

    Raises:
        EngineError: there are none.
    """
    try:
        answer = client.get("/v1/models", timeout_s=LIST_TIMEOUT_S)
    except MeasurementError as error:
        raise EngineError(error.message, hint=error.hint) from error
    data = answer.get("data") if isinstance(answer, dict) else None
    entries = [one for one in data if isinstance(one, dict) and one.get("id")] if isinstance(data, list) else []
    if not entries:
        raise EngineError(
            f"{client.host}:{client.port}/v1/models names no model", hint="is it an OpenAI-compatible server?"
        )
    return entries


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
