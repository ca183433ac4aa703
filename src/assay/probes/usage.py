"""Who used the processors between two moments: us and our server, somebody else, or the hypervisor."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import psutil

ProcessKey = tuple[int, float]
"""Process id and start time: an id alone can be reused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """CPU seconds spent until one moment."""

    at_s: float
    """Monotonic clock."""
    at_epoch_s: float
    """Wall clock: comparable with the start times of processes."""
    busy_s: float
    """All processes of the machine."""
    steal_s: float | None
    """Time a hypervisor gave to others; None where the system does not say."""
    total_s: float
    """Busy, idle and stolen, over all cores."""
    ours_s: float
    """This process and everything it started, dead children included."""
    server_s: dict[ProcessKey, float]
    """A server's tree, by process, where that tree is not ours already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What happened between two moments; None where it cannot be known."""

    foreign_cpu_cores: float | None
    steal_share: float | None


def read_usage(server_pid: int | None) -> Usage:
    """Read the counters now."""
    times = psutil.cpu_times()
    steal_s = getattr(times, "steal", None)
    # User time already contains guest time.
    busy_s = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
    ours, ours_s = _own_tree()
    return Usage(
        at_s=time.monotonic(),
        at_epoch_s=time.time(),
        busy_s=busy_s,
        steal_s=steal_s,
        total_s=busy_s + times.idle + getattr(times, "iowait", 0.0) + (steal_s or 0.0),
        ours_s=ours_s,
        server_s={} if server_pid is None or server_pid in ours else _tree(server_pid, ours),
    )


def shares(before: Usage | None, now: Usage) -> Shares:
    """Foreign CPU in cores, and the stolen share of all CPU time, since an earlier moment."""
    if before is None or now.at_s <= before.at_s:
        return Shares(foreign_cpu_cores=None, steal_share=None)
    foreign_s = now.busy_s - before.busy_s - (now.ours_s - before.ours_s) - _server_delta_s(before, now)
    total_s = now.total_s - before.total_s
    known = now.steal_s is not None and before.steal_s is not None and total_s > 0
    return Shares(
        # Counters tick in hundredths of a second, so that nothing can come out slightly negative.
        foreign_cpu_cores=max(0.0, foreign_s / (now.at_s - before.at_s)),
        steal_share=max(0.0, (now.steal_s or 0.0) - (before.steal_s or 0.0)) / total_s if known else None,
    )


def _server_delta_s(before: Usage, now: Usage) -> float:
    """What the server's processes used since; one seen for the first time counts if it started since."""
    delta_s = 0.0
    for key, spent_s in now.server_s.items():
        started_since = key[1] >= before.at_epoch_s
        delta_s += spent_s - before.server_s.get(key, 0.0 if started_since else spent_s)
    return delta_s


def _own_tree() -> tuple[set[int], float]:
    """Ids of our live processes, and all CPU time of ours.

    A process's time moves to its parent's `children_*` counters when it is reaped, so the sum never loses a server
    that was stopped between two moments.
    """
    own = psutil.Process()
    processes = [own, *own.children(recursive=True)]
    return {process.pid for process in processes}, sum(_spent_s(process) or 0.0 for process in processes)


def _tree(pid: int, but_not: set[int]) -> dict[ProcessKey, float]:
    try:
        root = psutil.Process(pid)
        processes = [root, *root.children(recursive=True)]
        kept = [process for process in processes if process.pid not in but_not]
        keyed = {(process.pid, process.create_time()): _spent_s(process) for process in kept}
    except psutil.Error:  # it ended while it was looked at
        return {}
    return {key: spent_s for key, spent_s in keyed.items() if spent_s is not None}


def _spent_s(process: psutil.Process) -> float | None:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return None
    reaped_s = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return float(times.user + times.system + reaped_s)


def load_1m() -> float | None:
    """Runnable processes, averaged over a minute; None where the system does not say."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None
