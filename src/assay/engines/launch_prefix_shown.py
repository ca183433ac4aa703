"""A launch command as a person would type it: without what Assay adds to find the server again and to end it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from assay.engines import launch_prefix_container as container
from assay.engines import launch_prefix_ssh as ssh
from assay.process.guardian import VARIABLE


@dataclass(frozen=True, slots=True)
class Typed:
    """Words, and the variables to set for them here."""

    argv: list[str]
    env: dict[str, str]


def typed(argv: Sequence[str], env: Mapping[str, str]) -> Typed:
    """The command without Assay's own parts.

    - Behind ssh the server is started there by a program that Assay sends along (`launch_prefix_remote`): it is left
      out, and the variables that it would set there stand before the engine's command, as `env NAME=value`.
    - A container has no name, and is handed no marker of Assay's.

    Args:
        argv: as `launch_prefix.serving` made it, or a plain one, which stays as it is.
        env: variables of the server; what is to be shown must be masked already.
    """
    if ssh.is_ours(argv):
        return Typed([*_remote(list(argv), env)], {})
    if name := container.name_in(argv):
        return Typed(_unnamed(list(argv), name), dict(env))
    return Typed(list(argv), dict(env))


def _remote(argv: list[str], env: Mapping[str, str]) -> list[str]:
    """The connection with its forward and the user's options, then the engine's own words.

    ssh gives what follows the host to a shell: every word stays quoted for that one.
    """
    at = argv.index("--")
    options, host, there = argv[1:at], argv[at + 1], argv[at + 2 :]
    settings = ["env", *(shlex.quote(f"{name}={value}") for name, value in env.items())] if env else []
    return ["ssh", *_without_ours(options), host, *settings, *there[len(ssh.starter()) :]]


def _without_ours(options: list[str]) -> list[str]:
    """Of ssh's options those that a person needs: the forward, and what the spec adds."""
    rest = options[len(ssh.FIXED) :]
    at = rest.index(ssh.FORWARD)
    return [*rest[: at - 1], *rest[at + 1 :]]


def _unnamed(argv: list[str], name: str) -> list[str]:
    for flag, value in (("--name", name), ("--env", VARIABLE)):
        at = next((number for number, pair in enumerate(pairwise(argv)) if pair == (flag, value)), None)
        if at is not None:
            argv = [*argv[:at], *argv[at + 2 :]]
    return argv
