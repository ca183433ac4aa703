"""`docker run [options] IMAGE [command]`, taken apart."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

_PROGRAMS = frozenset({"docker", "podman", "nerdctl"})
_BARE = frozenset(
    {"--detach", "--interactive", "--tty", "--rm", "--privileged", "--init", "--publish-all", "--read-only", "--quiet"}
    | {"--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--replace", "--no-hosts", "--disable-content-trust"}
)
"""Options of `run` without a value. Source: docs.docker.com, reference of `docker container run`."""
_BARE_LETTERS = frozenset("ditPq")
_BEFORE_RUN = 4
"""Words within which `run` follows: `docker --context x run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What is started in which image."""

    image: str
    command: list[str]
    """An entrypoint that was given stands first."""
    variables: list[str]
    """`NAME=value`, as handed to `-e`."""
    wrapper: list[str]
    has_entrypoint: bool
    """One was given: the image's own is not used."""


def unpack(words: Sequence[str]) -> Container | None:
    """The container that a command runs; None when it runs none."""
    start = next((i for i, word in enumerate(words) if PurePath(word).name in _PROGRAMS), None)
    if start is None or "run" not in words[start : start + _BEFORE_RUN]:
        return None
    begin = list(words).index("run", start) + 1
    variables: list[str] = []
    entrypoint: str | None = None
    at = begin
    while at < len(words) and words[at].startswith("-"):
        name, joined, value = words[at].partition("=")
        if not joined and not _is_bare(name):
            at += 1
            value = words[at] if at < len(words) else ""
        if name in {"-e", "--env"}:
            variables.append(value)
        entrypoint = value if name == "--entrypoint" else entrypoint
        at += 1
    if at >= len(words):
        return None
    return Container(
        image=words[at],
        command=[*_split(entrypoint or ""), *words[at + 1 :]],
        variables=variables,
        wrapper=list(words[:begin]),
        has_entrypoint=entrypoint is not None,
    )


def _is_bare(name: str) -> bool:
    return name in _BARE or (not name.startswith("--") and set(name[1:]) <= _BARE_LETTERS)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an open quotation: the text is one word
        return [text]
