"""The soak of one server: its peak load goes on, and its memory is looked at meanwhile.

It follows everything that is measured in a run, on the same server: no launch is paid for it, and nothing that it does
can touch what was measured. What it says is judged here only as far as one run can; who is to blame, and whether what
it stands on does the same, `assay.plan.soaking` knows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from assay.campaign.bench import Bench
from assay.plan.soaking import peak
from assay.ports import ReadsGpuMemory, Server
from assay.records.load import LoadResult, RequestSample
from assay.records.run import RunIntent
from assay.records.soak import MemoryTrend, Soak, Where
from assay.records.spec import Gates, Workload
from assay.stats.growth import growth
from assay.units import MIB_BYTES, NS_PER_S

LOOKS = 60
"""Samples of a soak; it takes no notice of what lies between two of them."""
LEAST_EVERY_S = 0.1
"""A look walks the tree of the server's processes, which takes milliseconds of a core."""
ALLOCATOR_BYTES = 2 * MIB_BYTES
"""What allocators take at once (pages of 2 MiB, PyTorch's small blocks): growth within a soak below it says nothing."""
SILENT_SHARE = 0.5
HOUR_S = 3600.0
UNCOUNTED = "interrupted by Ctrl-C before its requests were counted"
LOOKS_FILE = "soak.json"
"""In the run's folder: every look, so that whoever doubts a trend can judge it again."""

Play = Callable[[Workload, Callable[[], bool]], LoadResult]
"""Lets a load pass on the server, as long as the second says that it lives."""


def soak(bench: Bench, intent: RunIntent, server: Server, play: Play) -> Soak:
    """Keep a server at its peak load for `intent.soak_s` seconds; one that dies meanwhile is the caller's to notice."""
    name, workload = peak(bench.state.spec.workload)
    bench.progress.phase(f"soaking: {intent.soak_s:g} s of {workload.concurrency} in flight ({name})")
    windows = max(2, math.ceil(intent.soak_s / workload.window_s))
    watch = Watch(bench, server, every_s=max(LEAST_EVERY_S, intent.soak_s / LOOKS))
    result = play(workload.model_copy(update={"windows": windows}), watch)
    looks = {"steady_ns": result.windows_began_ns, "at_ns": watch.looked.at_ns, "bytes": watch.looked.held}
    bench.files.write_json(intent.run_id, LOOKS_FILE, looks)
    return judged(name, workload, result, watch.looked, bench.state.spec.gates)


@dataclass(slots=True)
class Looked:
    """What was seen of a server's memory: instants of the monotonic clock, and bytes at each."""

    at_ns: list[int] = field(default_factory=list)
    held: dict[Where, list[int | None]] = field(default_factory=lambda: {"server": [], "GPU": []})

    @property
    def end_ns(self) -> int:
        """The last look; 0 before the first."""
        return self.at_ns[-1] if self.at_ns else 0


@dataclass(slots=True)
class Watch:
    """Whether the server lives, and now and then how much memory it holds: polled by the load that passes."""

    bench: Bench
    server: Server
    every_s: float
    looked: Looked = field(default_factory=Looked)

    def __call__(self) -> bool:
        """Whether it lives."""
        now_ns = time.monotonic_ns()
        if now_ns - self.looked.end_ns >= self.every_s * NS_PER_S:
            self.looked.at_ns.append(now_ns)
            self.looked.held["server"].append(self.server.rss_bytes())
            self.looked.held["GPU"].append(_gpu_bytes(self.bench))
        return self.server.failure() is None


def judged(name: str, workload: Workload, result: LoadResult, looked: Looked, gates: Gates) -> Soak:
    """What a load that passed says of the server."""
    sent = [sample for sample in result.samples if sample.phase != "drain"]
    errors = [sample.error for sample in sent if sample.error is not None]
    steady_ns = result.windows_began_ns
    soaked_s = 0.0 if steady_ns is None else max(0.0, (looked.end_ns - steady_ns) / NS_PER_S)
    memory, unknown = _memory(looked, steady_ns, gates) if steady_ns is not None else ([], {})
    silent_s = _silent_s(result.samples, looked)
    ended = sum(one.error is None and one.ended_ns >= (steady_ns or 0) for one in sent)
    slowest_s = max(((one.ended_ns - one.sent_ns) / NS_PER_S for one in sent if one.error is None), default=0.0)
    return Soak(
        point=name,
        concurrency=workload.concurrency,
        soaked_s=soaked_s,
        requests=len(sent),
        failed=len(errors),
        requests_per_s=ended / soaked_s if soaked_s else 0.0,
        first_error=errors[0] if errors else "",
        silent_s=silent_s,
        stalled=soaked_s > 0 and silent_s > max(SILENT_SHARE * soaked_s, slowest_s),
        memory=memory,
        unknown=unknown,
        problem=None if soaked_s else _problem(sent, result),
    )


def cut_short(workload: Workload, passed_s: float) -> Soak:
    """One whose load was ended by Ctrl-C before anything of it was counted, after so many seconds.

    They stay with it: they are no time of the run that it follows (`assay.plan.runs.median_run_s`).
    """
    name, load = peak(workload)
    return Soak(point=name, concurrency=load.concurrency, soaked_s=passed_s, requests=0, failed=0, problem=UNCOUNTED)


def _silent_s(samples: list[RequestSample], looked: Looked) -> float:
    """From the last token of any stream, cut ones too, to the last look; 0 where none ever came: nothing was steady."""
    last_ns = max((sample.chunk_ns[-1] for sample in samples if sample.chunk_ns), default=None)
    return 0.0 if last_ns is None else max(0.0, (looked.end_ns - last_ns) / NS_PER_S)


def _problem(sent: list[RequestSample], result: LoadResult) -> str:
    bad = next((gate for gate in result.gates if not gate.passed), None)
    return f"{bad.name}: {bad.evidence}" if bad else f"its load ended after {len(sent)} requests"


def _memory(looked: Looked, steady_ns: int, gates: Gates) -> tuple[list[MemoryTrend], dict[Where, str]]:
    trends: list[MemoryTrend] = []
    unknown: dict[Where, str] = {}
    for where, held in looked.held.items():
        told = [
            ((at - steady_ns) / NS_PER_S, size)
            for at, size in zip(looked.at_ns, held, strict=True)
            if size is not None and at >= steady_ns
        ]
        if not told:
            if where == "server":
                unknown[where] = "its processes are not on this machine, or not ours"
            continue
        found = growth([at for at, _ in told], [float(size) for _, size in told])
        if found is None:
            unknown[where] = f"{len(told)} samples are too few: soak longer"
            continue
        allowed = max(gates.max_memory_growth_per_hour * found.begin / HOUR_S, ALLOCATOR_BYTES / found.span_s)
        trends.append(
            MemoryTrend(
                where=where,
                num_samples=found.num_samples,
                span_s=found.span_s,
                begin_bytes=round(found.begin),
                end_bytes=round(found.end),
                bytes_per_s=found.rate,
                low_bytes_per_s=found.low,
                high_bytes_per_s=found.high,
                tolerated_bytes_per_s=allowed,
                levels_off=found.levels_off,
            )
        )
    return trends, unknown


def _gpu_bytes(bench: Bench) -> int | None:
    """Of this machine; behind ssh its GPUs are not the server's."""
    launch = bench.target.launch
    if launch is not None and launch.kind == "ssh":
        return None
    return bench.probe.gpu_memory_bytes() if isinstance(bench.probe, ReadsGpuMemory) else None
