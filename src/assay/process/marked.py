"""Processes that carry our marker: found by an environment variable that only we set, never by name."""

from __future__ import annotations

from pathlib import Path

import psutil

from assay.process.children import is_ours
from assay.records.run import ServerIdentity

GRACE_S = 3.0
"""How long a marked process may take to end on SIGTERM before it is killed."""


def find_marked(variable: str, value: str) -> list[psutil.Process]:
    """Live processes of this user whose environment holds `variable=value`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(variable) == value:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue  # gone meanwhile, or somebody else's: not ours either way
    return found


def find_alive(identity: ServerIdentity | None, variable: str, value: str) -> list[int]:
    """Pids of what is alive of a recorded server, and of what carries a marker; nothing is ended."""
    recorded = {identity.pid} if identity is not None and is_ours(identity.pid, identity.create_time) else set()
    return sorted(recorded | {process.pid for process in find_marked(variable, value)})


def has_open(pid: int, file: Path) -> bool:
    """Whether a process has this very file open, not a copy of it; False where that cannot be seen."""
    try:
        return any(file.samefile(one.path) for one in psutil.Process(pid).open_files() if Path(one.path).exists())
    except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
        return False


def end_marked(variable: str, value: str) -> int:
    """End every marked process, politely first.

    Returns:
        How many were alive.
    """
    marked = find_marked(variable, value)
    for process in marked:
        _signal(process.terminate)
    _, alive = psutil.wait_procs(marked, timeout=GRACE_S)
    for process in alive:
        _signal(process.kill)
    psutil.wait_procs(alive, timeout=GRACE_S)
    return len(marked)


def _signal(send: object) -> None:
    try:
        send()  # type: ignore[operator]  # a bound method of psutil.Process
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return
