"""Runs to export and import: requests drawn from a seed, and a load test made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.formats.columns import RequestColumns
from assay.records.bench import BenchMeasures, BenchResult, BenchSpec, Client, Distribution
from assay.records.run import Gate, Quantiles

MS = 1_000
EMPTY = Quantiles(num_samples=0, mean_s=None, p50_s=None, p90_s=None, p95_s=None, p99_s=None)


def columns(count: int = 1_200, seed: int = 7, failed: int = 0) -> RequestColumns:
    """Requests of 2 to 40 tokens, one a chunk; the last `failed` of them got no reply."""
    random = np.random.default_rng(seed)
    tokens = [int(value) for value in random.integers(2, 40, count)]
    first = [float(value) for value in random.gamma(4, 0.05, count)]
    gaps = [[float(value) for value in random.gamma(9, 0.003, number - 1)] for number in tokens]
    whole = [ttft + sum(after) for ttft, after in zip(first, gaps, strict=True)]
    good = count - failed
    return RequestColumns(
        input_tokens=[int(value) for value in random.integers(10, 500, count)],
        output_tokens=tokens[:good] + [0] * failed,
        ttft_s=first[:good] + [None] * failed,
        latency_s=whole[:good] + [None] * failed,
        itl_s=[*gaps[:good], *([] for _ in range(failed))],
        start_s=[0.01 * place for place in range(count)],
        error=[None] * good + ["http-503"] * failed,
    )


def quantiles(values: list[float]) -> Quantiles:
    array = np.asarray(values)
    p50, p90, p95, p99 = (float(value) for value in np.percentile(array, [50, 90, 95, 99]))
    mean = float(array.mean())
    return Quantiles(num_samples=len(values), mean_s=mean, p50_s=p50, p90_s=p90, p95_s=p95, p99_s=p99)


def measures(found: RequestColumns, **changes: Any) -> BenchMeasures:
    """What a load test whose windows hold exactly these requests would have measured in 30 seconds."""
    good = found.successes()
    ttft = [found.ttft_s[place] or 0.0 for place in good]
    e2e = [found.latency_s[place] or 0.0 for place in good]
    tokens = [found.output_tokens[place] or 0 for place in good]
    tpot = [(whole - first) / (count - 1) for whole, first, count in zip(e2e, ttft, tokens, strict=True)]
    gaps = [gap for place in good for gap in found.itl_s[place] or ()]
    inputs = sum(found.input_tokens[place] or 0 for place in good)
    values: dict[str, Any] = {
        "duration_s": 30.0,
        "window_tokens_per_s": [sum(tokens) / 30] * 3,
        "output_tokens_per_s": sum(tokens) / 30,
        "total_tokens_per_s": (sum(tokens) + inputs) / 30,
        "requests_per_s": len(good) / 30,
        "goodput_per_s": None,
        "requests_completed": len(good),
        "output_tokens": float(sum(tokens)),
        "input_tokens": float(inputs),
        "ttft": Distribution(quantiles=quantiles(ttft)),
        "ttft_from_intended": Distribution(quantiles=quantiles(ttft)),
        "tpot": Distribution(quantiles=quantiles(tpot)),
        "itl": Distribution(quantiles=quantiles(gaps)),
        "itl_per_token": Distribution(quantiles=quantiles(gaps)),
        "e2e": Distribution(quantiles=quantiles(e2e)),
        "e2e_from_intended": Distribution(quantiles=quantiles(e2e)),
        "tokens_per_chunk": 1.0,
        "mean_input_tokens": inputs / len(good),
        "mean_output_tokens": sum(tokens) / len(good),
        "mean_in_flight": 15.5,
        "max_in_flight": 16,
        "offered_per_s": None,
        "sent_per_s": len(found) / 30,
        "arrival_cv": None,
    }
    return BenchMeasures(**{**values, **changes})


def result(found: RequestColumns, spec: BenchSpec | None = None, **changes: Any) -> BenchResult:
    """A load test of those requests; valid unless `changes` says otherwise."""
    client = Client(
        processes=2, stamps="kernel", cpu_share=0.1, busiest_share=0.06, cpu_s_per_million_tokens=20.0, lag_p50_s=0.0,
        lag_p99_s=0.001, lag_max_s=0.002, schedule_error_p50_s=0.0, schedule_error_p99_s=0.001,
        schedule_error_max_s=0.002, merged_share=0.0, rss_bytes=50_000_000, rss_growth_bytes_per_s=0.0,
        ceiling_tokens_per_s=None, null_server_tokens_per_s=None,
    )  # fmt: skip
    values: dict[str, Any] = {
        "spec": spec or BenchSpec(url="http://127.0.0.1:8000", model="org/some-model"),
        "started_at_ns": 1_767_268_800_000_000_000,
        "assay_version": "0.1.0",
        "engine": "vllm 0.11.0",
        "machine": "a machine",
        "measures": measures(found),
        "client": client,
        "gates": [Gate(name="no-errors", passed=True, evidence="0 of 1,200")],
        "errors": {"http-503": found.num_failed} if found.num_failed else {},
        "first_error": None,
        "num_requests": len(found) + 40,
        "series": [],
        "workload_sha256": "ab" * 32,
        "realised": {"input_tokens_mean": 250.5, "input_tokens_p50": 250.0, "input_tokens_max": 499.0},
        "folder": "bench",
    }
    return BenchResult(**{**values, **changes})


def vllm_row(found: RequestColumns, *, duration_s: float = 30.0) -> dict[str, Any]:
    """A row as vLLM's own client would save it with `--save-detailed`: its arithmetic, written again with numpy."""
    rows = range(len(found))
    good = [place for place in rows if found.error[place] is None]
    outputs = [found.output_tokens[place] or 0 if place in set(good) else 0 for place in rows]
    ttfts, latencies, tpots, itls = [], [], [], []
    for place in good:
        ttft, latency = found.ttft_s[place] or 0.0, found.latency_s[place] or 0.0
        ttfts.append(ttft)
        latencies.append(latency)
        itls += list(found.itl_s[place] or ())
        if outputs[place] > 1:
            tpots.append((latency - ttft) / (outputs[place] - 1))
    total_input = sum(found.input_tokens[place] or 0 for place in good)
    row: dict[str, Any] = {
        "date": "20260101-120000", "endpoint_type": "openai", "backend": "openai", "label": None,
        "model_id": "org/some-model", "tokenizer_id": "org/some-model", "num_prompts": len(found),
        "request_rate": "inf", "burstiness": 1.0, "max_concurrency": 16, "duration": duration_s, "completed": len(good),
        "failed": len(found) - len(good), "total_input_tokens": total_input, "total_output_tokens": sum(outputs),
        "request_throughput": len(good) / duration_s, "request_goodput": None,
        "output_throughput": sum(outputs) / duration_s,
        "total_token_throughput": (total_input + sum(outputs)) / duration_s,
        "input_lens": list(found.input_tokens), "output_lens": outputs,
        "ttfts": [found.ttft_s[place] or 0.0 for place in rows],
        "itls": [list(found.itl_s[place] or ()) for place in rows],
        "latencies": [found.latency_s[place] or 0.0 for place in rows],
        "start_times": list(found.start_s), "queue_times": [0.0 for _ in rows],
        "generated_texts": ["text"] * len(found), "errors": [error or "" for error in found.error],
        "max_output_tokens_per_s": 900.0, "max_concurrent_requests": 16, "rtfx": 0.0,
    }  # fmt: skip
    for key, values in (("ttft", ttfts), ("tpot", tpots), ("itl", itls), ("e2el", latencies)):
        row[f"mean_{key}_ms"] = float(np.mean(values or 0) * 1000)
        row[f"median_{key}_ms"] = float(np.median(values or 0) * 1000)
        row[f"std_{key}_ms"] = float(np.std(values or 0) * 1000)
        for share in (50, 90, 95, 99):
            row[f"p{share}_{key}_ms"] = float(np.percentile(values or 0, share) * 1000)
    return row


DETAILED = ["input_lens", "output_lens", "start_times", "ttfts", "itls", "generated_texts", "errors"]
"""What vLLM takes out without `--save-detailed`; `latencies` and `queue_times` stay."""


def sglang_row(found: RequestColumns, *, detailed: bool = True, tail_s: float = 0.0002) -> dict[str, Any]:
    """A row of SGLang's client for the same requests; each stream ends `tail_s` after its last chunk."""
    row = vllm_row(found)
    names = {
        "duration",
        "completed",
        "total_input_tokens",
        "total_output_tokens",
        "max_concurrency",
        "request_throughput",
    }
    kept = {key: row[key] for key in (*names, "output_throughput", "backend")}
    kept |= {
        key: value for key, value in row.items() if key.endswith(("_ttft_ms", "_itl_ms")) and not key.startswith("p50")
    }
    good = found.successes()
    whole = np.asarray([(found.latency_s[place] or 0.0) + tail_s for place in good])
    first = np.asarray([found.ttft_s[place] or 0.0 for place in good])
    tokens = np.asarray([found.output_tokens[place] or 0 for place in good])
    for key, values in (("e2e_latency", whole), ("tpot", ((whole - first) / (tokens - 1)))):
        kept |= {f"mean_{key}_ms": float(values.mean() * 1000), f"median_{key}_ms": float(np.median(values) * 1000)}
        kept[f"p99_{key}_ms"] = float(np.percentile(values, 99) * 1000)
    kept |= {"backend": "vllm", "dataset_name": "random", "request_rate": float("inf"), "random_input_len": 256}
    kept |= {"total_output_tokens_retokenized": row["total_output_tokens"], "accept_length": None, "concurrency": 9.5}
    kept |= {"input_throughput": 10.0, "total_throughput": row["total_token_throughput"], "server_info": None}
    if detailed:
        kept |= {
            name: row[name] for name in ("input_lens", "output_lens", "ttfts", "itls", "generated_texts", "errors")
        }
    return kept


def observed(values: list[float], weights: list[float]) -> dict[str, Any]:
    """A distribution as GuideLLM makes it: the first observed value whose cumulated weight reaches the share."""
    order = np.argsort(values)
    ordered, weight = np.asarray(values)[order], np.asarray(weights)[order]
    cumulated = np.cumsum(weight) / weight.sum()
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
    found = {name: float(ordered[np.searchsorted(cumulated, share - 1e-12)]) for name, share in shares.items()}
    mean = float((ordered * weight).sum() / weight.sum())
    total = float(np.sum(values))
    return {"mean": mean, "median": found["p50"], "count": len(values), "total_sum": total, "percentiles": found}


def guidellm_report(found: RequestColumns, *, kept: int | None = None) -> dict[str, Any]:
    """One benchmark: two requests of the warm-up, the rest in the measured part."""
    requests = []
    for place in range(len(found)):
        start, whole, first = found.start_s[place] or 0.0, found.latency_s[place] or 0.0, found.ttft_s[place] or 0.0
        tokens = found.output_tokens[place] or 0
        requests.append(
            {
                "request_start_time": 1_000.0 + start, "request_end_time": 1_000.0 + start + whole,
                "request_latency": whole, "time_to_first_token_ms": first * MS, "output_tokens": tokens,
                "prompt_tokens": found.input_tokens[place],
                "inter_token_latency_ms": (whole - first) / (tokens - 1) * MS, "info": {"timings": {}},
            }
        )  # fmt: skip
    tokens = [each["output_tokens"] for each in requests]
    one = [1.0] * len(requests)
    metrics = {
        "request_totals": {"successful": len(requests), "incomplete": 3, "errored": 0, "total": len(requests) + 3},
        "request_latency": observed([each["request_latency"] for each in requests], one),
        "time_to_first_token_ms": observed([each["time_to_first_token_ms"] for each in requests], one),
        "inter_token_latency_ms": observed(
            [each["inter_token_latency_ms"] for each in requests], [number - 1 for number in tokens]
        ),
        "time_per_output_token_ms": observed(
            [each["request_latency"] * MS / each["output_tokens"] for each in requests], tokens
        ),
        "output_token_count": observed(tokens, one),
        "prompt_token_count": observed([each["prompt_tokens"] for each in requests], one),
        "requests_per_second": {"mean": len(requests) / 30},
    }
    distributions = {name: {"successful": value} for name, value in metrics.items() if name != "request_totals"}
    early = [requests[0] | {"request_start_time": 900.0, "request_end_time": 901.0, "request_latency": 50.0}] * 2
    return {
        "metadata": {"version": 1, "guidellm_version": "0.5.0"},
        "args": {"model": "org/some-model", "target": "http://127.0.0.1:8000"},
        "benchmarks": [
            {
                "config": {"strategy": {"type_": "concurrent", "streams": 16}},
                "scheduler_metrics": {"measure_start_time": 1_000.0, "measure_end_time": 1_030.0},
                "metrics": {"request_totals": metrics["request_totals"], **distributions},
                "requests": {"successful": (early + requests)[: kept or None], "incomplete": [], "errored": []},
                "duration": 30.0,
            }
        ],
    }


def aiperf_records(found: RequestColumns, *, phase: str = "profiling") -> list[dict[str, Any]]:
    records = []
    for place in range(len(found)):
        start = 1_759_813_207_000_000_000 + round(1e9 * (found.start_s[place] or 0))
        whole = found.latency_s[place] or 0.001
        metadata = {"request_start_ns": start, "request_end_ns": start + round(1e9 * whole), "benchmark_phase": phase}
        if found.error[place]:
            error = {"code": 503, "type": "HTTPError", "message": "unavailable"}
            records.append(
                {"metadata": metadata, "metrics": {"error_isl": {"value": 5, "unit": "tokens"}}, "error": error}
            )
            continue
        metrics = {
            "input_sequence_length": {"value": found.input_tokens[place], "unit": "tokens"},
            "output_sequence_length": {"value": found.output_tokens[place], "unit": "tokens"},
            "time_to_first_token": {"value": MS * (found.ttft_s[place] or 0), "unit": "ms"},
            "request_latency": {"value": MS * whole, "unit": "ms"},
            "inter_chunk_latency": {"value": [MS * gap for gap in found.itl_s[place] or ()], "unit": "ms"},
            "inter_token_latency": {"value": 5.0, "unit": "ms"},
        }
        records.append({"metadata": metadata, "metrics": metrics, "error": None})
    return records


LLAMA_BENCH = {
    "build_commit": "8cf427ff", "build_number": 5163, "model_type": "qwen2 7B Q4_K - Medium", "n_threads": 8,
    "n_prompt": 0, "n_gen": 128, "n_depth": 0, "avg_ns": 1076767880, "avg_ts": 118.881588, "stddev_ts": 1.041811,
    "samples_ns": [1075361300, 1065089400, 1071761200, 1081934900, 1089692600],
    "samples_ts": [119.03, 120.178, 119.43, 118.307, 117.464],
}  # fmt: skip
