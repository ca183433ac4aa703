"""The models that an OpenAI-compatible server lists, and which of them is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.errors import UsageError

SHOWN = 10
"""Names that one message can hold."""
Entry = Mapping[str, Any]
"""One of `/v1/models`: `id`; where the server says so, `parent` (an adapter's base) and `root` (of all its names)."""


def entries(answer: Any) -> list[dict[str, Any]]:
    """Those of an answer of `/v1/models` that name a model; none where it is no such answer."""
    data = answer.get("data") if isinstance(answer, Mapping) else None
    return [one for one in data if isinstance(one, dict) and one.get("id")] if isinstance(data, list) else []


def chosen(listed: list[dict[str, Any]], url: str, wanted: str | None) -> dict[str, Any]:
    """The entry of the model to measure: the wanted one, else the only one, whatever further names and adapters it has.

    vLLM and SGLang list an adapter with its base as `parent`, and vLLM every name of one model with one `root`.

    Args:
        listed: at least one.
        url: of the server, for messages.
        wanted: as it is served; None: none was named.

    Raises:
        UsageError: it is not served; or several are and none was named: which one is measured must not depend on the
            order of a list.
    """
    if wanted is not None:
        found = next((entry for entry in listed if entry["id"] == wanted), None)
        if found is None:
            raise UsageError(f"{url} does not serve {wanted!r}", hint=f"it serves: {_names(listed)}")
        return found
    bases = [entry for entry in listed if not entry.get("parent")] or listed
    if len({str(entry.get("root") or entry["id"]) for entry in bases}) > 1:
        hint = f"name one as target.model in assay.toml, or with --model: {_names(listed)}"
        raise UsageError(f"{url} serves {len(bases)} models, and none was named", hint=hint)
    return bases[0]


def note(listed: list[dict[str, Any]], entry: Entry) -> str | None:
    """That a server has its model under further names, where none was named; None where there is only one."""
    others = [one for one in listed if one is not entry]
    if not others:
        return None
    told = f"{others[0]['id']} is" if len(others) == 1 else f"{_names(others)} are"
    what = "another name or an adapter" if len(others) == 1 else "other names or adapters"
    return f"no model was named: {entry['id']} was taken; {told} {what} of it on this server"


def _names(listed: list[dict[str, Any]]) -> str:
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(str(entry["id"]) for entry in listed[:SHOWN]) + more
