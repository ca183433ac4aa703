"""`assay bench`: one load test of a server at one operating point, measured, judged and written down."""

from __future__ import annotations

import platform
import time
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from assay.errors import UsageError
from assay.load import bench_metrics as bm
from assay.load.bench_gates import bench_gates
from assay.load.calibrate import Calibration, calibrate, processes_for, usable_cores
from assay.load.columns import Columns, columns, workload_sha256
from assay.load.fleet import Fleet
from assay.load.metrics import NS
from assay.load.play import Play, Played
from assay.load.runner import jobs, spools
from assay.load.server import Served, Server
from assay.load.spool import read_spools
from assay.load.table import writing
from assay.load.watch import Watch
from assay.load.workloads import build
from assay.load.workloads.prompts import TextPrompts, corpus_text
from assay.ports_bench import BenchProgress
from assay.records.bench import BenchResult, BenchSpec, Client, StampSource, Synthetic

CALIBRATION_WORDS = (64, 512)
"""Lengths of the two texts by which words are made into tokens, where the tokenizer cannot be asked."""
REQUESTS = "requests.parquet"
MAX_INPUT_IN_PREFLIGHT = 1 << 20
STREAMS_OF_OPEN_LAW = 64
"""How many streams an open arrival law without a cap is taken to be when load processes are chosen."""
GROWTH_NS = 60 * NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is known of server and client before the load."""

    spec: BenchSpec
    served: Served
    corpus: list[int] | None
    """The built-in text in the server's tokens; None: prompts are text."""
    tokens_per_word: float
    calibration: Calibration
    left_out: dict[str, int]
    """Requests of the workload's file that are not used, by reason."""

    @property
    def notes(self) -> list[str]:
        """What was decided for the user."""
        return [self.served.note] if self.served.note else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A load test as it ended, and its requests."""

    result: BenchResult
    requests: Columns


def prepare(spec: BenchSpec) -> Prepared:
    """Ask the server what it serves and how it counts; learn what this client can take.

    Raises:
        EngineError: nobody answers.
        UsageError: the workload does not fit the server, or the server has several models and none was named.
    """
    server = Server(spec.url, spec.api_key_env)
    served = server.served(spec.model or None)
    spec = _after_the_ramp(spec.model_copy(update={"url": server.url, "model": served.model}))
    corpus = None if spec.endpoint == "chat" else server.tokenize(corpus_text(spec.seed))
    tokens_per_word = 1.3 if corpus is not None else _tokens_per_word(server, spec)
    _refuse_too_long(spec, served)
    source = build(spec.workload, spec.seed, TextPrompts(tokens_per_word))
    if source.file_sha256 is not None:
        spec = spec.model_copy(update={"workload": spec.workload.model_copy(update={"sha256": source.file_sha256})})
    return Prepared(
        spec=spec,
        served=served,
        corpus=corpus,
        tokens_per_word=tokens_per_word,
        calibration=calibrate(),
        left_out=dict(source.skipped),
    )


def measure_point(
    prepared: Prepared, folder: Path, progress: BenchProgress, alive: Callable[[], bool] = lambda: True
) -> Measured:
    """One load test; leaves requests.parquet in `folder`, and its spools until the caller removes them.

    Raises:
        AssayError: the load could not be made.
    """
    spec = prepared.spec
    corpus = None
    if prepared.corpus is not None:
        corpus = folder / "corpus.bin"
        corpus.write_bytes(array("i", prepared.corpus).tobytes())
    streams = spec.arrival.concurrency or STREAMS_OF_OPEN_LAW
    # A process without a stream of its own would send nothing.
    processes = min(spec.processes or processes_for(streams, prepared.calibration, usable_cores()), streams)
    todo = jobs(spec, folder, corpus, processes, tokens_per_word=prepared.tokens_per_word)
    started_at_ns = time.time_ns()
    server = Server(spec.url, spec.api_key_env)
    fleet = Fleet(todo, folder)
    try:
        watch = Watch(spec, fleet, server, progress)
        played = Play(spec, fleet, alive, tick=watch.tick).run()
    finally:
        fleet.close()
    return _result(prepared, fleet, played, folder, watch, started_at_ns)


def _result(
    prepared: Prepared, fleet: Fleet, played: Played, folder: Path, watch: Watch, started_at_ns: int
) -> Measured:
    spec, windows = prepared.spec, played.windows
    bounds_ns = (windows.start_ns, windows.end_ns) if windows else None
    table = columns(writing(folder / REQUESTS, read_spools(spools(folder)), *(bounds_ns or (None, None))))
    sha256 = workload_sha256(table)
    client = _client(prepared, fleet, played, table)
    offered = spec.arrival.rate_per_s if spec.arrival.kind not in {"closed", "trace"} else None
    measures = None
    if windows is not None and len(table):
        measures = bm.bench_measures(table, windows, spec.slo, offered)
    gates = bench_gates(spec, table, played, client, measures, watch.counters, sha256)
    failed = [e for e, cut, ok in zip(table.errors, table.cut, table.ok, strict=True) if not cut and not ok and e]
    ended_ns = windows.end_ns if windows else int(table.ended_ns.max(initial=played.began_ns))
    result = BenchResult(
        spec=spec,
        started_at_ns=started_at_ns,
        assay_version=version("assay"),
        engine=prepared.served.engine,
        machine=f"{platform.node() and platform.machine()}, {usable_cores()} usable cores, {platform.system()}",
        measures=measures,
        client=client,
        gates=gates,
        errors=dict(Counter(error.partition(":")[0] for error in failed)),
        first_error=failed[0] if failed else None,
        num_requests=int((~table.cut).sum()),
        series=bm.series(table, played.began_ns, ended_ns, windows),
        workload_sha256=sha256,
        realised=bm.realised(table),
        folder=str(folder),
        left_out=prepared.left_out,
        notes=prepared.notes,
        windows_ns=bounds_ns,
    )
    return Measured(result=result, requests=table)


def _client(prepared: Prepared, fleet: Fleet, played: Played, table: Columns) -> Client:
    windows = played.windows
    processes = len(fleet.ended)
    stamps: StampSource = "kernel" if fleet.stamped_by_kernel else "event-loop"
    start_ns, end_ns = (windows.start_ns, windows.end_ns) if windows else (played.began_ns, time.monotonic_ns())
    spent_s = fleet.cpu_s(start_ns, end_ns)
    seconds = max((end_ns - start_ns) / NS, 1e-9)
    lags = [lag.late_s for lag in fleet.lags() if start_ns <= lag.at_ns < end_ns]
    late = bm.schedule_error_s(table, windows) if windows else np.empty(0)
    tokens = bm.arrived_tokens(table, start_ns, end_ns)
    rss = [(at, size) for at, size in fleet.rss_marks if start_ns <= at < end_ns]
    return Client(
        processes=processes,
        stamps=stamps,
        cpu_share=sum(spent_s) / seconds,
        busiest_share=max(spent_s, default=0.0) / seconds,
        cpu_s_per_million_tokens=sum(spent_s) / tokens * 1e6 if tokens else None,
        lag_p50_s=bm.quantile(lags, 0.5),
        lag_p99_s=bm.quantile(lags, 0.99),
        lag_max_s=max(lags, default=None),
        read_delay_p50_s=fleet.read_delay_s(0.5),
        read_delay_p99_s=fleet.read_delay_s(0.99),
        schedule_error_p50_s=bm.quantile(late, 0.5),
        schedule_error_p99_s=bm.quantile(late, 0.99),
        schedule_error_max_s=float(late.max()) if len(late) else None,
        merged_share=bm.merged_share(table),
        rss_bytes=max((size for _, size in fleet.rss_marks), default=None),
        rss_growth_bytes_per_s=_slope(rss),
        ceiling_tokens_per_s=processes * prepared.calibration.ceiling_tokens_per_s,
        null_server_tokens_per_s=prepared.calibration.null_server_tokens_per_s,
    )


def _tokens_per_word(server: Server, spec: BenchSpec) -> float:
    """By the slope between two texts, so that a chat template's own tokens do not count."""
    words = corpus_text(spec.seed).split()
    counts = [
        server.prompt_tokens(spec.model, " ".join(words[:number]), chat=spec.endpoint == "chat")
        for number in CALIBRATION_WORDS
    ]
    few, many = counts
    if few is None or many is None or many <= few:
        return 1.3
    return (many - few) / (CALIBRATION_WORDS[1] - CALIBRATION_WORDS[0])


def _after_the_ramp(spec: BenchSpec) -> BenchSpec:
    """While the rate rises there is no steady load: the warm-up begins to count when it has risen."""
    if spec.arrival.kind != "ramp":
        return spec
    ramp_s = spec.arrival.ramp_s
    return spec.model_copy(
        update={"warmup_min_s": spec.warmup_min_s + ramp_s, "warmup_max_s": spec.warmup_max_s + ramp_s}
    )


def _refuse_too_long(spec: BenchSpec, served: Served) -> None:
    workload = spec.workload
    if served.max_tokens is None or not isinstance(workload, Synthetic):
        return
    longest = [
        round(lengths.mean) if lengths.kind == "fixed" else lengths.high
        for lengths in (workload.input, workload.output)
    ]
    asked = sum(length for length in longest if length < MAX_INPUT_IN_PREFLIGHT) + workload.prefix_tokens
    if asked > served.max_tokens:
        raise UsageError(
            f"input plus output may reach {asked} tokens, and {served.model} takes {served.max_tokens}",
            hint="ask for shorter requests (--input, --output), or start the server with a larger context",
        )


def _slope(points: list[tuple[int, int]]) -> float | None:
    """Least squares of bytes over seconds; None for less than a minute: buffers fill before memory is level."""
    if len(points) < 2 or points[-1][0] - points[0][0] < GROWTH_NS:  # noqa: PLR2004 - a slope needs two
        return None
    at, size = np.array(points, dtype=np.float64).T
    return float(np.polyfit((at - at[0]) / NS, size, 1)[0])
