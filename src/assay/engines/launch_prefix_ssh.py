"""A server on another machine, over one ssh connection that is also its lifeline.

There the server is the child of a small program (`launch_prefix_remote`), which takes the environment from its standard
input and ends the server's whole session when that input ends: when Assay stops it, dies, or the connection breaks.
The variables' values therefore stand in no command.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from assay.engines import launch_prefix_remote
from assay.errors import UsageError
from assay.records.launch import LaunchPrefix

FIXED = ("-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
"""No terminal, no questions; a connection that is dead for a minute is given up."""
FORWARD = "ExitOnForwardFailure=yes"
LOOPBACK = "127.0.0.1"


def short(launch: LaunchPrefix, words: Sequence[str]) -> list[str]:
    """A command that runs to its end."""
    return ["ssh", *FIXED, *launch.options, "--", _host(launch), *map(shlex.quote, words)]


def serving(launch: LaunchPrefix, words: Sequence[str], port: int) -> list[str]:
    """A server, its loopback port there forwarded to the same loopback port here.

    ssh joins what follows the host with spaces and hands it to the other side's shell: each word is quoted for it.
    """
    there = [*starter(), *words]
    forward = ["-o", FORWARD, "-L", f"{LOOPBACK}:{port}:{LOOPBACK}:{port}"]
    return ["ssh", *FIXED, *forward, *launch.options, "--", _host(launch), *map(shlex.quote, there)]


def is_ours(argv: Sequence[str]) -> bool:
    """Whether a command is one that `serving` made."""
    return bool(argv) and PurePath(argv[0]).name == "ssh" and FORWARD in argv


def greeting(env: Mapping[str, str]) -> bytes:
    """What the program over there is told first: the environment, as one line."""
    return json.dumps(dict(env)).encode() + b"\n"


def refuse_files(files: Sequence[str]) -> None:
    """Raise `UsageError` where a command names files that are here and not there."""
    if files:
        raise UsageError(
            f"{', '.join(files)}: this file is on this machine, the server would be on another",
            hint="put the options into a file over there and name it in target.flags",
        )


def starter() -> list[str]:
    """What stands before the engine's own words over there."""
    return ["python3", "-c", supervisor()]


def supervisor() -> str:
    """The text of `launch_prefix_remote`: Assay need not be installed on the other side."""
    return Path(launch_prefix_remote.__file__).read_text(encoding="utf-8")


def _host(launch: LaunchPrefix) -> str:
    assert launch.host is not None
    return launch.host
