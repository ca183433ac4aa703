"""What each tool says it measured, read from its own report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from case import Case
from truth import NS, Log, whole

MS = 1e-3
CONFESSION = re.compile(
    r"saturat|client[- ]bound|cannot keep up|can't keep up|event[- ]loop lag|bottleneck", re.IGNORECASE
)
MAX_QUOTE = 160


class NoReportError(Exception):
    """The tool left no report, or one that is not understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """Percentiles as the tool gives them; None: it does not give that one."""

    ttft_p50_s: float | None
    ttft_p99_s: float | None
    itl_p99_s: float | None
    tokens_per_s: float | None = None
    duration_s: float | None = None
    """From its first request until it had read everything."""
    num_failed: int | None = None
    said: str | None = None
    """Its own words, where it warned that it could not keep up."""
    window_ns: tuple[int, int] | None = None
    """Its percentiles are over requests that ended, and gaps that closed, in this time (monotonic clock); None: all."""
    stamps: Log | None = None
    """Its stamp of every chunk, by the server's request numbers, where it keeps them."""


def from_stamps(folder: Path, case: Case) -> Reported:
    """The plain clients: percentiles over the stamps that they took, of cut requests as far as they got."""
    stamps = Log.read(_existing(folder / "stamps.bin"))
    ttft, itl = stamps.ttft_s(), stamps.itl_s()
    if not len(ttft) or not len(itl):
        raise NoReportError("it read no two tokens of any request")
    duration_s = float(stamps.last.max() - stamps.first.min()) / NS
    return Reported(
        ttft_p50_s=float(np.quantile(ttft, 0.5)),
        ttft_p99_s=float(np.quantile(ttft, 0.99)),
        itl_p99_s=float(np.quantile(itl, 0.99)),
        tokens_per_s=len(stamps.chunks()) / duration_s,
        duration_s=duration_s,
        num_failed=int(np.count_nonzero(~whole(stamps, case))),
        stamps=stamps,
    )


def from_flat(folder: Path, case: Case) -> Reported:  # noqa: ARG001 - one signature for all readers
    """vLLM's result file and SGLang's, which has the same keys as one JSON line a run."""
    lines = _existing(folder / "report.json").read_text().strip()
    found: dict[str, Any] = json.loads(lines if lines.startswith("{\n") else lines.splitlines()[-1])
    return Reported(
        ttft_p50_s=_ms(found.get("median_ttft_ms")),
        ttft_p99_s=_ms(found.get("p99_ttft_ms")),
        itl_p99_s=_ms(found.get("p99_itl_ms")),
        tokens_per_s=found.get("output_throughput"),
        duration_s=found.get("duration"),
        num_failed=found.get("failed"),
        said=confession(folder),
    )


def from_guidellm(folder: Path, case: Case) -> Reported:  # noqa: ARG001
    """GuideLLM's JSON; its inter-token latency is a mean per request, so it has no percentile of gaps."""
    (run, *_) = json.loads(_existing(folder / "report.json").read_text())["benchmarks"]
    ttft = run["metrics"]["time_to_first_token_ms"]["successful"]
    totals = run["metrics"]["request_totals"]
    warnings = [str(warning.get("message", warning)) for warning in run.get("warnings") or []]
    return Reported(
        ttft_p50_s=_ms(ttft["median"]),
        ttft_p99_s=_ms(ttft["percentiles"]["p99"]),
        itl_p99_s=None,
        tokens_per_s=run["metrics"]["output_tokens_per_second"]["successful"]["mean"],
        duration_s=run["duration"],
        num_failed=totals["errored"],
        said="; ".join(warnings)[:MAX_QUOTE] or confession(folder),
    )


def from_aiperf(folder: Path, case: Case) -> Reported:  # noqa: ARG001
    """AIPerf's summary; what it calls inter-chunk latency are the gaps (its inter-token latency is a mean)."""
    found = json.loads(_existing(*folder.rglob("profile_export_aiperf.json")).read_text())

    def metric(name: str, key: str) -> float | None:
        entry = found.get(name) or {}
        value = entry.get(key)
        return None if value is None else float(value)

    failed = metric("error_request_count", "avg")
    return Reported(
        ttft_p50_s=_ms(metric("time_to_first_token", "p50")),
        ttft_p99_s=_ms(metric("time_to_first_token", "p99")),
        itl_p99_s=_ms(metric("inter_chunk_latency", "p99")),
        tokens_per_s=metric("output_token_throughput", "avg"),
        duration_s=metric("benchmark_duration", "avg"),
        num_failed=None if failed is None else int(failed),
        said=confession(folder),
    )


def from_assay(folder: Path, case: Case) -> Reported:  # noqa: ARG001
    """`assay bench --json`; a p99 that it withholds, because the samples are few, is taken from its request file."""
    result = json.loads(_existing(folder / "client.out").read_text())
    failed_gates = [f"{gate['name']}: {gate['evidence']}" for gate in result["gates"] if not gate["passed"]]
    measures, window_ns = result["measures"], result["windows_ns"]
    said = "; ".join(failed_gates)[:MAX_QUOTE] or None
    if measures is None or window_ns is None:
        return Reported(ttft_p50_s=None, ttft_p99_s=None, itl_p99_s=None, said=said)
    ttft, itl = (measures[name]["quantiles"] for name in ("ttft", "itl"))
    return Reported(
        ttft_p50_s=ttft["p50_s"],
        ttft_p99_s=ttft["p99_s"] or _ttft_p99_s(*folder.rglob("requests.parquet"), window_ns=window_ns),
        itl_p99_s=itl["p99_s"],
        tokens_per_s=measures["output_tokens_per_s"],
        num_failed=sum(result["errors"].values()),
        said=said,
        window_ns=tuple(window_ns),
    )


def _ttft_p99_s(*files: Path, window_ns: list[int]) -> float:
    from pyarrow import parquet  # noqa: PLC0415 - Assay's own dependency, wanted for its own report only

    rows = parquet.read_table(_existing(*files), columns=["error", "sent_ns", "ended_ns", "chunk_ns"]).to_pylist()
    low, high = window_ns
    ttft_ns = [
        row["chunk_ns"][0] - row["sent_ns"] for row in rows if not row["error"] and low <= row["ended_ns"] < high
    ]
    return float(np.quantile(ttft_ns, 0.99) / NS)


def confession(folder: Path) -> str | None:
    """The line of the tool's output in which it says that it is the limit, if there is one."""
    for name in ("client.txt", "client.out"):
        for line in (folder / name).read_text(errors="replace").splitlines():
            if CONFESSION.search(line):
                return line.strip()[:MAX_QUOTE]
    return None


def last_words(folder: Path, num_lines: int = 3) -> str:
    """The end of what a client printed: why it failed, most often."""
    lines = [line.strip() for name in ("client.out", "client.txt") for line in _lines(folder / name) if line.strip()]
    return " / ".join(lines[-num_lines:])[-400:]


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.exists() else []


def _existing(*paths: Path) -> Path:
    for path in paths:
        if path.exists() and path.stat().st_size:
            return path
    raise NoReportError(f"it left no {' or '.join(_names(paths)) or 'report'}")


def _names(paths: Iterable[Path]) -> list[str]:
    return [path.name for path in paths]


def _ms(value: float | None) -> float | None:
    return None if value is None else value * MS
