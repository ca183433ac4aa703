"""Bandwidth of the memory of processors: plain reads and copies, by number of threads and by NUMA node."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from assay.probes.ceilings.port import Conditions, NotMeasurable, Reading

SECONDS = 0.3
SETTLE_S = 0.3
"""Filling the buffers."""
BUFFER_BYTES = 96 << 20
"""Of each thread: several times what a core has of the last cache."""
LEAST_BUFFER_BYTES = 8 << 20
CHUNK_BYTES = 4 << 20
FILL = 1
ABSENT = 0x7F
"""A byte that no buffer holds: the search for it reads the whole buffer."""
SLICES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBandwidth:
    """Bytes/s of all threads together.

    A read is C's `memchr` for a byte that is not there: it only reads, with vector instructions, and Python's lock is
    released meanwhile. A copy is numpy's; its bytes are counted twice, once read and once written (what the hardware
    reads beside that, to fill lines before they are written, is not counted).
    """

    name: Literal["memory_read", "memory_copy"]
    threads: int
    numa_node: int | None = None
    cpus: frozenset[int] | None = None
    """Of the node; None: any."""
    buffer_bytes: int = BUFFER_BYTES
    seconds: float = SECONDS
    unit: Literal["bytes/s"] = "bytes/s"

    @property
    def what(self) -> str:
        """In words."""
        action = "search for an absent byte" if self.name == "memory_read" else "copy from buffer to buffer"
        return f"{action}, {self.buffer_bytes / 2**20:.0f} MiB a thread"

    @property
    def at(self) -> Conditions:
        """Threads and node."""
        return Conditions(threads=self.threads, numa_node=self.numa_node)

    @property
    def expected_s(self) -> float:
        """Filling the buffers included."""
        return self.seconds + SETTLE_S

    def run(self) -> Reading:
        """Let all threads go at once, and count what each did in every slice of the time."""
        try:
            workers = [_Worker(self) for _ in range(self.threads)]
        except MemoryError as error:
            raise NotMeasurable(f"no memory for {self.threads} buffers of {self.buffer_bytes} bytes") from error
        samples = _timed(workers, self.seconds)
        correct = all(worker.intact() for worker in workers)
        return Reading(
            samples=samples,
            correct=correct,
            check="every byte is what was written" if correct else "a buffer does not hold what was written",
            conditions={"buffer_bytes": self.buffer_bytes},
        )


class _Worker:
    """One thread with buffers of its own, touched first where it runs."""

    def __init__(self, benchmark: MemoryBandwidth) -> None:
        self._benchmark = benchmark
        self._size = benchmark.buffer_bytes // CHUNK_BYTES * CHUNK_BYTES or benchmark.buffer_bytes
        self._source = np.empty(self._size, np.uint8)
        self._target = np.empty(self._size, np.uint8) if benchmark.name == "memory_copy" else None
        self.done_bytes = 0
        self.stop = False
        self.missed = True
        self.problem: OSError | None = None
        """Why it cannot run where it should."""
        self.ready = threading.Event()
        self.go = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def intact(self) -> bool:
        """Whether the last pass read, or wrote, what it should."""
        return self.missed and (self._target is None or bool(np.array_equal(self._source, self._target)))

    def _run(self) -> None:
        try:
            if self._benchmark.cpus and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, self._benchmark.cpus)  # of this thread alone
        except OSError as error:
            self.problem = error
            self.ready.set()
            return
        self._source[:] = FILL
        if self._target is not None:
            self._target[:] = 0
        step = self._reader() if self._target is None else self._copier(self._target)
        self.ready.set()
        self.go.wait()
        while not self.stop:
            for begin in range(0, self._size, CHUNK_BYTES):
                step(begin, min(begin + CHUNK_BYTES, self._size))
                self.done_bytes += (min(begin + CHUNK_BYTES, self._size) - begin) * (1 + (self._target is not None))

    def _reader(self) -> Callable[[int, int], None]:
        search = ctypes.CDLL(None).memchr
        search.restype, search.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
        address = self._source.ctypes.data

        def read(begin: int, end: int) -> None:
            self.missed = self.missed and search(address + begin, ABSENT, end - begin) is None

        return read

    def _copier(self, target: np.ndarray) -> Callable[[int, int], None]:
        def copy(begin: int, end: int) -> None:
            np.copyto(target[begin:end], self._source[begin:end])

        return copy


def _timed(workers: list[_Worker], seconds: float) -> list[float]:
    """Bytes/s of all workers together in each slice of the time.

    Raises:
        NotMeasurable: a worker cannot run where it should.
    """
    for worker in workers:
        worker.thread.start()
    for worker in workers:
        worker.ready.wait()
    problem = next((worker.problem for worker in workers if worker.problem), None)
    for worker in workers:
        worker.stop = problem is not None
        worker.go.set()
    if problem is not None:
        for worker in workers:
            worker.thread.join()
        raise NotMeasurable(f"this process may not run on the processors of the node: {problem}")
    marks = [(time.perf_counter(), 0)]
    for _ in range(SLICES + 1):
        time.sleep(seconds / SLICES)
        marks.append((time.perf_counter(), sum(worker.done_bytes for worker in workers)))
    for worker in workers:
        worker.stop = True
    for worker in workers:
        worker.thread.join()
    # The first slice is the start of the threads.
    return [(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(marks[1:])]
