"""Faults while the server starts and serves: how each is told in the log, and how it ends the process.

A process that is to die does so for good (`os._exit`, or a signal to itself): nothing is cleaned up, as when an engine
falls over.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import NoReturn

from assay.rehearsal import log
from assay.rehearsal.flags import CommandLine
from assay.rehearsal.world_file import Fault

LAUNCH = {
    "fails-load": "RuntimeError: the simulated engine cannot load this model with this configuration",
    "fails-kv-allocation": "RuntimeError: Not enough memory for the KV cache: {left} MB are missing. "
    "Lower --max-running-requests or raise --mem-fraction-static",
    "fails-graph-capture": "Capture cuda graph failed: the simulated compiler cannot trace this operation",
}
UNDER_LOAD = {
    "oom-under-load": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (simulated)",
    "crash": "Scheduler hit an exception: CUDA error: an illegal memory access was encountered (simulated)",
    "hang": "Watchdog timeout: no step ended for {seconds:g} s of the simulated world",
    "leak": "host out of memory: the simulated kernel kills the server",
}
FAILED_EXIT = 1


def end(text: str, exit_code: int = FAILED_EXIT) -> NoReturn:
    """Say it and die."""
    log.say(text, "ERROR")
    os._exit(exit_code)


def at_launch(line: CommandLine, stage: str) -> None:
    """Die here when a flag in force fails at this stage."""
    for fault in line.faults(stage):
        end(fault.line or LAUNCH[stage].format(left=812))


def tell_fallbacks(line: CommandLine) -> None:
    """A flag that does not act says so here, and nowhere else."""
    for flag, fault in line.faults_by_flag():
        if fault.kind == "fallback":
            log.say(fault.line or f"{flag.name} is not supported on this device, falling back to the default", "WARN")


class UnderLoad:
    """What goes wrong while it serves; asked once a request and once a turn of the server's loop."""

    def __init__(self, line: CommandLine, sleep: Callable[[float], None] = time.sleep) -> None:
        self._by_kind = {fault.kind: fault for _, fault in line.faults_by_flag()}
        self._watchdog_s = float(line.given["watchdog_timeout"])
        self._scale = float(line.given["time_scale"])
        self._sleep = sleep
        self._requests = 0
        self._leaked: list[bytearray] = []
        self._next_stall_s: float | None = None

    def on_request(self, running: int) -> None:
        """A completion was asked for; `running` sequences run already."""
        self._requests += 1
        if (fault := self._by_kind.get("leak")) is not None:
            self._leak(fault)
        if (fault := self._by_kind.get("crash")) and self._requests >= fault.after_requests:
            end(fault.line or UNDER_LOAD["crash"])
        if (fault := self._by_kind.get("hang")) and self._requests >= fault.after_requests:
            self._hang(fault)
        if (fault := self._by_kind.get("oom-under-load")) and running >= fault.running:
            end(fault.line or UNDER_LOAD["oom-under-load"])

    def standstill_s(self, now_s: float) -> float:
        """Seconds of the simulated world for which nothing is computed from now on."""
        fault = self._by_kind.get("stall")
        if fault is None:
            return 0.0
        if self._next_stall_s is None:
            self._next_stall_s = now_s + fault.every_s
        if now_s < self._next_stall_s:
            return 0.0
        self._next_stall_s = now_s + fault.duration_s + fault.every_s
        log.say(f"no step for {fault.duration_s:g} s (simulated)", "WARN")
        return fault.duration_s

    @property
    def wrong_rate(self) -> float:
        """Share of the prompts that are answered otherwise."""
        fault = self._by_kind.get("wrong-answers")
        return fault.rate if fault else 0.0

    @property
    def broken_rate(self) -> float:
        """Share of the answers that end in an error event."""
        fault = self._by_kind.get("in-band-errors")
        return fault.rate if fault else 0.0

    @property
    def broken_line(self) -> str:
        """What such an event says."""
        fault = self._by_kind.get("in-band-errors")
        return (fault.line if fault else "") or "the request was aborted by the scheduler (simulated)"

    def _leak(self, fault: Fault) -> None:
        self._leaked.append(bytearray(b"\x01") * fault.leak_bytes)
        if sum(map(len, self._leaked)) >= fault.leak_limit_bytes:
            log.say(fault.line or UNDER_LOAD["leak"], "ERROR")
            os.kill(os.getpid(), signal.SIGKILL)

    def _hang(self, fault: Fault) -> NoReturn:
        """Stand still with every connection open, until the watchdog (where there is one) ends it."""
        self._sleep(self._watchdog_s / self._scale if self._watchdog_s else 1e6)
        end(fault.line or UNDER_LOAD["hang"].format(seconds=self._watchdog_s))
