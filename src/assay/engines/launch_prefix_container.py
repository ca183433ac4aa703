"""A server in a container of its own, under a name that only Assay gives, removed when it ends."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Sequence
from pathlib import Path, PurePath

from assay.errors import EngineError, UsageError
from assay.process import Child, run_quiet
from assay.process.children import Quiet
from assay.records.launch import LaunchPrefix

NAME = re.compile(r"^assay-[0-9a-f]{16}$")
PROGRAMS = frozenset({"docker", "podman"})
STOP_S = 20
"""What a container's process gets between SIGTERM and SIGKILL."""
PATIENCE_S = STOP_S + 40.0
REMOVAL_S = 10.0
"""`--rm` takes a container away a moment after it has ended."""
POLL_S = 0.1
NEVER_MADE = 125
"""Exit code of `docker run` when the daemon refused. Source: docs.docker.com, reference of `docker container run`."""
FEWEST_PARTS = 3
"""Of a folder that may be mounted because links lead there: `/data/models`, never `/` or `/data`."""


def serving(launch: LaunchPrefix, words: Sequence[str], paths: Sequence[str], variables: Sequence[str]) -> list[str]:
    """`docker run`, attached. The network is the host's, so that the engine's own loopback address is the only one.

    Variables are handed over by name: no value stands in the command.

    Raises:
        UsageError: a path cannot be mounted.
    """
    mounts = [word for path in dict.fromkeys(map(_mounted, paths)) if path for word in ("--mount", _bind(path))]
    named = [word for name in variables for word in ("--env", name)]
    return _run(launch, _new_name(), ["--network", "host", *mounts, *named], words)


def ask(launch: LaunchPrefix, words: Sequence[str], *, timeout_s: float) -> Quiet:
    """Run a short command in a container without a network; one that does not end is removed.

    Raises:
        EngineError: it cannot be run, or does not end in time.
    """
    name = _new_name()
    argv = _run(launch, name, ["--network", "none"], words)
    try:
        return run_quiet(argv, timeout_s=timeout_s)
    except EngineError:
        end(argv[0], name)
        raise


def name_in(argv: Sequence[str]) -> str | None:
    """The container's name in a command of ours; None for every other command."""
    if not argv or PurePath(argv[0]).name not in PROGRAMS or "--name" not in argv:
        return None
    at = list(argv).index("--name") + 1
    return argv[at] if at < len(argv) and NAME.match(argv[at]) else None


def end_behind(client: Child, program: str, name: str) -> None:
    """End the container that a client of ours runs; nothing where the client could not make one."""
    if client.exit_code() != NEVER_MADE:
        end(program, name)


def end(program: str, name: str) -> bool:
    """Stop and remove a container of ours by its name; True when there was one.

    Raises:
        EngineError: it is still there afterwards.
    """
    if not _exists(program, name):
        return False
    run_quiet([program, "stop", "-t", str(STOP_S), name], timeout_s=PATIENCE_S)
    if not _vanishes(program, name):
        run_quiet([program, "rm", "--force", name], timeout_s=PATIENCE_S)
    if not _vanishes(program, name):
        raise EngineError(f"the container {name} cannot be removed", hint=f"{program} rm --force {name}")
    return True


def _run(launch: LaunchPrefix, name: str, fixed: Sequence[str], words: Sequence[str]) -> list[str]:
    """The image's own entry point is put aside: images differ in whether they have one.

    An image that is not here is not fetched: that would take longer than any launch may.
    """
    assert launch.image is not None
    options = [*_gpus(launch), *fixed, *launch.options, "--entrypoint", words[0]]
    return [launch.kind, "run", "--rm", "--name", name, "--pull=never", *options, launch.image, *words[1:]]


def _gpus(launch: LaunchPrefix) -> list[str]:
    """Docker reads the list as a CSV field, hence its quotation marks; podman names devices (CDI)."""
    if launch.gpus is None:
        return []
    if launch.kind == "podman":
        return [word for each in launch.gpus.split(",") for word in ("--device", f"nvidia.com/gpu={each}")]
    return ["--gpus", "all" if launch.gpus == "all" else f'"device={launch.gpus}"']


def _mounted(path: str) -> str | None:
    """What to mount so that a file or folder can be read inside; None for what is no path here (a model's name).

    A folder of links (a hub's cache keeps snapshots as links to blobs) needs the folder that holds both.

    Raises:
        UsageError: that would be too much of the machine.
    """
    place = Path(path)
    if not place.is_absolute() or not place.exists():
        return None
    inside = place.iterdir() if place.is_dir() else (place,)
    whole = os.path.commonpath([str(place), *(str(each.resolve()) for each in inside)])
    if whole != str(place) and len(PurePath(whole).parts) < FEWEST_PARTS:
        raise UsageError(
            f"{path} holds links that lead far away from it: {whole} would have to be mounted",
            hint='mount what they lead to yourself: target.launch.options = ["-v", "/data/blobs:/data/blobs:ro"]',
        )
    return whole


def _bind(path: str) -> str:
    if "," in path or '"' in path:
        raise UsageError(
            f"{path} cannot be mounted: it has a comma or a quotation mark", hint="rename it, or link to it"
        )
    return f"type=bind,source={path},target={path},readonly"


def _vanishes(program: str, name: str) -> bool:
    deadline_s = time.monotonic() + REMOVAL_S
    while there := _exists(program, name):
        if time.monotonic() > deadline_s:
            break
        time.sleep(POLL_S)
    return not there


def _exists(program: str, name: str) -> bool:
    listed = run_quiet([program, "ps", "--all", "--quiet", "--filter", f"name=^{name}$"], timeout_s=PATIENCE_S)
    if listed.exit_code != 0:
        raise EngineError(
            f"{program} does not say whether the container {name} is there: {listed.output.strip()[-300:]}",
            hint=f"{program} ps --all; what is called assay-... was started by Assay",
        )
    return bool(listed.output.strip())


def _new_name() -> str:
    return f"assay-{secrets.token_hex(8)}"
