"""vLLM's results: the same numbers as it printed, and what it does not say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.errors import UsageError
from assay.formats.read import read_bytes
from assay.records.imported import LATENCIES, STATISTICS, ImportedResult
from tests.unit.formats_sample import DETAILED, columns, vllm_row

KEYS = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}


def imported(row: dict[str, Any]) -> ImportedResult:
    (result,) = read_bytes(json.dumps(row).encode(), "run.json")
    return result


def without(row: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in keys}


def said(result: ImportedResult, words: str) -> bool:
    return any(words in warning for warning in result.warnings)


@pytest.mark.parametrize("failed", [0, 30])
def test_a_detailed_file_gives_what_vllm_printed_to_rounding(failed: int) -> None:
    row = vllm_row(columns(failed=failed))
    result = imported(row)

    assert result.kind == "vllm"
    for name in LATENCIES:
        latency = result.latency(name)
        assert latency.recomputed
        assert latency.agrees is True
        assert [one.statistic for one in latency.comparison] == list(STATISTICS)
        assert latency.values is not None
        assert latency.tool_said is not None
        for statistic in STATISTICS:
            printed = f"{row[f'{statistic}_{KEYS[name]}_ms']:.2f}"
            ours, theirs = latency.values.value(statistic), latency.tool_said.value(statistic)
            assert ours is not None
            assert theirs is not None
            assert f"{1000 * ours:.2f}" == printed
            assert f"{1000 * theirs:.2f}" == printed
    assert (result.num_requests, result.completed, result.failed) == (1_200, 1_200 - failed, failed)
    assert said(result, "failed") == bool(failed)


def test_throughputs_are_counts_over_the_duration_and_agree_with_vllms_own() -> None:
    result = imported(vllm_row(columns()))

    assert result.duration_s == 30
    for name in ("requests_per_s", "output_tokens_per_s", "total_tokens_per_s"):
        assert getattr(result.rates, name) == pytest.approx(getattr(result.tool_rates, name))
    assert said(result, "ramp-up")


def test_the_load_that_was_asked_for_is_kept() -> None:
    result = imported(vllm_row(columns()) | {"request_rate": 12.5, "version": "0.11.0"})

    assert result.model == "org/some-model"
    assert result.tool_version == "0.11.0"
    assert result.settings["rate_per_s"] == 12.5
    assert result.settings["concurrency"] == 16


def test_a_file_without_arrays_is_shown_as_told_and_says_what_is_missing() -> None:
    row = without(vllm_row(columns()), *DETAILED, "latencies", "queue_times")
    result = imported(row)

    for name in LATENCIES:
        latency = result.latency(name)
        assert not latency.recomputed
        assert "--save-detailed" in (latency.why_not or "")
        assert latency.shown == latency.tool_said
        assert "vLLM" in (latency.tool_definition or "")
        assert latency.agrees is None
    assert result.num_requests == 1_200


def test_the_latencies_that_newer_versions_always_write_give_e2e_alone() -> None:
    result = imported(without(vllm_row(columns(failed=20)), *DETAILED))

    assert [name for name in LATENCIES if result.latency(name).recomputed] == ["e2e"]
    assert result.latency("e2e").agrees is True
    assert result.failed == 20


def test_an_early_version_without_latencies_and_failed_is_read_from_its_arrays() -> None:
    row = without(vllm_row(columns(failed=10)), "latencies", "queue_times", "start_times", "failed", "request_goodput")
    result = imported(row | {"request_goodput:": 17.0})

    assert result.failed == 10
    assert result.tool_rates.goodput_per_s == 17.0
    assert all(result.latency(name).agrees for name in LATENCIES)
    assert said(result, "no `latencies`")


def test_a_version_that_writes_neither_failures_nor_arrays_is_said_to_do_so() -> None:
    result = imported(without(vllm_row(columns()), *DETAILED, "latencies", "queue_times", "failed"))

    assert (result.failed, result.num_requests) == (None, None)
    assert said(result, "how many requests failed")


def test_a_request_that_failed_in_the_middle_of_its_stream_is_in_no_latency() -> None:
    found = columns(count=50)
    row = vllm_row(found)
    row["errors"][3], row["output_lens"][3], row["latencies"][3] = "Traceback ...", 0, 0.0
    result = imported(row | {"completed": 49, "failed": 1})

    values = result.latency("ttft").values
    assert values is not None
    assert values.num_samples == 49


def test_a_failure_without_a_message_is_a_failure() -> None:
    row = vllm_row(columns(count=50, failed=2))
    result = imported(row | {"errors": [""] * 50})

    assert result.failed == 2
    assert result.latency("ttft").agrees is True


def test_tokens_with_a_ttft_of_zero_are_not_a_measurement() -> None:
    row = vllm_row(columns(count=50))
    row["ttfts"][:5] = [0.0] * 5
    result = imported(row)

    values = result.latency("ttft").values
    assert values is not None
    assert values.num_samples == 45
    assert said(result, "TTFT of 0")
    assert result.latency("ttft").agrees is False


def test_a_success_without_a_token_counts_as_failed_here_and_is_said() -> None:
    row = vllm_row(columns(count=50))
    row["output_lens"][0] = 0
    result = imported(row)

    values = result.latency("e2e").values
    assert values is not None
    assert values.num_samples == 49
    assert said(result, "no token")


def test_as_many_gaps_as_tokens_mean_that_empty_chunks_were_counted() -> None:
    row = vllm_row(columns(count=50))
    row["itls"] = [[0.001, *gaps] for gaps in row["itls"]]

    assert said(imported(row), "as many gaps as tokens")
    assert not said(imported(vllm_row(columns(count=50))), "as many gaps as tokens")


def test_chunks_of_several_tokens_make_itl_a_time_per_chunk() -> None:
    row = vllm_row(columns(count=50))
    row["output_lens"] = [4 * tokens for tokens in row["output_lens"]]

    assert said(imported(row), "4.0 tokens on average")


def test_a_wait_in_the_client_is_named() -> None:
    row = vllm_row(columns(count=50)) | {"queue_times": [0.250] * 50}

    assert said(imported(row), "250.0 ms")


def test_zeros_for_what_was_not_measured_are_not_taken_over() -> None:
    row = without(vllm_row(columns()), *DETAILED, "latencies")
    row |= {key: 0.0 for key in row if key.endswith("_ttft_ms")}
    result = imported(row)

    assert result.latency("ttft").shown is None
    assert said(result, "vLLM wrote 0 for TTFT")


def test_a_p99_from_few_samples_is_marked() -> None:
    assert said(imported(vllm_row(columns(count=50))), "fewer than 1,000 samples")
    assert not said(imported(vllm_row(columns(count=1_200))), "fewer than 1,000 samples")


def test_counts_that_contradict_the_arrays_are_named() -> None:
    assert said(imported(vllm_row(columns(count=50)) | {"completed": 40}), "40 requests completed")


def test_a_run_in_which_everything_failed_says_so_instead_of_what_the_file_lacks() -> None:
    result = imported(vllm_row(columns(count=20, failed=20)))

    assert [result.latency(name).why_not for name in LATENCIES] == ["no request of the run succeeded"] * 4


def test_an_appended_file_has_a_result_for_each_line() -> None:
    rows = [vllm_row(columns(count=20, seed=seed)) for seed in (1, 2, 3)]
    results = read_bytes("\n".join(json.dumps(row) for row in rows).encode(), "runs.json")

    assert [result.index for result in results] == [0, 1, 2]
    assert read_bytes(json.dumps(rows).encode(), "summary.json")[2].latencies == results[2].latencies


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("duration", "30", "duration"),
        ("completed", 1.5, "completed"),
        ("completed", True, "completed"),
        ("mean_ttft_ms", [1], "mean_ttft_ms"),
        ("ttfts", 0.1, "ttfts"),
        ("ttfts", [0.1, None], "ttfts[1]"),
        ("itls", [[0.1], ["fast"]], "itls[1][0]"),
        ("itls", [0.1], "itls[0]"),
        ("errors", [1], "errors[0]"),
        ("duration", 1e300, "duration"),
    ],
)
def test_a_wrong_value_is_named_with_its_file_and_place(key: str, value: object, place: str) -> None:
    with pytest.raises(UsageError) as caught:
        imported(vllm_row(columns(count=2)) | {key: value})

    assert caught.value.message.startswith(f"run.json: {place}: ")
    assert "found" in caught.value.message
    assert "--format" in (caught.value.hint or "")


def test_arrays_of_different_lengths_leave_vllms_own_summary_with_the_lengths_and_how_to_save_them() -> None:
    result = imported(vllm_row(columns(count=20)) | {"ttfts": [0.1]})

    assert said(result, "ttfts 1, itls 20")
    assert said(result, "--save-detailed")
    for name in LATENCIES:
        latency = result.latency(name)
        assert "different lengths" in (latency.why_not or "")
        assert latency.tool_said is not None
        assert latency.shown == latency.tool_said
    assert (result.completed, result.rates.requests_per_s) == (20, pytest.approx(20 / 30))


def test_arrays_of_different_lengths_without_a_summary_are_an_error_that_gives_the_lengths() -> None:
    row = {"duration": 3.0, "completed": None, "request_throughput": None, "ttfts": [0.1], "itls": [[0.1], [0.2]]}
    with pytest.raises(UsageError, match="ttfts 1, itls 2"):
        imported(row)


def test_an_empty_array_beside_full_ones_is_taken_as_not_saved_and_the_rest_is_recomputed() -> None:
    result = imported(vllm_row(columns(count=50)) | {"ttfts": []})

    assert [name for name in LATENCIES if result.latency(name).recomputed] == ["itl", "e2e"]
    assert "no `ttfts`" in (result.latency("ttft").why_not or "")
    assert "--save-detailed" in (result.latency("ttft").why_not or "")
    assert result.latency("ttft").shown == result.latency("ttft").tool_said
    assert said(result, "nothing is in `ttfts`")


def test_arrays_that_are_all_empty_say_so_and_leave_the_summary() -> None:
    row = vllm_row(columns(count=50))
    result = imported(row | {key: [] for key in (*DETAILED, "latencies", "queue_times")})

    assert {result.latency(name).why_not for name in LATENCIES} == {
        "the row's arrays are empty: `vllm bench serve --save-result --save-detailed` saves them"
    }
    assert all(result.latency(name).shown for name in LATENCIES)
    assert result.num_requests == 50


def test_unknown_keys_are_ignored() -> None:
    row = vllm_row(columns(count=20))

    assert imported(row | {"spec_decode_acceptance_rate": 71.0, "anything": {"a": [1]}}) == imported(row)
