"""vLLM's flags as words of a command: which are Assay's own, and JSON values that are given in parts."""

from __future__ import annotations

import json
from typing import Any

from assay.engines import declared_flags
from assay.errors import UsageError
from assay.records.base import Flags, FlagValue
from assay.records.machine import EngineBuild

OWNED = frozenset(
    {
        "--model", "--model-tag", "--host", "--port", "--uds", "--served-model-name", "--api-key", "--ssl-keyfile",
        "--ssl-certfile", "--ssl-ca-certs", "--root-path", "--config", "--headless", "--grpc", "--log-config-file",
        "-h", "--help", "-v", "--version",
    }
)  # fmt: skip
"""Flags that Assay sets itself, or that would keep it from talking to the server, reading its log, or knowing its flags
(a configuration file holds flags that no record would show)."""


def rendered(build: EngineBuild, flags: Flags) -> list[str]:
    """The flags as words. A JSON flag given whole and in parts becomes one: vLLM would take the parts alone.

    Raises:
        UsageError: the whole is no JSON object, and parts are to go into it.
    """
    return declared_flags.rendered(build, joined(declared_flags.canonical(build, flags)))


def joined(flags: Flags) -> Flags:
    """Parts (`--flag.a.b`) put into the JSON of their whole (`--flag`), where both are given."""
    found: Flags = {}
    for name, value in flags.items():
        whole, dot, path = name.partition(".")
        if not dot or whole not in flags:
            found.setdefault(name, value)
            continue
        content = _object(whole, found.get(whole, flags[whole]))
        _put(content, path.split("."), value)
        found[whole] = json.dumps(content)
    return found


def _object(name: str, text: FlagValue) -> dict[str, Any]:
    try:
        content = json.loads(str(text))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise UsageError(f"{name} = {text!r} is no JSON object", hint=f"write it key by key: {name}.key = value")
    return content


def _put(content: dict[str, Any], path: list[str], value: FlagValue) -> None:
    for key in path[:-1]:
        inner = content.setdefault(key, {})
        if not isinstance(inner, dict):
            inner = content[key] = {}
        content = inner
    content[path[-1]] = _parsed(value)


def _parsed(value: FlagValue) -> Any:
    """Text that is JSON is meant as such, as vLLM takes it."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
