"""`docker compose -f FILE up SERVICE` and `kubectl apply -f FILE`: which files and services a command names."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from assay.errors import UsageError

_COMPOSE = frozenset({"docker-compose", "podman-compose"})
_WITH_COMPOSE = frozenset({"docker", "podman", "nerdctl"})
_KUBERNETES = frozenset({"kubectl", "oc"})
_VERBS = frozenset({"up", "create", "start", "restart", "run", "config"})
_APPLY = frozenset({"apply", "create", "replace"})
_FILE = frozenset({"-f", "--file", "--filename"})
_VALUED = frozenset(
    {"-p", "--project-name", "--project-directory", "--env-file", "--profile", "--ansi", "--progress", "--parallel"}
    | {"--scale", "--timeout", "-t", "--pull", "--exit-code-from", "--attach", "--no-attach", "--wait-timeout"}
    | {"-e", "--env", "-n", "--namespace", "--context", "-v", "--volume", "--user", "-u", "--name", "--entrypoint"}
)
"""Options whose value is a word of its own. Source: docs.docker.com, reference of `docker compose` and its commands."""
_DEFAULTS = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
"""Sought in this order. Source: docs.docker.com, how Compose works."""
_JOINED = frozenset({"environment", "labels"})
"""Of a service: mappings that a later file adds to; what else it says replaces what an earlier one said."""
_PUNCTUATION = frozenset({"&&", "||", ";", "|", "&", "\n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What such a command starts."""

    names: Sequence[str]
    """Files, as they were written; later ones of Compose override earlier ones."""
    services: Sequence[str] = field(default_factory=tuple)
    """None are named: all."""


def files_of(words: Sequence[str]) -> Files | None:
    """The files that a command of Compose or Kubernetes reads; None: it is no such command.

    Raises:
        UsageError: it names none, and none of the usual names is here.
    """
    for at, word in enumerate(words):
        program, following = PurePath(word).name, words[at + 1 : at + 2]
        rest = list(itertools.takewhile(lambda each: each not in _PUNCTUATION, words[at + 1 :]))
        if program in _COMPOSE:
            return _compose(rest)
        if program in _WITH_COMPOSE:
            return _compose(rest[1:]) if following == ["compose"] else None
        if program in _KUBERNETES:
            names, plain = _parted(rest)
            return Files(names=names) if names and not _APPLY.isdisjoint(plain[:1]) else None
    return None


def merged(contents: Sequence[Any], services: Sequence[str]) -> Any:
    """The services of several files of Compose as one; of these the ones that are named."""
    found: dict[str, Any] = {}
    for content in contents:
        of_file = content.get("services") if isinstance(content, Mapping) else None
        for name, said in of_file.items() if isinstance(of_file, Mapping) else ():
            before = found.get(str(name), {})
            if isinstance(said, Mapping):
                found[str(name)] = {**before, **said, **_added(before, said)}
    return [one for name, one in found.items() if name in services or not services]


def _added(before: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    both = [key for key in _JOINED if isinstance(before.get(key), Mapping) and isinstance(said.get(key), Mapping)]
    return {key: {**before[key], **said[key]} for key in both}


def _compose(words: Sequence[str]) -> Files | None:
    names, plain = _parted(words)
    verb, services = (plain[0], plain[1:]) if plain else ("up", [])
    if verb not in _VERBS:
        return None
    names = names or [name for name in _DEFAULTS if Path(name).is_file()][:1]
    if not names:
        raise UsageError(
            f"none of {', '.join(_DEFAULTS)} is in this folder",
            hint="name the file: assay doctor -- docker compose -f FILE up",
        )
    return Files(names=names, services=services[:1] if verb == "run" else services)


def _parted(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The values of `-f`, and the words that are no options and no values of one."""
    names, plain, at = [], [], 0
    while at < len(words):
        name, joined, value = words[at].partition("=")
        at += 1
        if not name.startswith("-"):
            plain.append(words[at - 1])
            continue
        if not joined and name in _FILE | _VALUED and at < len(words):
            value = words[at]
            at += 1
        if name in _FILE and value:
            names.append(value)
    return names, plain
