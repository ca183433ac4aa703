"""A load test as `vllm bench serve --save-result` writes one, so that tools made for its files read ours.

Statistics are computed from the requests as vLLM computes them (`numpy`, linear percentiles, milliseconds); throughputs
are ours, over the measured windows. vLLM writes 0 for what it did not measure; such keys are left out here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from assay.errors import MeasurementError
from assay.formats.columns import RequestColumns
from assay.formats.definitions import PERCENTILES, latencies
from assay.records.bench import Arrival, BenchMeasures, BenchResult
from assay.records.imported import LatencyName
from assay.units import NS_PER_S

LABEL = "assay"
MS = 1_000
NAMES: dict[LatencyName, str] = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}
BACKENDS = {"completions": "openai", "chat": "openai-chat"}
DATE = "%Y%m%d-%H%M%S"


def vllm_json(result: BenchResult, columns: RequestColumns, *, detailed: bool) -> dict[str, Any]:
    """The object to write as JSON.

    Args:
        result: the load test. Whether it is valid stands under `assay_valid`, with the failed gates beside it.
        columns: the requests that ended in the measured windows, failed ones included.
        detailed: whether to add one entry a request, as `--save-detailed` does (seconds; generated texts are not kept).

    Raises:
        MeasurementError: nothing was measured.
    """
    measures = measured(result)
    return {
        "date": _date(result),
        "endpoint_type": BACKENDS[result.spec.endpoint],
        "backend": BACKENDS[result.spec.endpoint],
        "label": LABEL,
        "model_id": result.spec.model,
        "tokenizer_id": None,
        "num_prompts": len(columns),
        **_metadata(result),
        **_traffic(result.spec.arrival),
        **_totals(measures, columns),
        **(_arrays(columns) if detailed else {}),
        **_peaks(measures, columns),
        **_statistics(columns),
    }


def vllm_filename(result: BenchResult) -> str:
    """The name that vLLM gives such a file: label, rate, concurrency, model, date."""
    arrival = result.spec.arrival
    traffic = _traffic(arrival)
    rate = f"{traffic['request_rate']}qps"
    if arrival.kind == "ramp":
        rate = f"ramp-up-linear-{arrival.start_rate_per_s}qps-{arrival.rate_per_s}qps"
    concurrency = f"-concurrency{arrival.concurrency}" if arrival.concurrency is not None else ""
    return f"{LABEL}-{rate}{concurrency}-{result.spec.model.split('/')[-1]}-{_date(result)}.json"


def measured(result: BenchResult) -> BenchMeasures:
    """The measures of a load test.

    Raises:
        MeasurementError: it has none.
    """
    if result.measures is None:
        failed = ", ".join(gate.name for gate in result.gates if not gate.passed) or "no gate"
        message = f"nothing was measured, so there is nothing to export; failed: {failed}"
        raise MeasurementError(message, hint="the gates of the load test name a remedy each")
    return result.measures


def _date(result: BenchResult) -> str:
    return datetime.fromtimestamp(result.started_at_ns / NS_PER_S, tz=UTC).strftime(DATE)


def _metadata(result: BenchResult) -> dict[str, str | bool]:
    """Keys of our own, as vLLM's `--metadata` adds them."""
    failed = ", ".join(gate.name for gate in result.gates if not gate.passed)
    return {
        "assay_version": result.assay_version,
        "engine": result.engine or "",
        "assay_valid": result.valid,
        "assay_failed_gates": failed,
    }


def _traffic(arrival: Arrival) -> dict[str, Any]:
    """The arrival in vLLM's terms: burstiness is the gamma law's shape, 1 / cv^2, and infinite for even gaps."""
    burstiness: dict[str, float | str | None] = {
        "constant": "inf", "gamma": arrival.cv**-2, "trace": None, "ramp": 1.0, "poisson": 1.0, "closed": 1.0,
    }  # fmt: skip
    ramp = {
        "ramp_up_strategy": "linear",
        "ramp_up_start_rps": arrival.start_rate_per_s,
        "ramp_up_end_rps": arrival.rate_per_s,
    }
    rate = None if arrival.kind == "ramp" else arrival.rate_per_s
    return {
        "request_rate": "inf" if rate is None else rate,
        "burstiness": burstiness[arrival.kind],
        "max_concurrency": arrival.concurrency,
        **(ramp if arrival.kind == "ramp" else {}),
    }


def _totals(measures: BenchMeasures, columns: RequestColumns) -> dict[str, Any]:
    return {
        "duration": measures.duration_s,
        "completed": len(columns) - columns.num_failed,
        "failed": columns.num_failed,
        "total_input_tokens": round(measures.input_tokens),
        "total_output_tokens": round(measures.output_tokens),
        "request_throughput": measures.requests_per_s,
        "request_goodput": measures.goodput_per_s,
        "output_throughput": measures.output_tokens_per_s,
        "total_token_throughput": measures.total_tokens_per_s,
    }


def _arrays(columns: RequestColumns) -> dict[str, Any]:
    """One entry a request; a failed one has zeros and an error, as vLLM writes it."""
    good = [error is None for error in columns.error]
    return {
        "input_lens": [tokens or 0 for tokens in columns.input_tokens],
        "output_lens": [tokens or 0 if ok else 0 for tokens, ok in zip(columns.output_tokens, good, strict=True)],
        "ttfts": [first or 0.0 for first in columns.ttft_s],
        "itls": [list(gaps or ()) for gaps in columns.itl_s],
        "latencies": [whole or 0.0 if ok else 0.0 for whole, ok in zip(columns.latency_s, good, strict=True)],
        "start_times": [start or 0.0 for start in columns.start_s],
        "errors": [error or "" for error in columns.error],
    }


def _peaks(measures: BenchMeasures, columns: RequestColumns) -> dict[str, Any]:
    peak = _peak_per_s(columns)
    found: dict[str, Any] = {} if peak is None else {"max_output_tokens_per_s": peak}
    return found | {"max_concurrent_requests": measures.max_in_flight}


def _peak_per_s(columns: RequestColumns) -> float | None:
    """The most chunks in one second, counted from the first send, as vLLM counts; None where no time is known."""
    stamps = []
    for place in columns.successes():
        start, first = columns.start_s[place], columns.ttft_s[place]
        if start is not None and first:
            stamps.append(np.cumsum([start + first, *(columns.itl_s[place] or ())]))
    if not stamps:
        return None
    began = min(start for place in columns.successes() if (start := columns.start_s[place]) is not None)
    return float(np.bincount((np.concatenate(stamps) - began).astype(np.int64)).max())


def _statistics(columns: RequestColumns) -> dict[str, float]:
    found: dict[str, float] = {}
    ours = latencies(columns)
    for name, key in NAMES.items():
        if not ours.values[name]:
            continue
        values = np.asarray(ours.values[name]) * MS
        found |= {f"mean_{key}_ms": float(values.mean()), f"median_{key}_ms": float(np.median(values))}
        found[f"std_{key}_ms"] = float(values.std())
        found |= {f"p{share}_{key}_ms": float(np.percentile(values, share)) for share in PERCENTILES}
    return found
