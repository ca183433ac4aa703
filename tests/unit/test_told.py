"""Prometheus text and nested JSON, made flat."""

from __future__ import annotations

import pytest

from assay.engines.told import counters, flatten, json_object, labels, scalar

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


def test_facts_are_read_from_labels() -> None:
    assert labels(METRICS, "vllm:cache_config_info") == {"block_size": "128", "quoted": 'a"b', "engine": "0"}
    assert labels(METRICS, "vllm:absent") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [("4,096", 4096), ("12", 12), ("0.92", 0.92), ("0,1", "0,1"), ("flashinfer", "flashinfer"), ("1.2.3", "1.2.3")],
)
def test_a_word_of_a_log_is_a_number_where_it_is_one(text: str, said: object) -> None:
    assert scalar(text) == said


def test_only_a_json_object_is_read_as_one() -> None:
    assert json_object(' {"a": 1}') == {"a": 1}
    assert [json_object(value) for value in ("[1]", "{a", "auto", 3, True)] == [None] * 5


def test_nested_values_get_dotted_names() -> None:
    assert flatten({"a": {"b": 1, "c": {"d": [1]}}, "e": None}) == {"a.b": 1, "a.c.d": [1], "e": None}
