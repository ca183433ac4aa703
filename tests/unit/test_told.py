"""Prometheus text and nested JSON, made flat."""

from __future__ import annotations

from assay.engines.told import counters, flatten, labels, total

METRICS = """
# HELP vllm:cache_config_info facts
vllm:cache_config_info{block_size="128",quoted="a\\"b",engine="0"} 1.0
vllm:tokens_total{engine="0"} 3.0
vllm:tokens_total{engine="1"} 4.0
vllm:tokens_created{engine="0"} 1.7e9
vllm:ratio NaN
vllm:latency_bucket{le="+Inf"} 2.0
not a metric
"""


def test_counters_keep_labels_and_drop_what_is_no_number() -> None:
    assert counters(METRICS) == {
        'vllm:cache_config_info{block_size="128",quoted="a\\"b",engine="0"}': 1.0,
        'vllm:tokens_total{engine="0"}': 3.0,
        'vllm:tokens_total{engine="1"}': 4.0,
        'vllm:latency_bucket{le="+Inf"}': 2.0,
    }


def test_a_metric_is_summed_over_its_labels() -> None:
    assert total(counters(METRICS), "vllm:tokens_total") == 7.0
    assert total(counters(METRICS), "vllm:absent") is None


def test_facts_are_read_from_labels() -> None:
    assert labels(METRICS, "vllm:cache_config_info") == {"block_size": "128", "quoted": 'a"b', "engine": "0"}
    assert labels(METRICS, "vllm:absent") == {}


def test_nested_values_get_dotted_names() -> None:
    assert flatten({"a": {"b": 1, "c": {"d": [1]}}, "e": None}) == {"a.b": 1, "a.c.d": [1], "e": None}
