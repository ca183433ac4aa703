"""One load process: `python -m assay.load.worker`, told what to do on stdin, telling how it goes on stdout.

    stdin    one line: the job.  Then "start NS" (monotonic instant), "stop".  Its end means that Assay is gone: stop.
    stdout   a line of JSON each: {"ready": pid}, a `Beat` every 100 ms, `Ended`; or {"error", "hint", "kind"}.

Everything runs on one event loop of its own: nothing of Assay's display or judging can delay it.
"""

from __future__ import annotations

import asyncio
import gc
import math
import os
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from assay.errors import AssayError
from assay.load.arrival import offsets_s
from assay.load.client import AFTER_FAILURE_S, Client
from assay.load.exchange import CUT_BY_DRAIN, Exchange
from assay.load.lag import LagWatch
from assay.load.schedule import Sessions, Shard, due_of_shard
from assay.load.spool import Spool, spooled
from assay.load.told import BIN_NS, Beat, Ended, Job, refusal
from assay.load.turns import Turns
from assay.load.workloads import Source, build
from assay.load.workloads.prompts import TextPrompts, TokenPrompts
from assay.records.bench import BenchSpec
from assay.records.load import Session

BEAT_S = 0.1
BATCH = 64
STAGGER_S = 0.001
"""Streams of a closed loop begin one after the other: thousands of connections at once overrun a server's listen queue,
and streams that begin together go on in step, so that all of them would ask again at the same instants."""
GOLDEN = (5**0.5 - 1) / 2
"""Its multiples modulo 1 are spread evenly, however many there are."""


class Worker:
    """The state of a load process."""

    def __init__(self, job: Job, out: int) -> None:
        self._job = job
        self._out = out
        self._spec = BenchSpec.model_validate(job.spec)
        self._sink = Path(job.spool).open("wb")  # noqa: SIM115 - lives as long as the process
        self._spool = Spool(self._sink)
        self._client = Client(self._spec, self._on_content, self._on_end)
        self._source = _source(job, self._spec)
        self._shard = Shard(number=job.shard, count=job.shards)
        self._sessions = Sessions(self._source, self._shard)
        self._tasks: set[asyncio.Task[None]] = set()
        self._bins: dict[int, int] = {}
        self._begun: set[int] = set()
        self._completed = self._failed = 0
        self._turns = Turns()
        self._all_begun = False
        """Whether nothing waits for its instant any more: a session is taken before it is due."""
        self._ttft: list[int] = []
        self._gaps: list[int] = []
        self._seen_lags = 0
        self._watch: LagWatch | None = None

    async def run(self) -> None:
        """From "start" to "stop"."""
        commands = await _stdin()
        self._say(msgspec.json.encode({"ready": os.getpid()}))
        start = (await commands.readline()).split()
        if not start or start[0] != b"start":
            return
        began_ns = int(start[1])
        await asyncio.sleep(max(began_ns - time.monotonic_ns(), 0) / 1e9)
        self._watch = LagWatch()
        beats = asyncio.create_task(self._beat())
        load = asyncio.create_task(self._load(began_ns))
        stop = asyncio.create_task(commands.readline())
        await asyncio.wait({stop, beats, load}, return_when=asyncio.FIRST_COMPLETED)
        while not stop.done():
            if beats.done():
                beats.result()
            if load.done():
                load.result()  # an open law that has no more sessions: what is in flight goes on until "stop"
            await asyncio.wait({stop, beats}, return_when=asyncio.FIRST_COMPLETED)
        await self._drain(load, beats)

    async def _load(self, began_ns: int) -> None:
        if self._spec.arrival.kind == "closed":
            await self._closed(began_ns)
        else:
            await self._open(began_ns)
        self._all_begun = True

    async def _closed(self, began_ns: int) -> None:
        total = self._spec.arrival.concurrency or 1
        for stream in range(self._shard.number, total, self._shard.count):
            due_ns = began_ns + round(stream * STAGGER_S * 1e9)
            if (left_ns := due_ns - time.monotonic_ns()) > 0:
                await asyncio.sleep(left_ns / 1e9)
            self._spawn(self._stream(stream, due_ns))

    async def _stream(self, number: int, due_ns: int) -> None:
        """One session after the other, until there is none left; the first one is joined in its midst."""
        first = self._spec.arrival.concurrency != 1
        while (session := await self._next()) is not None:
            if first:
                session, first = begun_before(session, number), False
            last = await self._client.session(session, due_ns, number)
            due_ns = time.monotonic_ns() if last is None or last.ended_ns is None else last.ended_ns
            if last is not None and last.error is not None:
                await asyncio.sleep(AFTER_FAILURE_S)
                due_ns = time.monotonic_ns()

    async def _next(self) -> Session | None:
        await self._turns.mine()
        return self._sessions.take()

    async def _open(self, began_ns: int) -> None:
        """Send at the instants of the arrival law, whatever the server does."""
        limit = self._spec.arrival.concurrency
        free = asyncio.Semaphore(self._shard.share(limit)) if limit else None
        for number, (due_ns, session) in enumerate(self._due(began_ns)):
            if (left_ns := due_ns - time.monotonic_ns()) > 0:
                await asyncio.sleep(left_ns / 1e9)
            if free is not None:
                await free.acquire()
            self._spawn(self._one(session, due_ns, number, free))

    def _due(self, began_ns: int) -> Iterator[tuple[int, Session]]:
        instants = offsets_s(
            self._spec.arrival, self._spec.seed, ramp_s=self._spec.arrival.ramp_s, trace_s=self._source.instants_s
        )
        for due_ns in due_of_shard(instants, self._shard, began_ns):
            session = self._sessions.take()
            if session is None:
                return
            yield due_ns, session

    async def _one(self, session: Session, due_ns: int, number: int, free: asyncio.Semaphore | None) -> None:
        try:
            await self._client.session(session, due_ns, number)
        finally:
            if free is not None:
                free.release()

    def _spawn(self, coroutine: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A stream that ended by an error of ours ends the test: a load that shrinks unnoticed is none."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._say(refusal(error))

    def _on_content(self, at_ns: int) -> None:
        number = at_ns // BIN_NS
        self._bins[number] = self._bins.get(number, 0) + 1

    def _on_end(self, exchange: Exchange) -> None:
        if exchange.error is None:
            self._completed += 1
        elif exchange.error != CUT_BY_DRAIN:
            self._failed += 1
        chunks = exchange.reply.chunk_ns
        if chunks:
            self._begun.add(exchange.stream if self._spec.arrival.kind == "closed" else 0)
            self._ttft.append(chunks[0] - exchange.sent_ns)
            if len(chunks) > 1:
                self._gaps.append((chunks[-1] - chunks[0]) // (len(chunks) - 1))
        self._spool.add(spooled(exchange))

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            if self._client.reader is not None:
                self._client.reader.clock.check()
            self._say(msgspec.json.encode(self._now()))

    def _now(self) -> Beat:
        lags = self._watch.lags[self._seen_lags :] if self._watch else []
        self._seen_lags += len(lags)
        bins, self._bins = self._bins, {}
        ttft, self._ttft = self._ttft[-BATCH:], []
        gaps, self._gaps = self._gaps[-BATCH:], []
        if self._spec.arrival.kind == "closed" and len(self._begun) < self._shard.share(
            self._spec.arrival.concurrency or 1
        ):
            self._begun |= {one.stream for one in self._client.in_flight.values() if one.reply.chunk_ns}
        reader = self._client.reader
        return Beat(
            at_ns=time.monotonic_ns(),
            bins=bins,
            in_flight=len(self._client.in_flight),
            begun_streams=len(self._begun),
            completed=self._completed,
            failed=self._failed,
            ttft_ns=ttft,
            gap_ns=gaps,
            lag_ns=round(max((lag.late_s for lag in lags), default=0.0) * 1e9),
            cpu_ns=time.process_time_ns(),
            rss_bytes=_rss_bytes(),
            exhausted=self._all_begun and self._sessions.exhausted and not self._tasks,
            clock_stepped=reader is not None and reader.clock.stepped,
        )

    async def _drain(self, load: asyncio.Task[None], beats: asyncio.Task[None]) -> None:
        for task in (load, beats, *self._tasks):
            task.cancel()
        await asyncio.gather(load, beats, *self._tasks, return_exceptions=True)
        self._client.close()
        if self._watch is not None:
            self._watch.stop()
        await asyncio.sleep(0)  # lets the transports close their sockets
        self._sink.close()
        self._say(msgspec.json.encode(self._now()))
        reader = self._client.reader
        lags = [] if self._watch is None else [(lag.at_ns, lag.late_s) for lag in self._watch.lags]
        delays, without = ([], 0) if reader is None else (reader.delays, reader.without_stamp)
        self._say(msgspec.json.encode(Ended(ended=True, lags=lags, delays=delays, without_stamp=without)))

    def _say(self, line: bytes) -> None:
        os.write(self._out, line + b"\n")


def begun_before(session: Session, stream: int) -> Session:
    """A session whose first answer is a part of what it was to be, each stream another part.

    So begins a load that has been going on for long: streams that all start at nothing with answers of one length would
    end and ask again together for ever, and no window would be like the one before it. Only the warm-up sees it.
    """
    opening, *rest = session.requests
    share = (stream + 1) * GOLDEN % 1.0
    part = replace(opening, output_tokens=max(1, math.ceil(share * opening.output_tokens)))
    return replace(session, requests=(part, *rest))


def _source(job: Job, spec: BenchSpec) -> Source:
    if job.corpus is None:
        return build(spec.workload, spec.seed, TextPrompts(job.tokens_per_word))
    from array import array  # noqa: PLC0415 - only here

    tokens = array("i")
    tokens.frombytes(Path(job.corpus).read_bytes())
    return build(spec.workload, spec.seed, TokenPrompts(list(tokens)))


def _rss_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource  # noqa: PLC0415 - where there is no /proc

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


async def _stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _run(worker: Worker) -> None:
    """On uvloop where there is one: half the cost of a wake-up."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        asyncio.run(worker.run())
    else:
        uvloop.run(worker.run())


def main() -> None:
    """Serve one job."""
    out = os.dup(1)
    os.dup2(2, 1)  # a stray print must not end up among the answers
    try:
        worker = Worker(msgspec.json.decode(sys.stdin.buffer.readline(), type=Job), out)
    except AssayError as error:
        os.write(out, refusal(error) + b"\n")
        return
    gc.freeze()
    gc.disable()  # one pass over a large heap takes longer than a token
    with suppress(KeyboardInterrupt):  # Ctrl-C reaches us as well; the parent decides
        _run(worker)


if __name__ == "__main__":
    main()
