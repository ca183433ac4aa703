"""One load run: warm up until steady, measure the windows, look under load, drain.

    streams start --- warm-up ---|-- window --|-- window --|-- window --|-- under_load() --| drain
                                 steady       (back to back)                               streams are cut

Everything runs on one event loop of its own, in the calling thread (any thread); only `under_load` gets a second
one. Ctrl-C, a dead server and an error in here all leave by the same door: the streams are cut, the loop is closed,
the second thread has ended.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from assay.load.client import Client
from assay.load.exchange import to_sample
from assay.load.gates import load_gates, window_gates
from assay.load.lag import Lag, LagWatch, worst_lag_s
from assay.load.metrics import NS, ClientCost, Windows, measure, num_arrived
from assay.load.schedule import ClosedLoop
from assay.load.steady import is_steady
from assay.load.workload import RequestSource
from assay.records.load import LoadRequest, LoadResult
from assay.records.run import Gate
from assay.records.spec import Workload

POLL_S = 0.1


class Generator:
    """The load generator: see `assay.ports.LoadGenerator`."""

    def run(
        self,
        request: LoadRequest,
        tokenize: Callable[[str], list[int]],
        alive: Callable[[], bool],
        under_load: Callable[[], None] | None = None,
    ) -> LoadResult:
        """Warm up until steady, measure the windows, drain.

        Raises:
            UsageError: the server's address cannot be used.
            MeasurementError: no distinct prompts can be made with the server's tokenizer.
        """
        source = RequestSource(request.workload, request.seed, tokenize)
        schedule = ClosedLoop(source)
        client = Client(request.base_url, request.model, schedule)
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="assay-under-load") as pool, _no_collector():
            run = _Run(request.workload, schedule, client, alive)
            asyncio.run(run.play(under_load, pool))
        return run.result()


class _ServerDied(Exception):  # noqa: N818 - an outcome, caught in this module
    """`alive` said no."""


@contextmanager
def _no_collector() -> Iterator[None]:
    """No cyclic garbage collection meanwhile: one pass over a large heap can take longer than a token."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Run:
    """The state of one load run, from its first request to its result."""

    def __init__(self, workload: Workload, schedule: ClosedLoop, client: Client, alive: Callable[[], bool]) -> None:
        self._workload = workload
        self._schedule = schedule
        self._client = client
        self._alive = alive
        self._lags: Sequence[Lag] = ()
        self._tasks: list[asyncio.Task[None]] = []
        self._began_ns = 0
        self._counts: list[int] = []
        self._steady = False
        self._windows: Windows | None = None
        self._cpu_share = 0.0
        self._died_ns: int | None = None

    async def play(self, under_load: Callable[[], None] | None, pool: ThreadPoolExecutor) -> None:
        """Warm-up to drain."""
        self._began_ns = time.monotonic_ns()
        watch = LagWatch()
        self._lags = watch.lags
        self._tasks = [asyncio.create_task(self._client.stream(n)) for n in range(self._workload.concurrency)]
        try:
            self._steady = await self._warm_up()
            if self._steady:
                await self._measure()
                if under_load is not None:
                    await self._look(under_load, pool)
        except _ServerDied:
            self._died_ns = time.monotonic_ns()
        finally:
            watch.stop()
            await self._drain()

    async def _warm_up(self) -> bool:
        """Count stretches of half a window until all streams have begun and two agree; False when time is over."""
        workload = self._workload
        stretch_ns = round(min(workload.window_s, workload.warmup_max_s) / 2 * NS)
        while True:
            start_ns = self._began_ns + len(self._counts) * stretch_ns
            end_ns = start_ns + stretch_ns
            if end_ns - self._began_ns > workload.warmup_max_s * NS:
                return False
            await self._until(end_ns)
            self._counts.append(num_arrived(self._client.arrivals, start_ns, end_ns))
            warm = end_ns - self._began_ns >= workload.warmup_min_s * NS
            if warm and is_steady(self._counts, sum(workload.output_tokens) / 2) and self._all_began():
                return True

    def _all_began(self) -> bool:
        """Whether every stream has received something: until then the first prompts are still being read."""
        return len({e.stream for e in self._client.exchanges if e.reply.chunk_ns}) == self._workload.concurrency

    async def _measure(self) -> None:
        """Let the windows pass."""
        cpu_before_s = time.process_time()
        windows = Windows(
            start_ns=time.monotonic_ns(), length_ns=round(self._workload.window_s * NS), count=self._workload.windows
        )
        await self._until(windows.end_ns)
        passed_s = (time.monotonic_ns() - windows.start_ns) / NS
        self._cpu_share = (time.process_time() - cpu_before_s) / passed_s
        self._windows = windows

    async def _look(self, under_load: Callable[[], None], pool: ThreadPoolExecutor) -> None:
        """Run `under_load` in its thread and keep the load going until it returns."""
        look = asyncio.get_running_loop().run_in_executor(pool, under_load)
        try:
            while not look.done():
                await asyncio.wait({look}, timeout=POLL_S)
                self._check()
        except _ServerDied:
            look.add_done_callback(lambda done: done.cancelled() or done.exception())  # its failure is the same one
            raise
        look.result()

    async def _until(self, deadline_ns: int) -> None:
        """Sleep to a moment, seeing to it meanwhile that server and streams live."""
        while (left_ns := deadline_ns - time.monotonic_ns()) > 0:
            await asyncio.sleep(min(left_ns / NS, POLL_S))
            self._check()

    def _check(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()  # streams never end by themselves: this raises what ended it
        if not self._alive():
            raise _ServerDied

    async def _drain(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._client.close()
        await asyncio.sleep(0)  # lets the transports close their sockets

    def result(self) -> LoadResult:
        """Judge what happened."""
        windows = self._windows
        began_ns, ended_ns = (windows.start_ns, windows.end_ns) if windows else (None, None)
        samples = [to_sample(exchange, began_ns, ended_ns) for exchange in self._client.exchanges]
        gates = load_gates(samples, self._schedule.issued, self._steady_gate())
        if self._died_ns is not None:
            gates.insert(0, self._dead_gate(self._died_ns))
        measures = None
        if windows is not None:
            cost = ClientCost(
                cpu_share=self._cpu_share,
                max_lag_s=worst_lag_s(self._lags, windows.start_ns, windows.end_ns),
                warmup_s=(windows.start_ns - self._began_ns) / NS,
                load_began_ns=self._began_ns,
            )
            gates += window_gates(samples, windows, self._workload, cost)
            if all(gate.passed for gate in gates):
                measures = measure(samples, windows, cost)
        return LoadResult(samples=samples, measures=measures, gates=gates, load_began_ns=self._began_ns)

    def _steady_gate(self) -> Gate:
        counts = ", ".join(map(str, self._counts)) or "none"
        return Gate(
            name="steady",
            passed=self._steady,
            evidence=f"chunks in successive stretches of warm-up: {counts}",
            remedy=""
            if self._steady
            else f"warm-up ended after {self._workload.warmup_max_s:g} s without two stretches that agree: "
            "raise workload.warmup_max_s, or look for what disturbs the machine",
        )

    def _dead_gate(self, at_ns: int) -> Gate:
        return Gate(
            name="server-alive",
            passed=False,
            evidence=f"the server died {(at_ns - self._began_ns) / NS:.1f} s into the load",
            remedy="read the end of the server's log",
        )
