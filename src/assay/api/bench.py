"""Verbs that measure a server outside a campaign: bench, sweep, find_model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from assay.formats.columns import RequestColumns
    from assay.load.bench import Prepared
    from assay.load.spool import SpooledRequest
    from assay.ports_bench import BenchProgress
    from assay.records.bench import BenchResult, BenchSpec, SweepResult

RESULT = "result.json"
REQUESTS = "requests.parquet"
VLLM = "vllm.json"
LLMD = "llm-d.json"
SWEEP = "sweep.json"
PREPARING = "asking the server, measuring this client"


def find_model(url: str, api_key_env: str | None = None) -> str:
    """The model that a server serves: the only one, or the first.

    Raises:
        EngineError: nobody answers, or it names none.
    """
    from assay.load.server import Server

    return Server(url, api_key_env).served().model


def bench(spec: BenchSpec, folder: Path, progress: BenchProgress) -> BenchResult:
    """One load test of a server; writes requests.parquet, result.json, vllm.json and llm-d.json into `folder`.

    Raises:
        UsageError: the workload does not fit the server, or its file is malformed.
        EngineError: the server cannot be reached.
        RecordError: the folder cannot be written.
    """
    from assay.load.bench import prepare
    from assay.render.bench_words import arrival_words

    progress.phase(PREPARING, 0.0, None)
    prepared = prepare(spec)
    if prepared.left_out:
        progress.result("left out of the file: " + ", ".join(f"{n} {why}" for why, n in prepared.left_out.items()))
    progress.phase(f"{prepared.spec.model}: {arrival_words(prepared.spec.arrival)}", 0.0, None)
    return measured(prepared, folder, progress)


def sweep(spec: BenchSpec, concurrencies: Sequence[int], folder: Path, progress: BenchProgress) -> SweepResult:
    """The same load test with each number of streams, in rising order; a folder for each.

    Raises:
        AssayError: as `bench`.
    """
    from assay.load.bench import prepare
    from assay.records.bench import Arrival, SweepResult
    from assay.stats.knee import knee
    from assay.store.atomic import atomic_write

    progress.phase(PREPARING, 0.0, None)
    first = prepare(spec)
    points: list[BenchResult] = []
    expected_s = spec.window_s * spec.windows + 2 * spec.warmup_min_s
    for number, streams in enumerate(sorted(concurrencies)):
        text = f"point {number + 1} of {len(concurrencies)}: {streams} streams"
        progress.phase(text, number * expected_s, len(concurrencies) * expected_s)
        arrival = Arrival(kind="closed", concurrency=streams)
        # Fresh prompts at every point: what one has sent must not be in the prefix cache of the next.
        at = first.spec.model_copy(update={"arrival": arrival, "seed": spec.seed + 1000 * number})
        points.append(measured(_again(first, at), folder / f"streams-{streams}", progress))
        progress.result(*_told(points[-1], streams))
    found = knee(
        [point.measures.output_tokens_per_s if point.measures else None for point in points],
        [point.measures.e2e.quantiles.p50_s if point.measures else None for point in points],
    )
    result = SweepResult(points=points, knee=found.index, knee_reason=found.reason)
    atomic_write(folder / SWEEP, result.model_dump_json(indent=2).encode())
    return result


def measured(
    prepared: Prepared, folder: Path, progress: BenchProgress, alive: Callable[[], bool] = lambda: True
) -> BenchResult:
    """One load test, with its files.

    Raises:
        AssayError: as `bench`.
    """
    from assay.errors import RecordError
    from assay.load.bench import measure_point

    try:
        folder.mkdir(parents=True, exist_ok=True)
        result = measure_point(prepared, folder, progress, alive)
        _write(folder, result)
    except OSError as error:
        raise RecordError(
            f"cannot write {folder}: {error}", hint="free disk space, or give another --folder"
        ) from error
    finally:
        _tidy(folder)
    return result


def _tidy(folder: Path) -> None:
    """Remove what only the load needed; of a test that was interrupted, that is all there is."""
    from contextlib import suppress

    from assay.load.runner import spools

    with suppress(OSError):
        for left in [*spools(folder), folder / "corpus.bin", *folder.glob("load-*.log")]:
            if left.suffix != ".log" or (left.exists() and not left.stat().st_size):
                left.unlink(missing_ok=True)
        folder.rmdir()  # only an empty one goes


def _write(folder: Path, result: BenchResult) -> None:
    import json

    from assay.formats.llmd_export import llmd_report
    from assay.formats.vllm_export import vllm_json
    from assay.load.runner import spools
    from assay.load.spool import read_spools
    from assay.load.table import write_parquet
    from assay.store.atomic import atomic_write

    write_parquet(folder / REQUESTS, read_spools(spools(folder)), *(result.windows_ns or (None, None)))
    atomic_write(folder / RESULT, result.model_dump_json(indent=2).encode())
    if result.measures is not None:
        columns = _columns(read_spools(spools(folder)), result)
        atomic_write(folder / VLLM, json.dumps(vllm_json(result, columns, detailed=True)).encode())
        atomic_write(folder / LLMD, json.dumps(llmd_report(result), indent=2).encode())


def _columns(requests: Iterable[SpooledRequest], result: BenchResult) -> RequestColumns:
    """Requests that ended in the windows, whole or failed: what the exported percentiles are of."""
    from itertools import pairwise

    from assay.formats.columns import RequestColumns
    from assay.load.exchange import CUT_BY_DRAIN

    begin_ns, end_ns = result.windows_ns or (0, 0)
    counted = sorted(
        (one for one in requests if begin_ns <= one.ended_ns < end_ns and one.error != CUT_BY_DRAIN),
        key=lambda one: one.sent_ns,
    )
    chunks = [one.chunk_ns for one in counted]
    return RequestColumns(
        input_tokens=[one.input_tokens for one in counted],
        output_tokens=[one.output_tokens for one in counted],
        ttft_s=[(at[0] - one.sent_ns) / 1e9 if at else None for one, at in zip(counted, chunks, strict=True)],
        latency_s=[(one.ended_ns - one.sent_ns) / 1e9 for one in counted],
        itl_s=[[(later - earlier) / 1e9 for earlier, later in pairwise(at)] for at in chunks],
        start_s=[(one.sent_ns - begin_ns) / 1e9 for one in counted],
        error=[one.error for one in counted],
    )


def _again(prepared: Prepared, spec: BenchSpec) -> Prepared:
    from dataclasses import replace

    return replace(prepared, spec=spec)


def _told(point: BenchResult, streams: int) -> tuple[str, bool | None]:
    if point.measures is None or not point.valid:
        failed = ", ".join(gate.name for gate in point.gates if not gate.passed)
        return f"{streams} streams: not to be used: {failed}", False
    return f"{streams} streams: {point.measures.output_tokens_per_s:,.0f} output tokens/s", True
