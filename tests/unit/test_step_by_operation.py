"""The script that profiles vLLM's decode step: what it keeps of a trace, and how it spells the campaign's flags."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import click
import pytest
from benchmarks.gpu.campaign_slices import WORKLOAD
from benchmarks.gpu.step_by_operation import ASSAY, bench_words, cut, words_of

from assay.cli import cli
from assay.formats.traces import read_trace
from tests.unit.kineto import decode_tape


def test_a_cut_trace_says_the_same_of_its_steps(tmp_path: Path) -> None:
    tape = decode_tape(steps=6)
    tape.events.append(
        {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "ts": 1000.0, "dur": 2.0, "pid": 99, "tid": 99}
    )
    whole, kept = tape.write(tmp_path / "whole.json.gz"), tmp_path / "kept.json.gz"

    assert cut(whole, kept) == 6

    assert read_trace(kept).decode == read_trace(whole).decode
    assert kept.stat().st_size < whole.stat().st_size


def test_a_trace_that_is_too_large_loses_its_last_steps(tmp_path: Path) -> None:
    whole, kept = decode_tape(steps=9).write(tmp_path / "whole.json.gz"), tmp_path / "kept.json.gz"

    steps = cut(whole, kept, most_bytes=whole.stat().st_size // 2)

    decode, complete = read_trace(kept).decode, read_trace(whole).decode
    assert 2 <= steps < 9
    assert decode is not None
    assert complete is not None
    assert [one.operation for one in decode.operations] == [one.operation for one in complete.operations]
    assert decode.busy_s == pytest.approx(complete.busy_s)


def test_flags_that_are_off_are_spelled_as_vllm_spells_them() -> None:
    flags = {"--enable-prefix-caching": False, "--enforce-eager": True, "--max-num-seqs": 128}

    assert words_of(flags) == ["--no-enable-prefix-caching", "--enforce-eager", "--max-num-seqs", "128"]


def test_the_load_is_the_campaigns_and_counts_tokens_that_are_no_text(tmp_path: Path) -> None:
    words = bench_words(Namespace(window=3.0), "http://127.0.0.1:8000", 64, tmp_path)
    command = cli.get_command(click.Context(cli), "bench")
    assert command is not None

    told = command.make_context("bench", words[len(ASSAY) + 1 :]).params

    assert told["concurrency"] == WORKLOAD.concurrency
    assert told["input_tokens"] == "256-256"
    assert told["output_tokens"] == f"{WORKLOAD.output_tokens[0]}-{WORKLOAD.output_tokens[1]}"
    assert told["extra_body"] == ("return_token_ids=true",)
