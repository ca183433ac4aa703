"""A campaign's load run: one load test on one process, judged by the client-side gates."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable
from pathlib import Path

from assay.load.columns import Columns, columns, workload_sha256
from assay.load.fleet import Fleet
from assay.load.gates import Rules, load_gates, window_gates
from assay.load.lag import worst_lag_s
from assay.load.metrics import NS, ClientCost, measure
from assay.load.play import Play, Played
from assay.load.prefix import hits_gate
from assay.load.server import Counters, Server
from assay.load.spool import read_spools, to_sample
from assay.load.told import Job
from assay.load.workloads.prompts import corpus_text
from assay.records.bench import Arrival, BenchSpec, Lengths, Synthetic
from assay.records.load import LoadRequest, LoadResult
from assay.records.run import Gate

STREAMS_PER_PROCESS = 512
"""Beyond so many streams a second process takes half: one takes about 80,000 tokens/s (benchmarks/load_clients)."""


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
        spec = spec_of(request)
        with tempfile.TemporaryDirectory(prefix="assay-load-") as temporary:
            folder = Path(temporary)
            corpus = write_corpus(folder, tokenize, request.seed)
            fleet = Fleet(jobs(spec, folder, corpus, -(-request.workload.concurrency // STREAMS_PER_PROCESS)), folder)
            try:
                server = Server(spec.url, spec.api_key_env)
                before = server.counters()
                played = Play(spec, fleet, alive, under_load).run()
            finally:
                fleet.close()
            return judge(spec, fleet, played, folder, (before, server.counters()))


def spec_of(request: LoadRequest) -> BenchSpec:
    """A campaign's workload as a load test."""
    workload = request.workload
    return BenchSpec(
        url=request.base_url,
        model=request.model,
        workload=Synthetic(
            input=_uniform(workload.input_tokens),
            output=_uniform(workload.output_tokens),
            prefix_groups=workload.shared_prefix_groups if workload.shared_prefix_tokens else 0,
            prefix_tokens=workload.shared_prefix_tokens,
        ),
        arrival=Arrival(concurrency=workload.concurrency),
        window_s=workload.window_s,
        windows=workload.windows,
        warmup_min_s=workload.warmup_min_s,
        warmup_max_s=workload.warmup_max_s,
        seed=request.seed,
        api_key_env=request.api_key_env,
        extra_body=request.extra_body,
    )


def write_corpus(folder: Path, tokenize: Callable[[str], list[int]], seed: int) -> Path:
    """The corpus in the server's own tokens, where load processes find it."""
    path = folder / "corpus.bin"
    path.write_bytes(array("i", tokenize(corpus_text(seed))).tobytes())
    return path


def jobs(spec: BenchSpec, folder: Path, corpus: Path | None, processes: int, tokens_per_word: float = 1.3) -> list[Job]:
    """One job for each load process."""
    dumped = spec.model_dump(mode="json")
    return [
        Job(
            spec=dumped,
            shard=number,
            shards=processes,
            spool=str(folder / f"load-{number}.spool"),
            corpus=None if corpus is None else str(corpus),
            tokens_per_word=tokens_per_word,
        )
        for number in range(processes)
    ]


def spools(folder: Path) -> list[Path]:
    """The files that the load processes wrote."""
    return sorted(folder.glob("load-*.spool"))


def judge(
    spec: BenchSpec,
    fleet: Fleet,
    played: Played,
    folder: Path,
    counters: tuple[Counters | None, Counters | None] = (None, None),
) -> LoadResult:
    """What happened, and whether it counts; `counters`: the server's own before and after all of it."""
    windows = played.windows
    requests = list(read_spools(spools(folder)))
    requests.sort(key=lambda one: (one.sent_ns, one.index))
    table = columns(requests)
    rules = Rules(steady=steady_gate(spec, played), workload_sha256=workload_sha256(table))
    gates = load_gates(table, windows, rules)
    if played.died_ns is not None:
        gates.insert(0, dead_gate(played.died_ns - played.began_ns))
    measures = None
    if windows is not None:
        cost = client_cost(fleet, played)
        gates += window_gates(table, windows, spec.arrival.concurrency, cost)
        gates += _prefix(table, *counters)
        if all(gate.passed for gate in gates):
            measures = measure(table, windows, cost)
    began_ns, ended_ns = (windows.start_ns, windows.end_ns) if windows else (None, None)
    samples = [to_sample(one, began_ns, ended_ns) for one in requests]
    return LoadResult(
        samples=samples, measures=measures, gates=gates, load_began_ns=played.began_ns, windows_began_ns=began_ns
    )


def _prefix(table: Columns, before: Counters | None, after: Counters | None) -> list[Gate]:
    gate = hits_gate(table, before, after) if before is not None and after is not None else None
    return [gate] if gate is not None else []


def client_cost(fleet: Fleet, played: Played) -> ClientCost:
    """What the load processes cost in the windows."""
    windows = played.windows
    assert windows is not None
    spent_s = fleet.cpu_s(windows.start_ns, windows.end_ns)
    return ClientCost(
        cpu_share=sum(spent_s) / windows.total_s,
        busiest_share=max(spent_s, default=0.0) / windows.total_s,
        kernel_stamps=fleet.stamped_by_kernel,
        max_lag_s=worst_lag_s(fleet.lags(), windows.start_ns, windows.end_ns),
        warmup_s=(windows.start_ns - played.began_ns) / NS,
        load_began_ns=played.began_ns,
    )


def steady_gate(spec: BenchSpec, played: Played) -> Gate:
    """Whether the warm-up reached a steady state."""
    counts = ", ".join(map(str, played.counts)) or "none"
    if played.exhausted and not played.steady:
        return Gate(
            name="steady",
            passed=False,
            evidence=f"the workload ended during the warm-up; chunks in its successive stretches: {counts}",
            remedy="use a longer file, or replay it as a whole with trace arrival",
        )
    return Gate(
        name="steady",
        passed=played.steady,
        evidence=f"chunks in successive stretches of warm-up: {counts}",
        remedy=""
        if played.steady
        else f"warm-up ended after {spec.warmup_max_s:g} s without two stretches that agree: "
        "allow a longer warm-up (warmup_max_s, --warmup-max), or look for what disturbs the machine",
    )


def dead_gate(after_ns: int) -> Gate:
    """The server died."""
    return Gate(
        name="server-alive",
        passed=False,
        evidence=f"the server died {after_ns / NS:.1f} s into the load",
        remedy="read the end of the server's log",
    )


def _uniform(bounds: tuple[int, int]) -> Lengths:
    low, high = bounds
    return Lengths(kind="uniform", mean=(low + high) / 2, low=low, high=high)
