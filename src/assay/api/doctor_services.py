"""A container as a file of Compose or Kubernetes describes it, taken for the `docker run` that starts the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.errors import UsageError

_IMAGE = re.compile(r"^[ \t]*(?:-[ \t]+)?image[ \t]*:[ \t]*\S", re.MULTILINE)
_LONGEST_BITS = 64
"""Of a whole number that is written out: Python refuses to write one of thousands of digits."""
_MOST = 50
"""Containers of one file that are looked at."""


def as_command(words: Sequence[str], engine: str | None) -> Sequence[str]:
    """The words of the first container that starts an engine; the same words where they are no such file."""
    if len(words) != 1 or not _IMAGE.search(words[0]):
        return words
    import yaml

    from assay.flags.command import parse

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        contents = list(yaml.load_all(words[0], loader))
    except (yaml.YAMLError, ValueError, RecursionError):
        return words
    for number, container in enumerate(_containers(contents)):
        command = _command(container)
        try:
            parse(command, engine)
        except UsageError:
            if number < _MOST:
                continue
            break
        return command
    return words


def _containers(content: Any) -> Iterator[Mapping[str, Any]]:
    """Every mapping with an image and words for it, each once: aliases of YAML repeat one without end."""
    left, seen = [content], set[int]()
    for one in left:  # grows while it is read
        if id(one) in seen or not isinstance(one, dict | list):
            continue
        seen.add(id(one))
        if isinstance(one, dict) and isinstance(one.get("image"), str) and ("command" in one or "args" in one):
            yield one
        left += list(one.values()) if isinstance(one, dict) else one


def _command(container: Mapping[str, Any]) -> list[str]:
    """Compose says `entrypoint` and `command`, Kubernetes `command` and `args`."""
    inside = [word for key in ("entrypoint", "command", "args") for word in _words(container.get(key))]
    variables = {**_variables(container.get("environment")), **_variables(container.get("env"))}
    given = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
    return ["docker", "run", *given, str(container["image"]), *inside]


def _words(value: Any) -> list[str]:
    from assay.flags.shell_words import shell_words

    if isinstance(value, list):
        return [str(word) for word in value if _is_plain(word)]
    try:
        return [word for word in shell_words(value) if word.strip()] if isinstance(value, str) else []
    except UsageError:
        return []


def _variables(value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return {str(name): str(item) for name, item in value.items() if _is_plain(name) and _is_plain(item)}
    rows = value if isinstance(value, list) else []
    pairs = [str(row).partition("=") for row in rows if isinstance(row, str)]
    named = {
        row["name"]: str(row["value"])
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("name"), str) and _is_plain(row.get("value"))
    }
    return {name: item for name, joined, item in pairs if joined} | named


def _is_plain(value: Any) -> bool:
    """Whether it is written out: a list of lists of aliases would grow without end."""
    return isinstance(value, str | float) or (isinstance(value, int) and value.bit_length() <= _LONGEST_BITS)
