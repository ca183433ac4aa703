"""GuideLLM's `benchmarks.json`: a list of benchmarks, each with distributions and, unless told not to, its requests.

Read from its source of 2025 and 2026: `request_latency` is in seconds, everything else in milliseconds; a percentile
is an observed value (the first whose cumulated weight reaches it), not interpolated. `inter_token_latency_ms` is a mean
per request, (last - first token) / (tokens - 1), each weighted by its tokens; `time_per_output_token_ms` includes the
first token. Requests are those of the whole run, the distributions those of its measured part.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.formats.columns import RequestColumns
from assay.formats.definitions import latencies
from assay.formats.fields import Fields
from assay.formats.told import Told, compared_all, rates, remarks
from assay.records.imported import ImportedResult, LatencyName, Rates, Summary

MS = 1_000
NO_STREAM = "the file keeps no single requests: GuideLLM's `sample_size` (before 0.7 `--sample-requests`) left them out"
NEEDS: dict[LatencyName, str] = {
    "ttft": NO_STREAM,
    "tpot": NO_STREAM,
    "itl": "GuideLLM keeps no time of single chunks; its inter-token latency is a mean per request (our TPOT)",
    "e2e": NO_STREAM,
}
METRICS: dict[LatencyName, tuple[str, int, str]] = {
    "ttft": ("time_to_first_token_ms", MS, "GuideLLM's TTFT: request start to its first token, reasoning included"),
    "tpot": (
        "inter_token_latency_ms",
        MS,
        "GuideLLM's inter_token_latency_ms: (last - first token) / (tokens - 1) of each request, weighted by tokens",
    ),
    "e2e": ("request_latency", 1, "GuideLLM's request_latency: request start to its end"),
}
"""Its key, units a second, and what it is."""


def read(documents: Sequence[Fields]) -> list[ImportedResult]:
    """One result for each benchmark of the reports.

    Raises:
        UsageError: a value has the wrong type.
    """
    benchmarks = [(report, each) for report in documents for each in report.children("benchmarks") or []]
    return [_result(report, fields, index) for index, (report, fields) in enumerate(benchmarks)]


def _result(report: Fields, fields: Fields, index: int) -> ImportedResult:
    metrics = fields.inside("metrics")
    requests = _measured(fields)
    columns = _columns(requests) if requests else None
    ours = latencies(columns) if columns else None
    told = {name: Told(summary=_told(metrics, *key[:2]), definition=key[2]) for name, key in METRICS.items()}
    totals = fields if "request_totals" in fields else metrics
    counts = totals.inside("request_totals")
    completed, failed = counts.count("successful"), counts.count("errored")
    duration_s = fields.number("duration")
    return ImportedResult(
        file=fields.file,
        index=index,
        kind="guidellm",
        tool="guidellm benchmark",
        tool_version=report.glance("metadata").label("guidellm_version"),
        model=_model(report, fields),
        settings=_settings(fields),
        num_requests=counts.count("total"),
        completed=completed,
        failed=failed,
        duration_s=duration_s,
        rates=rates(
            duration_s=duration_s,
            requests=completed,
            output_tokens=_good(metrics, "output_token_count").number("total_sum"),
            input_tokens=_good(metrics, "prompt_token_count").number("total_sum"),
        ),
        tool_rates=Rates(
            requests_per_s=_good(metrics, "requests_per_second").number("mean"),
            output_tokens_per_s=_good(metrics, "output_tokens_per_second").number("mean"),
            total_tokens_per_s=_good(metrics, "tokens_per_second").number("mean"),
        ),
        latencies=compared_all(ours, told, NEEDS),
        warnings=_warnings(counts, columns, completed) + remarks(columns, ours, failed),
    )


def _measured(fields: Fields) -> list[Fields]:
    """Successful requests that overlap the measured part of the run, as GuideLLM itself chooses them."""
    scheduler = fields.inside("scheduler_metrics")
    start, end = scheduler.number("measure_start_time"), scheduler.number("measure_end_time")
    found = []
    for request in fields.inside("requests").children("successful") or []:
        began = request.number("request_start_time")
        ended = request.number("request_end_time")
        early = start is not None and ended is not None and ended < start
        late = end is not None and began is not None and began > end
        if not early and not late:
            found.append(request)
    return found


def _columns(requests: Sequence[Fields]) -> RequestColumns:
    count = len(requests)
    return RequestColumns(
        input_tokens=[request.count("prompt_tokens") for request in requests],
        output_tokens=[request.count("output_tokens") for request in requests],
        ttft_s=[_ttft_s(request) for request in requests],
        latency_s=[_latency_s(request) for request in requests],
        itl_s=[None] * count,
        start_s=[request.number("request_start_time") for request in requests],
        error=[None] * count,
    )


def _ttft_s(request: Fields) -> float | None:
    told = request.number("time_to_first_token_ms")
    if told is not None:
        return told / MS
    timings = request.inside("info", "timings")
    return _between(timings.number("request_start"), timings.number("first_token_iteration"))


def _latency_s(request: Fields) -> float | None:
    told = request.number("request_latency")
    if told is not None:
        return told
    timings = request.inside("info", "timings")
    return _between(timings.number("request_start"), timings.number("request_end"))


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else end - start


def _good(metrics: Fields, key: str) -> Fields:
    """The distribution over successful requests."""
    return metrics.inside(key, "successful")


def _told(metrics: Fields, key: str, units_a_second: int) -> Summary | None:
    found = _good(metrics, key)
    percentiles = found.inside("percentiles")
    values = {"mean_s": found.number("mean")}
    values |= {f"{name}_s": percentiles.number(name) for name in ("p50", "p90", "p95", "p99")}
    if not any(values.values()):
        return None
    seconds = {name: None if value is None else value / units_a_second for name, value in values.items()}
    # of a weighted distribution GuideLLM counts the weights, which are tokens
    count = None if key == METRICS["tpot"][0] else found.count("count")
    return Summary(num_samples=count, **seconds)


def _model(report: Fields, fields: Fields) -> str | None:
    places = (
        fields.glance("config", "backend"),
        report.glance("args"),
        report.glance("args", "backend_kwargs"),
        fields.glance("worker"),
    )
    return next((found for place in places if (found := place.label("model", "backend_model"))), None)


def _settings(fields: Fields) -> dict[str, str | int | float]:
    strategy = fields.glance("config", "strategy")
    if not strategy.data:
        strategy = fields.glance("args", "strategy")
    return strategy.words(strategy="type_", rate_per_s="rate", concurrency="streams", max_concurrency="max_concurrency")


def _warnings(counts: Fields, columns: RequestColumns | None, completed: int | None) -> list[str]:
    found = []
    if incomplete := counts.count("incomplete"):
        found.append(f"{incomplete:,} requests were cut off when the benchmark ended; they are in no latency")
    if columns and completed is not None and len(columns) != completed:
        kept = f"{len(columns):,} of {completed:,} successful requests"
        found.append(f"the file keeps {kept}: recomputed latencies rest on a sample")
    found.append("GuideLLM's percentiles are observed values, ours lie between two: small samples differ by that")
    return found
