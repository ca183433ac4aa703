"""SGLang, GuideLLM, AIPerf and llama-bench: the same words, other meanings."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from assay.errors import UsageError
from assay.formats.read import read_bytes
from assay.records.imported import LATENCIES, ImportedResult
from tests.unit.formats_sample import LLAMA_BENCH, aiperf_records, columns, guidellm_report, sglang_row


def imported(*documents: dict[str, Any]) -> ImportedResult:
    (result,) = read_bytes("\n".join(json.dumps(each) for each in documents).encode(), "run.json")
    return result


def said(result: ImportedResult, words: str) -> bool:
    return any(words in warning for warning in result.warnings)


# SGLang


def test_sglangs_ttft_and_itl_agree_and_its_e2e_ends_a_little_later_than_the_last_chunk() -> None:
    result = imported(sglang_row(columns(), tail_s=0.0002))

    assert result.kind == "sglang"
    assert [result.latency(name).agrees for name in LATENCIES] == [True, False, True, False]
    ours, theirs = result.latency("e2e").values, result.latency("e2e").tool_said
    assert ours is not None
    assert theirs is not None
    assert (theirs.mean_s or 0) - (ours.mean_s or 0) == pytest.approx(0.0002)
    assert "end of the stream" in (result.latency("e2e").tool_definition or "")
    assert said(result, "does not tell when streams ended")
    assert result.settings["rate_per_s"] == "inf"


def test_sglang_rows_without_details_are_as_told() -> None:
    result = imported(sglang_row(columns(), detailed=False))

    assert not any(result.latency(name).recomputed for name in LATENCIES)
    assert "--output-details" in (result.latency("itl").why_not or "")
    assert result.failed is None
    assert said(result, "how many requests failed")


def test_sglangs_failures_are_counted_from_its_arrays() -> None:
    result = imported(sglang_row(columns(failed=12)))

    assert (result.num_requests, result.failed) == (1_200, 12)
    assert result.latency("ttft").agrees is True


def test_the_native_backends_itl_is_a_time_per_token() -> None:
    result = imported(sglang_row(columns()) | {"backend": "sglang"})

    assert "divided by the tokens" in (result.latency("itl").tool_definition or "")
    assert said(result, "time per token")


def test_sglang_tells_model_and_version_only_through_the_server() -> None:
    server = {"server_info": {"model_path": "org/m", "version": "0.5.4"}}
    told = imported(sglang_row(columns(count=20)) | server)

    assert (told.model, told.tool_version) == ("org/m", "0.5.4")
    assert imported(sglang_row(columns(count=20))).model is None


def test_the_mean_of_no_requests_which_sglang_writes_as_nan_is_none() -> None:
    row = sglang_row(columns(count=20), detailed=False) | {"mean_e2e_latency_ms": float("nan")}

    told = imported(row).latency("e2e").tool_said
    assert told is not None
    assert told.mean_s is None


# GuideLLM


def test_guidellms_latencies_are_recomputed_from_its_requests_without_the_warm_up() -> None:
    found = columns()
    result = imported(guidellm_report(found))

    e2e, ttft, tpot = (result.latency(name).values for name in ("e2e", "ttft", "tpot"))
    assert e2e is not None
    assert ttft is not None
    assert tpot is not None
    assert e2e.num_samples == 1_200
    assert e2e.mean_s == pytest.approx(np.mean([value or 0 for value in found.latency_s]))
    assert ttft.p99_s == pytest.approx(np.percentile([value or 0 for value in found.ttft_s], 99))
    assert (result.kind, result.tool_version, result.model) == ("guidellm", "0.5.0", "org/some-model")
    assert result.settings == {"strategy": "concurrent", "concurrency": 16}


def test_guidellms_inter_token_latency_is_our_tpot_and_there_is_no_itl() -> None:
    result = imported(guidellm_report(columns()))

    assert "inter_token_latency_ms" in (result.latency("tpot").tool_definition or "")
    assert result.latency("itl").shown is None
    assert "our TPOT" in (result.latency("itl").why_not or "")
    told = result.latency("tpot").tool_said
    ours = result.latency("tpot").values
    assert told is not None
    assert ours is not None
    assert told.p99_s is not None
    assert ours.p99_s is not None
    assert told.p99_s < 0.99 * ours.p99_s  # theirs is weighted by tokens: few of them scatter most


def test_guidellms_request_latency_is_read_in_seconds_and_its_ttft_in_milliseconds() -> None:
    result = imported(guidellm_report(columns()))

    for name in ("e2e", "ttft"):
        one = next(each for each in result.latency(name).comparison if each.statistic == "mean")
        assert one.agrees
    assert said(result, "observed values")


def test_guidellms_incomplete_requests_and_samples_are_named() -> None:
    result = imported(guidellm_report(columns(), kept=102))

    assert result.rates.requests_per_s == pytest.approx(40)
    assert said(result, "3 requests were cut off")
    assert said(result, "100 of 1,200")


def test_a_guidellm_report_without_requests_is_as_told() -> None:
    report = guidellm_report(columns())
    report["benchmarks"][0]["requests"]["successful"] = []
    result = imported(report)

    assert not result.latency("ttft").recomputed
    assert "no single requests" in (result.latency("ttft").why_not or "")
    told = result.latency("e2e").tool_said
    assert told is not None
    assert told.num_samples == 1_200
    weighted = result.latency("tpot").tool_said
    assert weighted is not None
    assert weighted.num_samples is None  # GuideLLM counts its weights there


def test_an_older_guidellm_report_keeps_its_totals_and_model_elsewhere() -> None:
    report = guidellm_report(columns())
    benchmark = report["benchmarks"][0]
    benchmark["request_totals"] = benchmark["metrics"].pop("request_totals")
    benchmark["worker"] = {"backend_model": "older"}
    benchmark["args"] = {"strategy": {"type_": "constant", "rate": 2.0}}
    del benchmark["config"], benchmark["scheduler_metrics"], report["args"], report["metadata"]
    result = imported(report)

    assert (result.completed, result.model) == (1_200, "older")
    assert result.settings == {"strategy": "constant", "rate_per_s": 2.0}


def test_every_benchmark_of_a_report_is_a_result() -> None:
    report = guidellm_report(columns(count=20))
    report["benchmarks"] *= 3

    assert [each.index for each in read_bytes(json.dumps(report).encode(), "b.json")] == [0, 1, 2]


# AIPerf


def test_aiperfs_records_give_all_four_latencies() -> None:
    found = columns(failed=9)
    result = imported(*aiperf_records(found))

    assert (result.kind, result.num_requests, result.completed, result.failed) == ("aiperf", 1_200, 1_191, 9)
    assert all(result.latency(name).recomputed for name in LATENCIES)
    gaps = [gap for each in found.itl_s for gap in each or ()]
    itl = result.latency("itl").values
    assert itl is not None
    assert itl.num_samples == len(gaps)
    assert itl.p99_s == pytest.approx(np.percentile(gaps, 99))
    assert said(result, "9 requests failed")


def test_aiperfs_warm_up_is_left_out_and_the_duration_is_exact_to_the_nanosecond() -> None:
    records = aiperf_records(columns(count=3), phase="warmup") + aiperf_records(columns(count=20, seed=3))
    result = imported(*records)

    assert result.num_requests == 20
    assert said(result, "3 requests of the warm-up")
    metadata = [record["metadata"] for record in records[3:]]
    lasted = max(each["request_end_ns"] for each in metadata) - metadata[0]["request_start_ns"]
    assert result.duration_s == lasted / 1e9


def test_aiperfs_summary_is_told_under_our_names_with_what_it_calls_them() -> None:
    block = {"unit": "ms", "avg": 12.5, "p50": 12.0, "p90": 14.0, "p95": 15.0, "p99": 20.0, "min": 1.0, "std": 2.0}
    result = imported(
        {
            "schema_version": "1.0", "aiperf_version": "0.3.0",
            "time_to_first_token": block | {"avg": 0.25, "unit": "sec"},
            "inter_token_latency": block, "inter_chunk_latency": block, "request_latency": block,
            "request_count": {"unit": "requests", "avg": 100.0},
            "error_request_count": {"unit": "requests", "avg": 2.0},
            "benchmark_duration": {"unit": "sec", "avg": 10.0}, "total_osl": {"unit": "tokens", "avg": 5_000.0},
            "output_token_throughput": {"unit": "tokens/sec", "avg": 500.0},
            "input_config": {"endpoint": {"model_names": ["a", "b"]}, "loadgen": {"concurrency": 8}},
        }
    )  # fmt: skip

    tpot, ttft = result.latency("tpot"), result.latency("ttft")
    assert "inter_token_latency" in (tpot.tool_definition or "")
    assert "profile_export.jsonl" in (tpot.why_not or "")
    assert tpot.tool_said is not None
    assert tpot.tool_said.p99_s == pytest.approx(0.020)
    assert ttft.tool_said is not None
    assert ttft.tool_said.mean_s == pytest.approx(0.25)
    assert (result.num_requests, result.failed, result.model) == (102, 2, "a, b")
    assert result.rates.output_tokens_per_s == result.tool_rates.output_tokens_per_s == 500.0


def test_a_unit_that_is_not_known_is_an_error_that_lists_those_that_are() -> None:
    (record,) = aiperf_records(columns(count=1))
    record["metrics"]["request_latency"]["unit"] = "fortnights"

    with pytest.raises(UsageError, match=r"metrics\.request_latency\.unit: one of ns, us, ms"):
        imported(record)


# llama-bench


def test_llama_benchs_repetitions_are_recomputed_from_their_times() -> None:
    result = imported(LLAMA_BENCH)

    found = result.repetitions
    assert found is not None
    assert found.what == "output tokens/s"
    assert found.values_per_s[0] == pytest.approx(128e9 / 1075361300)
    assert (found.mean_per_s, found.sd_per_s) == (pytest.approx(118.881588), pytest.approx(1.041811, rel=1e-4))
    assert found.agrees is True
    assert result.tool_version == "b5163"
    assert not any(result.latency(name).shown for name in LATENCIES)
    assert "without a server" in (result.latency("ttft").why_not or "")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"n_prompt": 512, "n_gen": 0}, "prompt tokens/s"),
        ({"n_prompt": 512, "n_gen": 128}, "tokens/s"),
    ],
)
def test_a_llama_bench_row_says_which_tokens_it_counts(changes: dict[str, int], what: str) -> None:
    found = imported(LLAMA_BENCH | changes).repetitions
    assert found is not None
    assert found.what == what


def test_a_llama_bench_row_without_samples_is_as_told() -> None:
    found = imported({key: value for key, value in LLAMA_BENCH.items() if not key.startswith("samples")}).repetitions
    assert found is not None
    assert (found.mean_per_s, found.tool_mean_per_s, found.agrees) == (None, 118.881588, None)
