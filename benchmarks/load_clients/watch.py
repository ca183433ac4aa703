"""Runs one client on its cores and accounts for it: CPU of all its processes over time, memory, how it ended."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from null import on_cores

POLL_S = 0.2
GRACE_S = 10.0


@dataclass(slots=True)
class Usage:
    """What one command took."""

    samples: list[tuple[int, float]] = field(default_factory=list)
    """(monotonic ns, CPU seconds of all processes of the client until then)."""
    total_cpu_s: float = 0.0
    """To the end of the command, by the kernel's account where that is larger than the samples'."""
    peak_rss_bytes: int = 0
    """Largest sum of resident memory over all its processes; pages shared by several count for each. From the samples:
    the kernel's own peak begins with the size of the process that forked it."""
    exit_code: int | None = None
    timed_out: bool = False
    wall_s: float = 0.0

    def cpu_s_at(self, at_ns: int) -> float:
        """CPU seconds until then, interpolated between samples."""
        times, values = zip(*self.samples, strict=True)
        return float(np.interp(at_ns, times, values))


def watch(command: list[str], *, cores: Sequence[int], env: Mapping[str, str], folder: Path, limit_s: float) -> Usage:
    """Run a command to its end, or to the limit; its output is in `folder / "client.txt"`."""
    with (folder / "client.txt").open("wb") as talk, (folder / "client.out").open("wb") as out, on_cores(cores):
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=talk,
            env=dict(env),
            cwd=folder,
            start_new_session=True,
        )
    began = time.monotonic()
    usage = Usage(samples=[(time.monotonic_ns(), 0.0)])
    tree = _Tree(process.pid)
    try:
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            tree.look(usage)
            if time.monotonic() - began > limit_s:
                usage.timed_out = True
                ended = _end(process.pid)
                break
            time.sleep(POLL_S)
        _, status, kernel = ended
        usage.exit_code = process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        tree.end_rest()
    usage.wall_s = time.monotonic() - began
    usage.total_cpu_s = max(kernel.ru_utime + kernel.ru_stime, usage.samples[-1][1])
    usage.samples.append((time.monotonic_ns(), usage.total_cpu_s))
    return usage


class _Tree:
    """A process and all that descended from it."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._known: dict[int, psutil.Process] = {}
        self._cpu_s: dict[int, float] = {}

    def look(self, usage: Usage) -> None:
        try:
            for process in [self._root, *self._root.children(recursive=True)]:
                self._known.setdefault(process.pid, process)
        except psutil.NoSuchProcess:
            return
        rss_bytes = 0
        for pid, process in self._known.items():
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    rss_bytes += process.memory_info().rss
                self._cpu_s[pid] = times.user + times.system
            except psutil.NoSuchProcess:
                continue
        usage.samples.append((time.monotonic_ns(), sum(self._cpu_s.values())))
        usage.peak_rss_bytes = max(usage.peak_rss_bytes, rss_bytes)

    def end_rest(self) -> None:
        """End what the command left running; each is known by pid and start time, so nobody else is hit."""
        rest = [process for process in self._known.values() if process.is_running()]
        for process in rest:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(rest, timeout=GRACE_S)


def _end(pid: int) -> tuple[int, int, resource.struct_rusage]:
    """Interrupt the process group, as Ctrl-C would, then kill it."""
    deadline = time.monotonic() + GRACE_S
    os.killpg(pid, signal.SIGINT)
    while (ended := os.wait4(pid, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            return os.wait4(pid, 0)
        time.sleep(POLL_S)
    return ended
