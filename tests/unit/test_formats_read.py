"""Files of any kind: told apart by their content, and nothing but a UsageError for what is wrong with them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.formats.columns import RequestColumns
from assay.formats.fields import clean
from assay.formats.read import READERS, read_bytes, read_file
from assay.records.imported import FORMATS, Format
from tests.unit.formats_sample import LLAMA_BENCH, aiperf_records, columns, guidellm_report, sglang_row, vllm_row

FEW = columns(count=4)
DOCUMENTS: dict[Format, list[dict[str, Any]]] = {
    "vllm": [vllm_row(FEW)],
    "sglang": [sglang_row(FEW)],
    "guidellm": [guidellm_report(FEW)],
    "aiperf": aiperf_records(FEW),
    "llama-bench": [LLAMA_BENCH],
}
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def lines(documents: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(each) for each in documents).encode()


@pytest.mark.parametrize("kind", FORMATS)
def test_each_format_is_told_by_its_content(kind: Format) -> None:
    assert {result.kind for result in read_bytes(lines(DOCUMENTS[kind]), "run")} == {kind}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_has_a_reader_and_can_be_named(kind: Format) -> None:
    assert kind in READERS
    assert read_bytes(lines(DOCUMENTS[kind]), "run", kind) == read_bytes(lines(DOCUMENTS[kind]), "run")


@pytest.mark.parametrize(
    ("raw", "message", "hint"),
    [
        (b"", "run: the file is empty", "cut off"),
        (b"  \n", "run: the file is empty", "cut off"),
        (b"\xff\xfe{", "run: this is not UTF-8 text", "JSON"),
        (b"| model | t/s |", "run: this is not JSON: Expecting value at line 1, column 1", "not its printed table"),
        (b"[]", "run: it holds an empty list", "cut off"),
        (b"3", "run: the whole file: a JSON object is wanted here, found 3", "--format"),
        (b"[1]", "run: [0]: a JSON object is wanted here, found 1", "--format"),
        (b'{"a": 1}', "run: this is no format that is read; its keys begin with ['a']", "vllm, sglang, guidellm"),
        (b'{"avg_latency": 1}', "run: this is no format that is read", "vllm bench latency"),
        (b'{"benchmarks": []}', "run: nothing in it is a result of guidellm", "cut off"),
        (b"[" * 100_000, "run: this is not JSON: it is nested too deeply", "JSON"),
        (b"9" * 5_000, "run: this is not JSON: Exceeds the limit", "JSON"),
    ],
)
def test_what_cannot_be_read_is_said_with_what_to_do(raw: bytes, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_bytes(raw, "run")

    assert caught.value.message.startswith(message)
    assert hint in (caught.value.hint or "")


def test_a_line_that_was_cut_off_is_named() -> None:
    raw = lines([LLAMA_BENCH, LLAMA_BENCH]) + b'\n{"avg_ts": 1'

    with pytest.raises(UsageError, match="line 3 is not JSON") as caught:
        read_bytes(raw, "run.jsonl")
    assert "remove that line" in (caught.value.hint or "")


def test_results_of_two_tools_in_one_file_are_refused() -> None:
    with pytest.raises(UsageError, match="begins as llama-bench, but line 2 is vllm"):
        read_bytes(lines([LLAMA_BENCH, vllm_row(FEW)]), "run.jsonl")


def test_a_wrong_value_in_a_line_is_named_with_the_line() -> None:
    with pytest.raises(UsageError, match="run: line 2: avg_ts: a number is wanted here, found 'fast'"):
        read_bytes(lines([LLAMA_BENCH, LLAMA_BENCH | {"avg_ts": "fast"}]), "run")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read it: No such file"):
        read_file(tmp_path / "none.json")


def test_a_byte_order_mark_and_a_line_separator_inside_a_text_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    rows = [LLAMA_BENCH | {"cpu_info": "one\u2028two"}, LLAMA_BENCH]
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode())

    assert len(read_file(path)) == 2


def test_a_foreign_text_keeps_no_control_codes_and_no_half_surrogates() -> None:
    assert clean("a\x1b[31mb\ud800") == "a\N{REPLACEMENT CHARACTER}[31mb\N{REPLACEMENT CHARACTER}"
    assert len(clean("x" * 10_000)) == 200


def test_columns_of_different_lengths_are_a_mistake_of_ours() -> None:
    one: list[Any] = [None]
    with pytest.raises(ValueError, match="different lengths"):
        RequestColumns(input_tokens=one, output_tokens=one, ttft_s=one, latency_s=one, itl_s=one, start_s=[], error=one)


def only_usage_errors(raw: bytes, kind: Format | None = None) -> None:
    with suppress(UsageError):
        for result in read_bytes(raw, "run", kind):
            assert json.dumps(result.model_dump(mode="json"))


@given(st.binary(max_size=200))
def test_bytes_are_read_or_refused(raw: bytes) -> None:
    only_usage_errors(raw)


@given(JSON, st.sampled_from([None, *FORMATS]))
def test_any_json_is_read_or_refused(value: Any, kind: Format | None) -> None:
    only_usage_errors(json.dumps(value).encode(), kind)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """A good file in which some values were replaced by any JSON, or taken out."""
    documents = json.loads(json.dumps(DOCUMENTS[draw(st.sampled_from(FORMATS))]))
    for _ in range(draw(st.integers(1, 3))):
        spoil(draw, documents)
    return lines(documents)


def spoil(draw: st.DrawFn, documents: list[Any]) -> None:
    """Go down at random, and change what is there."""
    place: Any = documents
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not draw(st.booleans()):
            break
        place = place[key]
    if place is documents:
        return
    if isinstance(place, dict) and draw(st.booleans()):
        del place[key]
    else:
        place[key] = draw(JSON)


@settings(max_examples=300)
@given(spoiled())
@example(lines([vllm_row(FEW) | {"ttfts": [1e20] * 4, "latencies": [1e20] * 4}]))
@example(lines([vllm_row(FEW) | {"duration": 5e-324}]))
@example(lines([vllm_row(FEW) | {"model_id": "\ud800\x1b"}]))
@example(lines([LLAMA_BENCH | {"samples_ns": [1e20, 0, 2], "n_gen": 10**19}]))
def test_a_spoiled_file_is_read_or_refused(raw: bytes) -> None:
    only_usage_errors(raw)
