"""A load test as an llm-d Benchmark Report, version 0.2.1.

The schema forbids unknown keys, wants a unit and a mean for each statistic, and lets nearly everything be left out that
is not known. Accelerators and parallelism are not known to a client, so the engine is a component of kind `generic`.
Times are in seconds (`s`, `s/token`); the inter-token latency is the one per token, as its unit says, not the one per
chunk.
Source: the report's schema in github.com/llm-d/llm-d-benchmark, `llmdbenchmark/analysis/benchmark_report`.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from assay.formats.vllm_export import measured
from assay.records.bench import BenchMeasures, BenchResult, BenchSpec, Lengths, Synthetic
from assay.records.run import Quantiles
from assay.units import NS_PER_S

VERSION = "0.2.1"
DISTRIBUTIONS = {"fixed": "fixed", "normal": "gaussian", "uniform": "uniform", "lognormal": "other"}


def llmd_report(result: BenchResult) -> dict[str, Any]:
    """The object to write as JSON or YAML.

    A result that must not be used is marked: keyword "invalid", and the failed gates in `run.description`.

    Raises:
        MeasurementError: nothing was measured.
    """
    measures = measured(result)
    scenario = _without_none({"stack": [_engine(result)], "load": _load(result)})
    performance = {"aggregate": _aggregate(result, measures)}
    return {
        "version": VERSION,
        "run": _run(result, measures),
        "scenario": scenario,
        "results": {"request_performance": performance},
    }


def _run(result: BenchResult, measures: BenchMeasures) -> dict[str, Any]:
    """`duration` is that of the measured windows; the uid is a hash of the result, the eid of what was asked."""
    failed = [gate.name for gate in result.gates if not gate.passed]
    start = datetime.fromtimestamp(result.started_at_ns / NS_PER_S, tz=UTC)
    return _without_none(
        {
            "uid": _hash(result.model_dump_json()),
            "eid": _hash(result.spec.model_dump_json()),
            "time": {"start": start.isoformat(), "duration": f"PT{measures.duration_s:.6f}S"},
            "description": None if result.valid else f"not valid, failed gates: {', '.join(failed)}",
            "keywords": ["assay", *([] if result.valid else ["invalid"])],
        }
    )


def _engine(result: BenchResult) -> dict[str, Any]:
    tool, _, version = (result.engine or "unknown").partition(" ")
    return {
        "metadata": {"label": "server", "cfg_id": _hash(f"{result.spec.url} {result.engine} {result.spec.model}")},
        "standardized": {
            "kind": "generic",
            "tool": tool,
            "tool_version": version or "unknown",
            "model": {"name": result.spec.model},
        },
        "native": {},
    }


def _load(result: BenchResult) -> dict[str, Any] | None:
    """None when not even the prompts' length is known, which the schema wants."""
    spec = result.spec
    inputs, outputs = _sequence_lengths(result)
    if inputs is None:
        return None
    standardized = {
        "tool": "assay",
        "tool_version": result.assay_version,
        "parallelism": result.client.processes,
        "source": "random" if isinstance(spec.workload, Synthetic) else "sampled",
        "input_seq_len": inputs,
        "output_seq_len": outputs,
        "rate_qps": spec.arrival.rate_per_s,
        "concurrency": spec.arrival.concurrency,
    }
    return {
        "metadata": {"cfg_id": _hash(spec.model_dump_json())},
        "standardized": _without_none(standardized),
        "native": {"config": _native(spec) | {"workload_sha256": result.workload_sha256}},
    }


def _native(spec: BenchSpec) -> dict[str, Any]:
    """Our own specification, without what may hold a secret."""
    return spec.model_dump(mode="json", exclude={"url", "extra_body", "api_key_env"})


def _sequence_lengths(result: BenchResult) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    workload = result.spec.workload
    if isinstance(workload, Synthetic):
        inputs = _length(workload.input, extra=workload.prefix_tokens)
        return inputs, _length(workload.output) if result.spec.force_length else None
    return _realised_length(result, "input_tokens"), None


def _length(lengths: Lengths, extra: int = 0) -> dict[str, Any]:
    """`extra`: tokens of a shared prefix, which our lengths leave out and the report's include."""
    found: dict[str, Any] = {"distribution": DISTRIBUTIONS[lengths.kind], "value": lengths.mean + extra}
    if lengths.kind == "fixed":
        return found
    if lengths.kind != "uniform":
        found["std_dev"] = lengths.sd
    return found | {"min": lengths.low + extra, "max": lengths.high + extra}


def _realised_length(result: BenchResult, name: str) -> dict[str, Any] | None:
    mean = result.realised.get(f"{name}_mean")
    return None if mean is None else {"distribution": "other", "value": mean}


def _aggregate(result: BenchResult, measures: BenchMeasures) -> dict[str, Any]:
    return {
        "requests": _without_none(
            {
                "total": result.num_requests,
                "failures": sum(result.errors.values()),
                "input_length": _realised(result, "input_tokens"),
                "output_length": _realised(result, "output_tokens"),
            }
        ),
        "latency": _without_none(
            {
                "time_to_first_token": _statistics(measures.ttft.quantiles, "s"),
                "time_per_output_token": _statistics(measures.tpot.quantiles, "s/token"),
                "inter_token_latency": _statistics(measures.itl_per_token.quantiles, "s/token"),
                "request_latency": _statistics(measures.e2e.quantiles, "s"),
            }
        ),
        "throughput": {
            "input_token_rate": {
                "units": "tokens/s",
                "mean": measures.total_tokens_per_s - measures.output_tokens_per_s,
            },
            "output_token_rate": {"units": "tokens/s", "mean": measures.output_tokens_per_s},
            "total_token_rate": {"units": "tokens/s", "mean": measures.total_tokens_per_s},
            "request_rate": {"units": "queries/s", "mean": measures.requests_per_s},
        },
    }


def _realised(result: BenchResult, name: str) -> dict[str, Any] | None:
    mean, median, longest = (result.realised.get(f"{name}_{what}") for what in ("mean", "p50", "max"))
    if mean is None:
        return None
    return _without_none({"units": "count", "mean": mean, "p50": median, "max": longest})


def _statistics(quantiles: Quantiles, units: str) -> dict[str, Any] | None:
    if quantiles.mean_s is None:
        return None
    names = {name: getattr(quantiles, f"{name}_s") for name in ("p50", "p90", "p95", "p99")}
    return _without_none({"units": units, "mean": quantiles.mean_s, **names})


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
