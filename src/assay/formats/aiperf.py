"""AIPerf: `profile_export.jsonl` (one record a request) and `profile_export_aiperf.json` (its summaries).

Read from AIPerf's source and its guide to these files: every value stands with its unit; `request_latency` ends with
the last chunk with content; `inter_token_latency` is (latency - TTFT) / (tokens - 1), our TPOT (with
`--per-chunk-usage` the tokens of the first chunk are taken off instead of one); `inter_chunk_latency` is our ITL.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.formats.columns import RequestColumns
from assay.formats.definitions import latencies
from assay.formats.fields import Fields
from assay.formats.told import Told, compared_all, rates, remarks
from assay.records.imported import ImportedResult, LatencyName, Rates, Summary

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
"""Seconds in each unit that AIPerf writes."""
METRICS: dict[LatencyName, tuple[str, str]] = {
    "ttft": (
        "time_to_first_token",
        "AIPerf's time_to_first_token: request sent to its first chunk with content, as ours",
    ),
    "tpot": ("inter_token_latency", "AIPerf's inter_token_latency: (latency - TTFT) / (tokens - 1), what we call TPOT"),
    "itl": ("inter_chunk_latency", "AIPerf's inter_chunk_latency: every gap between chunks with content, our ITL"),
    "e2e": ("request_latency", "AIPerf's request_latency: request sent to its last chunk with content, as ours"),
}
SUMMARY_ONLY: dict[LatencyName, str] = dict.fromkeys(
    METRICS, "this is AIPerf's summary; `profile_export.jsonl` beside it has the single requests"
)
NOT_STREAMED: dict[LatencyName, str] = {
    name: f"no record has {key}: was the run streamed, or made with `--export-level summary`?"
    for name, (key, _) in METRICS.items()
}
NS_PER_S = 1e9


def read(documents: Sequence[Fields]) -> list[ImportedResult]:
    """One result for a file of records, one for each summary.

    Raises:
        UsageError: a value has the wrong type, or a unit that is not known.
    """
    if is_record(documents[0]):
        return [_from_records(documents)]
    return [_from_summary(fields, index) for index, fields in enumerate(documents)]


def is_record(fields: Fields) -> bool:
    """Whether this is the record of one request."""
    return isinstance(fields.data.get("metadata"), dict) and isinstance(fields.data.get("metrics"), dict)


def _from_records(documents: Sequence[Fields]) -> ImportedResult:
    measured = [each for each in documents if each.inside("metadata").label("benchmark_phase") != "warmup"]
    columns = _columns(measured)
    ours = latencies(columns)
    duration_s = _duration_s(measured)
    good = columns.successes()
    outputs, inputs = (
        [values[place] or 0 for place in good] for values in (columns.output_tokens, columns.input_tokens)
    )
    found = ["the duration is from the first request sent to the last one ended, ramp-up and stragglers included"]
    if skipped := len(documents) - len(measured):
        found.append(f"{skipped:,} requests of the warm-up are left out")
    return ImportedResult(
        file=documents[0].file,
        index=0,
        kind="aiperf",
        tool="aiperf profile",
        tool_version=None,
        model=None,
        settings={},
        num_requests=len(measured),
        completed=len(good),
        failed=columns.num_failed,
        duration_s=duration_s,
        rates=rates(
            duration_s=duration_s,
            requests=len(good),
            output_tokens=float(sum(outputs)),
            input_tokens=float(sum(inputs)),
        ),
        tool_rates=Rates(),
        latencies=compared_all(ours, {}, NOT_STREAMED),
        warnings=found + remarks(columns, ours, columns.num_failed),
    )


def _columns(records: Sequence[Fields]) -> RequestColumns:
    metrics = [record.inside("metrics") for record in records]
    return RequestColumns(
        input_tokens=[_tokens(each, "input_sequence_length") for each in metrics],
        output_tokens=[_tokens(each, "output_sequence_length", "output_token_count") for each in metrics],
        ttft_s=[_seconds(each, "time_to_first_token") for each in metrics],
        latency_s=[_seconds(each, "request_latency") for each in metrics],
        itl_s=[_gaps_s(each) for each in metrics],
        start_s=[_start_s(record) for record in records],
        error=[_error(record) for record in records],
    )


def _tokens(metrics: Fields, *keys: str) -> int | None:
    return next((found for key in keys if (found := metrics.inside(key).count("value")) is not None), None)


def _seconds(metrics: Fields, key: str, statistic: str = "value") -> float | None:
    found = metrics.inside(key)
    value = found.number(statistic)
    return None if value is None else value * _unit_s(found)


def _gaps_s(metrics: Fields) -> list[float] | None:
    found = metrics.inside("inter_chunk_latency")
    gaps = found.numbers("value")
    return None if gaps is None else [gap * _unit_s(found) for gap in gaps]


def _unit_s(found: Fields) -> float:
    unit = found.text("unit") or ""
    if unit not in UNITS:
        raise found.wrong("unit", f"one of {', '.join(UNITS)}", unit)
    return UNITS[unit]


def _error(record: Fields) -> str | None:
    error = record.child("error")
    if error is not None:
        return error.label("type", "message", "code") or "error"
    return "cancelled" if record.inside("metadata").data.get("was_cancelled") is True else None


def _start_s(record: Fields) -> float | None:
    start = record.inside("metadata").number("request_start_ns")
    return None if start is None else start / NS_PER_S


def _duration_s(records: Sequence[Fields]) -> float | None:
    """From the first send to the last end; differences of whole nanoseconds, which a float would round."""
    times = [record.inside("metadata") for record in records]
    starts = [each.data["request_start_ns"] for each in times if each.count("request_start_ns") is not None]
    ends = [each.data["request_end_ns"] for each in times if each.count("request_end_ns") is not None]
    return (max(ends) - min(starts)) / NS_PER_S if starts and ends else None


def _from_summary(fields: Fields, index: int) -> ImportedResult:
    told = {name: Told(summary=_summary(fields, key), definition=words) for name, (key, words) in METRICS.items()}
    completed, failed = (_average(fields, key) for key in ("request_count", "error_request_count"))
    duration_s = _seconds(fields, "benchmark_duration", "avg")
    return ImportedResult(
        file=fields.file,
        index=index,
        kind="aiperf",
        tool="aiperf profile",
        tool_version=fields.label("aiperf_version"),
        model=_model(fields),
        settings=fields.glance("input_config", "loadgen").words(rate_per_s="request_rate", concurrency="concurrency"),
        num_requests=None if completed is None else round(completed + (failed or 0)),
        completed=None if completed is None else round(completed),
        failed=None if failed is None else round(failed),
        duration_s=duration_s,
        rates=rates(
            duration_s=duration_s,
            requests=completed,
            output_tokens=_average(fields, "total_osl"),
            input_tokens=_average(fields, "total_isl"),
        ),
        tool_rates=Rates(
            requests_per_s=_average(fields, "request_throughput"),
            output_tokens_per_s=_average(fields, "output_token_throughput"),
            total_tokens_per_s=_average(fields, "total_token_throughput"),
            goodput_per_s=_average(fields, "goodput"),
        ),
        latencies=compared_all(None, told, SUMMARY_ONLY),
        warnings=remarks(None, None, None if failed is None else round(failed)),
    )


def _average(fields: Fields, key: str) -> float | None:
    return fields.inside(key).number("avg")


def _summary(fields: Fields, key: str) -> Summary | None:
    found = fields.inside(key)
    names = {"mean_s": "avg", **{f"{name}_s": name for name in ("p50", "p90", "p95", "p99")}}
    values = {name: found.number(place) for name, place in names.items()}
    if not any(values.values()):
        return None
    scale = _unit_s(found)
    seconds = {name: None if value is None else value * scale for name, value in values.items()}
    return Summary(num_samples=found.count("count"), **seconds)


def _model(fields: Fields) -> str | None:
    names = fields.glance("input_config", "endpoint").data.get("model_names")
    models = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return Fields({"names": ", ".join(models)}, fields.file).label("names")
