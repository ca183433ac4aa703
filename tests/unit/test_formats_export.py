"""Our results in other tools' formats: their keys, their units, the same numbers."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from assay.errors import MeasurementError
from assay.formats.llmd_export import llmd_report
from assay.formats.read import read_bytes
from assay.formats.vllm_export import vllm_filename, vllm_json
from assay.records.bench import Arrival, BenchSpec, Dataset, Lengths, Slo, Synthetic
from assay.records.imported import LATENCIES
from assay.records.run import Gate
from tests.unit.formats_sample import EMPTY, columns, measures, result, vllm_row

NOT_KEPT = {"generated_texts", "queue_times", "rtfx"}
"""What vLLM writes and we do not have."""


def spec(**changes: Any) -> BenchSpec:
    return BenchSpec(url="http://user:secret@127.0.0.1:8000", model="org/some-model", **changes)


# vLLM


def test_a_detailed_export_has_vllms_keys_and_our_metadata_alone() -> None:
    found = columns(failed=5)
    exported = vllm_json(result(found), found, detailed=True)

    assert set(vllm_row(found)) - NOT_KEPT <= set(exported)
    assert set(exported) - set(vllm_row(found)) == {"assay_version", "engine", "assay_valid", "assay_failed_gates"}
    assert json.loads(json.dumps(exported, allow_nan=False)) == exported


def test_an_export_has_the_statistics_that_vllm_would_have_printed() -> None:
    found = columns(failed=5)
    exported, theirs = vllm_json(result(found), found, detailed=True), vllm_row(found)

    for key in [key for key in theirs if key.endswith("_ms")]:
        assert exported[key] == pytest.approx(theirs[key], abs=0.005), key
    for key in ("completed", "failed", "total_output_tokens", "output_throughput", "total_token_throughput"):
        assert exported[key] == pytest.approx(theirs[key]), key
    for key in ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "errors"):
        assert exported[key] == theirs[key], key


def test_without_detail_there_are_no_arrays() -> None:
    found = columns()
    exported = vllm_json(result(found), found, detailed=False)

    assert not [key for key, value in exported.items() if isinstance(value, list)]


@pytest.mark.parametrize("failed", [0, 25])
def test_an_export_read_back_is_the_same_run(failed: int) -> None:
    found = columns(failed=failed)
    ours = measures(found)
    (back,) = read_bytes(json.dumps(vllm_json(result(found), found, detailed=True)).encode(), "back.json")

    for name in LATENCIES:
        latency, quantiles = back.latency(name), getattr(ours, name).quantiles
        assert latency.agrees is True
        assert latency.values is not None
        assert latency.values.num_samples == quantiles.num_samples
        for statistic in ("mean_s", "p50_s", "p90_s", "p95_s", "p99_s"):
            assert getattr(latency.values, statistic) == pytest.approx(getattr(quantiles, statistic), rel=1e-9)
    assert (back.completed, back.failed) == (1_200 - failed, failed)
    assert back.rates.output_tokens_per_s == pytest.approx(ours.output_tokens_per_s)
    assert back.tool_rates.requests_per_s == ours.requests_per_s


@pytest.mark.parametrize(
    ("arrival", "told", "name"),
    [
        (Arrival(concurrency=8), {"request_rate": "inf", "max_concurrency": 8}, "assay-infqps-concurrency8-"),
        (
            Arrival(kind="poisson", rate_per_s=2.5),
            {"request_rate": 2.5, "burstiness": 1.0, "max_concurrency": None},
            "assay-2.5qps-",
        ),
        (Arrival(kind="gamma", rate_per_s=4, cv=2), {"request_rate": 4.0, "burstiness": 0.25}, "assay-4.0qps-"),
        (Arrival(kind="constant", rate_per_s=4), {"burstiness": "inf"}, "assay-4.0qps-"),
        (
            Arrival(kind="ramp", start_rate_per_s=1, rate_per_s=9),
            {"request_rate": "inf", "ramp_up_strategy": "linear", "ramp_up_start_rps": 1.0, "ramp_up_end_rps": 9.0},
            "assay-ramp-up-linear-1.0qps-9.0qps-",
        ),
        (Arrival(kind="trace"), {"request_rate": "inf", "burstiness": None}, "assay-infqps-"),
    ],
)
def test_the_arrival_is_put_in_vllms_terms(arrival: Arrival, told: dict[str, Any], name: str) -> None:
    found = columns(count=20)
    test = result(found, spec(arrival=arrival))
    exported = vllm_json(test, found, detailed=False)

    assert {key: exported[key] for key in told} == told
    assert vllm_filename(test) == f"{name}some-model-20260101-120000.json"


def test_a_result_that_must_not_be_used_says_so_in_both_formats() -> None:
    found = columns()
    bad = result(found, gates=[Gate(name="client-not-saturated", passed=False, evidence="97%", remedy="more cores")])

    exported = vllm_json(bad, found, detailed=False)
    assert (exported["assay_valid"], exported["assay_failed_gates"]) == (False, "client-not-saturated")
    run = llmd_report(bad)["run"]
    assert "invalid" in run["keywords"]
    assert "client-not-saturated" in run["description"]


def test_what_was_not_measured_is_left_out_and_not_zero() -> None:
    found = columns(count=20)
    single = [1] * 20
    exported = vllm_json(
        result(found),
        type(found)(
            input_tokens=single, output_tokens=single, ttft_s=found.ttft_s, latency_s=found.ttft_s,
            itl_s=[[]] * 20, start_s=[None] * 20, error=[None] * 20,
        ),
        detailed=False,
    )  # fmt: skip

    assert not [key for key in exported if "tpot" in key or "itl" in key]
    assert "max_output_tokens_per_s" not in exported
    assert exported["mean_ttft_ms"] > 0


def test_there_is_nothing_to_export_where_nothing_was_measured() -> None:
    found = columns(count=20)
    nothing = result(found, measures=None, gates=[Gate(name="enough-requests", passed=False, evidence="0", remedy="r")])

    with pytest.raises(MeasurementError, match="enough-requests"):
        vllm_json(nothing, found, detailed=True)
    with pytest.raises(MeasurementError, match="enough-requests"):
        llmd_report(nothing)


# llm-d Benchmark Report 0.2.x, as read from its schema: every object is closed, these are its keys, (!) is required.

STATISTICS = {"units!", "mean!", "mode", "stddev", "min", "max"} | {
    f"p{share}" for share in ("0p1", "1", "5", "10", "25", "50", "75", "90", "95", "99", "99p9")
}
LENGTH = {"distribution!", "value!", "std_dev", "min", "max"}
CLOSED: dict[str, set[str]] = {
    "": {"version", "run!", "scenario", "results!"},
    "run": {"uid!", "eid", "cid", "pid", "time", "user", "description", "keywords"},
    "run.time": {"start", "end", "duration"},
    "scenario": {"stack", "load"},
    "scenario.stack[]": {"metadata!", "standardized!", "native!"},
    "scenario.stack[].metadata": {"schema_version", "label!", "cfg_id!", "description"},
    "scenario.stack[].native": {"args", "envars", "config"},
    "scenario.load": {"metadata!", "standardized!", "native!"},
    "scenario.load.metadata": {"schema_version", "cfg_id", "description"},
    "scenario.load.standardized": {
        "tool!", "tool_version!", "parallelism", "source!", "stage", "input_seq_len!", "output_seq_len", "prefix",
        "multi_turn", "rate_qps", "concurrency",
    },
    "scenario.load.standardized.input_seq_len": LENGTH,
    "scenario.load.standardized.output_seq_len": LENGTH,
    "scenario.load.native": {"args", "envars", "config"},
    "results": {"request_performance", "observability", "profiling", "component_health"},
    "results.request_performance": {"aggregate", "time_series"},
    "results.request_performance.aggregate": {"requests", "latency", "throughput"},
    "results.request_performance.aggregate.requests": {
        "total!", "failures", "incomplete", "input_length", "output_length", "request_size", "multimodal",
    },
    "results.request_performance.aggregate.latency": {
        "time_to_first_token", "normalized_time_per_output_token", "time_per_output_token", "inter_token_latency",
        "request_latency",
    },
    "results.request_performance.aggregate.throughput": {
        "input_token_rate", "output_token_rate", "total_token_rate", "request_rate", "image_rate", "video_rate",
        "audio_rate",
    },
}  # fmt: skip
OPEN = {"scenario.stack[].standardized", "scenario.load.native.config"}
"""Where anything may stand; a generic component needs kind, tool and tool_version."""
UNITS = {
    "input_length": {"count"}, "output_length": {"count"}, "time_to_first_token": {"ms", "s"},
    "request_latency": {"ms", "s"}, "time_per_output_token": {"ms/token", "s/token"},
    "inter_token_latency": {"ms/token", "s/token"}, "input_token_rate": {"tokens/s"}, "output_token_rate": {"tokens/s"},
    "total_token_rate": {"tokens/s"}, "request_rate": {"queries/s"},
}  # fmt: skip


def check(value: Any, place: str = "") -> None:
    """Hold a report against the schema; fails at the first difference."""
    if place in OPEN:
        return
    if isinstance(value, list):
        for item in value:
            check(item, f"{place}[]")
    if not isinstance(value, dict):
        assert value is not None, place
        return
    name = place.rpartition(".")[2]
    allowed = STATISTICS if name in UNITS else CLOSED[place]
    assert {key.rstrip("!") for key in allowed if key.endswith("!")} <= set(value), place
    assert set(value) <= {key.rstrip("!") for key in allowed}, place
    if name in UNITS:
        assert value["units"] in UNITS[name], place
    for key, inner in value.items():
        check(inner, f"{place}.{key}".lstrip("."))


@pytest.mark.parametrize(
    "asked",
    [
        spec(),
        spec(arrival=Arrival(kind="poisson", rate_per_s=3), slo=Slo(ttft_s=0.2)),
        spec(workload=Dataset(kind="sharegpt", path="share.json"), force_length=False),
        spec(workload=Synthetic(input=Lengths(kind="normal", mean=100, sd=9), prefix_groups=4, prefix_tokens=64)),
        spec(workload=Synthetic(input=Lengths(kind="lognormal", mean=100, sd=9, high=2048))),
    ],
)
def test_a_report_keeps_to_the_schema(asked: BenchSpec) -> None:
    found = columns(failed=3)
    report = llmd_report(result(found, asked))

    check(report)
    assert {"kind", "tool", "tool_version"} <= set(report["scenario"]["stack"][0]["standardized"])
    assert report["scenario"]["load"]["standardized"]["source"] in {"random", "sampled", "unknown"}
    lengths = report["scenario"]["load"]["standardized"]["input_seq_len"]
    assert lengths["distribution"] in {"fixed", "gaussian", "uniform", "other"}
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_a_report_has_the_values_of_the_load_test_in_its_units() -> None:
    found = columns(failed=3)
    test = result(found)
    aggregate = llmd_report(test)["results"]["request_performance"]["aggregate"]

    assert test.measures is not None
    assert aggregate["latency"]["request_latency"]["p99"] == test.measures.e2e.quantiles.p99_s
    assert aggregate["latency"]["time_per_output_token"]["mean"] == test.measures.tpot.quantiles.mean_s
    assert aggregate["throughput"]["output_token_rate"]["mean"] == test.measures.output_tokens_per_s
    assert aggregate["requests"] == {
        "total": 1_240,
        "failures": 3,
        "input_length": {"units": "count", "mean": 250.5, "p50": 250.0, "max": 499.0},
    }


def test_a_report_tells_when_it_began_and_how_long_the_windows_were() -> None:
    run = llmd_report(result(columns(count=20)))["run"]

    assert run["time"] == {"start": "2026-01-01T12:00:00+00:00", "duration": "PT30.000000S"}
    assert re.fullmatch("[0-9a-f]{32}", run["uid"])


def test_a_report_holds_no_url_and_no_key() -> None:
    asked = spec(api_key_env="SOME_KEY", extra_body={"token": "hidden"})
    text = json.dumps(llmd_report(result(columns(count=20), asked)))

    assert not [word for word in ("secret", "hidden", "127.0.0.1", "SOME_KEY") if word in text]


def test_a_latency_without_samples_is_not_in_the_report() -> None:
    found = columns(count=20)
    bare = measures(found).model_copy(update={"tpot": measures(found).tpot.model_copy(update={"quantiles": EMPTY})})
    latency = llmd_report(result(found, measures=bare))["results"]["request_performance"]["aggregate"]["latency"]

    assert "time_per_output_token" not in latency
    assert "request_latency" in latency


def test_a_prefix_is_part_of_the_input_length() -> None:
    asked = spec(workload=Synthetic(input=Lengths(kind="fixed", mean=100), prefix_groups=2, prefix_tokens=50))
    standardized = llmd_report(result(columns(count=20), asked))["scenario"]["load"]["standardized"]

    assert standardized["input_seq_len"] == {"distribution": "fixed", "value": 150.0}


def test_without_any_length_there_is_no_load_in_the_report() -> None:
    asked = spec(workload=Dataset(kind="jsonl", path="own.jsonl"))
    report = llmd_report(result(columns(count=20), asked, realised={}))

    assert "load" not in report["scenario"]
    check(report)
