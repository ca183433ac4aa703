"""Verbs that measure a server outside a campaign: bench, sweep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assay.formats.columns import RequestColumns
    from assay.load.bench import Prepared
    from assay.load.columns import Columns
    from assay.ports_bench import BenchProgress
    from assay.records.bench import BenchResult, BenchSpec, SweepResult

RESULT = "result.json"
VLLM = "vllm.json"
LLMD = "llm-d.json"
SWEEP = "sweep.json"
PREPARING = "asking the server, measuring this client"


def bench(spec: BenchSpec, folder: Path, progress: BenchProgress) -> BenchResult:
    """One load test of a server; writes requests.parquet, result.json, vllm.json and llm-d.json into `folder`.

    Raises:
        UsageError: the workload does not fit the server, its file is malformed, or no model was named (an empty
            `spec.model`) and the server has several.
        EngineError: the server cannot be reached.
        RecordError: the folder cannot be written.
    """
    from assay.load.bench import prepare
    from assay.render.bench_words import arrival_words

    progress.phase(PREPARING, 0.0, None)
    prepared = prepare(spec)
    _say_first(prepared, progress)
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
    _say_first(first, progress)
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
    prepared: Prepared,
    folder: Path,
    progress: BenchProgress,
    alive: Callable[[], bool] = lambda: True,
    judge: Callable[[BenchResult], BenchResult] = lambda result: result,
) -> BenchResult:
    """One load test, with its files; result.json is the last of them.

    Args:
        prepared: what is known of server and client.
        folder: where the files go.
        progress: where to say what is being done.
        alive: whether the server still lives.
        judge: adds what the caller knows of the result, once the load is over and before anything is written.

    Raises:
        AssayError: as `bench`.
    """
    from assay.errors import RecordError
    from assay.load.bench import measure_point

    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = measure_point(prepared, folder, progress, alive)
        result = judge(found.result)
        _write(folder, result, found.requests)
    except OSError as error:
        raise RecordError(
            f"cannot write {folder}: {error}", hint="free disk space, or give another --folder"
        ) from error
    finally:
        tidy(folder)
    return result


def _say_first(prepared: Prepared, progress: BenchProgress) -> None:
    """What the user may have meant otherwise."""
    for note in prepared.notes:
        progress.result(note)
    if prepared.left_out:
        progress.result("left out of the file: " + ", ".join(f"{n} {why}" for why, n in prepared.left_out.items()))


def tidy(folder: Path) -> None:
    """Remove what only the load needed; of a test that was interrupted, that is all there is."""
    from contextlib import suppress

    from assay.load.runner import spools

    with suppress(OSError):
        for left in [*spools(folder), folder / "corpus.bin", *folder.glob("load-*.log")]:
            if left.suffix != ".log" or (left.exists() and not left.stat().st_size):
                left.unlink(missing_ok=True)
        folder.rmdir()  # only an empty one goes


def _write(folder: Path, result: BenchResult, requests: Columns) -> None:
    import json

    from assay.formats.llmd_export import llmd_report
    from assay.formats.vllm_export import vllm_json
    from assay.store.atomic import atomic_write

    if result.measures is not None:
        found = _columns(requests, result)
        atomic_write(folder / VLLM, json.dumps(vllm_json(result, found, detailed=True)).encode())
        atomic_write(folder / LLMD, json.dumps(llmd_report(result), indent=2).encode())
    atomic_write(folder / RESULT, result.model_dump_json(indent=2).encode())


def _columns(requests: Columns, result: BenchResult) -> RequestColumns:
    """Requests that ended in the windows, whole or failed: what the exported percentiles are of."""
    import numpy as np

    from assay.formats.columns import RequestColumns
    from assay.load.columns import MISSING

    def known(counts: list[int]) -> list[int | None]:
        return [None if count == MISSING else count for count in counts]

    begin_ns, end_ns = result.windows_ns or (0, 0)
    ended = (requests.ended_ns >= begin_ns) & (requests.ended_ns < end_ns) & ~requests.cut
    counted = np.flatnonzero(ended)[np.argsort(requests.sent_ns[ended], kind="stable")]
    sent_ns, first_ns = requests.sent_ns[counted], requests.first_ns[counted]
    ends = np.cumsum(requests.num_chunks)
    begins = ends - requests.num_chunks
    return RequestColumns(
        input_tokens=known(requests.input_tokens[counted].tolist()),
        output_tokens=known(requests.output_tokens[counted].tolist()),
        ttft_s=[
            None if first == MISSING else (first - sent) / 1e9
            for first, sent in zip(first_ns.tolist(), sent_ns.tolist(), strict=True)
        ],
        latency_s=((requests.ended_ns[counted] - sent_ns) / 1e9).tolist(),
        itl_s=[(np.diff(requests.chunk_ns[begins[one] : ends[one]]) / 1e9).tolist() for one in counted],
        start_s=((sent_ns - begin_ns) / 1e9).tolist(),
        error=[requests.errors[one] for one in counted],
    )


def _again(prepared: Prepared, spec: BenchSpec) -> Prepared:
    from dataclasses import replace

    return replace(prepared, spec=spec)


def _told(point: BenchResult, streams: int) -> tuple[str, bool | None]:
    if point.measures is None or not point.valid:
        failed = ", ".join(gate.name for gate in point.gates if not gate.passed)
        return f"{streams} streams: not to be used: {failed}", False
    return f"{streams} streams: {point.measures.output_tokens_per_s:,.0f} output tokens/s", True
