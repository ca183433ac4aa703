"""How much this client can take on this machine: one load process against the null server, for a moment.

The null server sends as fast as it can; what arrives is the ceiling of one load process, or of the null server where
that is slower. Both are shown beside every result: a measurement near the ceiling is the client's, not the server's.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from assay.errors import EngineError
from assay.load.fleet import Fleet
from assay.load.runner import jobs
from assay.process import Piped
from assay.records.bench import Arrival, BenchSpec, Lengths, Synthetic

STREAMS = 64
SETTLE_S = 0.4
MEASURE_S = 1.0
START_S = 20.0
TOKENS_PER_S_OF_A_STREAM = 100.0
"""What a stream of a fast server gives: with it the number of processes is chosen before anything is known."""
HEADROOM = 0.5
"""A load process is to be busy for no more than this share of its time."""
LONG = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What was seen."""

    tokens_per_s: float
    """That one load process took from the null server."""
    client_share: float
    """CPU share of the load process meanwhile."""
    server_share: float
    """CPU share of the null server meanwhile."""

    @property
    def ceiling_tokens_per_s(self) -> float:
        """What one load process could take with a core of its own, by what a token cost it."""
        return self.tokens_per_s / max(self.client_share, 0.01)

    @property
    def null_server_tokens_per_s(self) -> float:
        """What the null server could send with a core of its own."""
        return self.tokens_per_s / max(self.server_share, 0.01)


def processes_for(streams: int, found: Calibration, usable_cores: int) -> int:
    """How many load processes a number of streams wants, at most one for each core but one."""
    wanted = streams * TOKENS_PER_S_OF_A_STREAM / (HEADROOM * found.ceiling_tokens_per_s)
    return max(1, min(-(-int(wanted * 1000) // 1000), max(usable_cores - 1, 1), streams))


@cache
def calibrate() -> Calibration:
    """Run the null server and one load process against each other for a second and a half; once in a process's life.

    Raises:
        EngineError: either did not start.
    """
    with tempfile.TemporaryDirectory(prefix="assay-calibration-") as temporary:
        folder = Path(temporary)
        words = ["--first-token-s", "0", "--tokens-per-s", "0", "--end-with-stdin"]
        null = Piped("assay.load.null_server", words, folder / "null.log")
        try:
            port = _port(null)
            spec = BenchSpec(
                url=f"http://127.0.0.1:{port}",
                model="null",
                workload=Synthetic(input=Lengths(kind="fixed", mean=8), output=Lengths(kind="fixed", mean=LONG)),
                arrival=Arrival(concurrency=STREAMS),
            )
            return _measured(spec, folder, null.pid)
        finally:
            null.end()


def _measured(spec: BenchSpec, folder: Path, null_pid: int) -> Calibration:
    import psutil  # noqa: PLC0415 - slow to import, and needed here alone

    fleet = Fleet(jobs(spec, folder, None, 1), folder)
    try:
        fleet.start()
        fleet.listen(SETTLE_S)
        server = psutil.Process(null_pid)
        begin_ns, server_before = time.monotonic_ns(), server.cpu_times()
        fleet.listen(MEASURE_S)
        end_ns, server_after = time.monotonic_ns(), server.cpu_times()
        fleet.listen(0.2)  # the last beat covers the end
        seconds = (end_ns - begin_ns) / 1e9
        return Calibration(
            tokens_per_s=fleet.arrived(begin_ns, end_ns) / seconds,
            client_share=sum(fleet.cpu_s(begin_ns, end_ns)) / seconds,
            server_share=(server_after.user + server_after.system - server_before.user - server_before.system)
            / seconds,
        )
    finally:
        fleet.close()


def _port(null: Piped) -> int:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        said = null.lines()
        if said:
            return int(json.loads(said[0])["port"])
        if said is None:
            break
        time.sleep(0.01)
    raise EngineError("the null server did not start", hint="try it by hand: python -m assay.load.null_server")


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
