"""`assay import` as a person and as a program sees it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from assay.cli.import_ import FORMATS as OFFERED
from assay.cli.import_ import import_command
from assay.errors import UsageError
from assay.formats.columns import RequestColumns
from assay.formats.read import read_bytes
from assay.records.imported import FORMATS, ImportedResult
from assay.render.imported import imported_view
from tests.unit.formats_sample import LLAMA_BENCH, aiperf_records, columns, guidellm_report, sglang_row, vllm_row

FOUND = columns()


def imported(*documents: dict[str, Any], name: str = "folder/run.json") -> list[ImportedResult]:
    return read_bytes("\n".join(json.dumps(each) for each in documents).encode(), name)


def drawn(results: list[ImportedResult], width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, no_color=True, highlight=False, markup=False, emoji=False).print(
        imported_view(results)
    )
    return stream.getvalue()


def row(text: str, label: str) -> list[str]:
    return next(line for line in text.splitlines() if line.strip().startswith(f"{label} ")).split()


def invoke(*words: str) -> Result:
    return CliRunner().invoke(import_command, list(words))


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    runs = [
        *imported(vllm_row(FOUND)),
        *imported(sglang_row(FOUND)),
        *imported(guidellm_report(FOUND)),
        *imported(LLAMA_BENCH),
    ]
    for shown in (*([run] for run in runs), runs):
        assert max(map(len, drawn(shown, width).splitlines())) <= width


def test_one_run_is_a_row_for_each_latency_in_milliseconds_with_the_tools_own_beside_it() -> None:
    document = vllm_row(FOUND)
    text = drawn(imported(document))

    ttft = row(text, "TTFT")
    assert ttft[1] == "1,200"
    assert float(ttft[2]) == pytest.approx(document["mean_ttft_ms"], rel=0.01)
    assert float(ttft[6]) == pytest.approx(document["p99_ttft_ms"], rel=0.01)
    assert ttft[-2:] == ["agree", "yes"]
    assert "run.json: vllm bench serve, org/some-model" in text
    assert "1,200 requests, 1,200 completed, 0 failed, 30.0 s" in text
    assert "warning: throughput is over the whole run" in text


def test_what_was_not_recomputed_is_as_told_with_the_reason_once() -> None:
    text = drawn(imported(sglang_row(FOUND, detailed=False)), 300)

    assert row(text, "ITL")[-3:] == ["as", "told", "no"]
    assert text.count("not recomputed: the row's arrays are missing") == 1
    assert "TTFT, TPOT, ITL, E2E not recomputed" in text


def test_numbers_that_differ_are_shown_and_both_definitions_with_them() -> None:
    text = drawn(imported(guidellm_report(FOUND)), 300)

    assert "p99" in row(text, "TPOT")
    assert "p50" not in row(text, "TPOT")  # within 1%
    assert row(text, "E2E")[-3:] == ["within", "0.01%", "yes"]  # observed and interpolated percentiles
    assert "TPOT differs: ours is (E2E - TTFT) / (output tokens - 1)" in text
    assert "weighted by tokens" in text


def test_several_runs_stand_below_each_other_in_a_table_for_each_latency() -> None:
    runs = [*imported(vllm_row(FOUND), name="a.json"), *imported(*aiperf_records(FOUND), name="b.jsonl")]
    text = drawn(runs)

    assert "[1] a.json" in text
    assert "[2] b.jsonl" in text
    for name in ("TTFT", "TPOT", "ITL", "E2E"):
        assert f"{name} ms" in text
    rows = [line for line in text.splitlines() if re.match(r" *\[[12]\] +1,200 ", line)]
    assert len(rows) == 6  # all but ITL, whose count is larger


def test_a_run_without_latencies_shows_its_repetitions_and_says_why_there_are_none() -> None:
    text = drawn(imported(LLAMA_BENCH), 200)

    assert "119 ± 1.04 output tokens/s over 5 repetitions, theirs agrees" in text
    assert "mean" not in text
    assert "TTFT, TPOT, ITL, E2E not recomputed: llama-bench runs the model without a server" in text


def test_a_second_run_of_a_file_is_named_as_such() -> None:
    assert "run.json, run 2" in drawn(imported(LLAMA_BENCH, LLAMA_BENCH))


def test_text_that_looks_like_markup_or_a_control_code_is_harmless() -> None:
    text = drawn(imported(vllm_row(FOUND) | {"model_id": "[bold]m[/bold]\x1b[31m"}), 200)

    assert "[bold]m[/bold]" in text
    assert "\x1b" not in text


def test_the_command_prints_the_view(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(vllm_row(FOUND)), encoding="utf-8")
    shown = invoke(str(path))

    assert shown.exit_code == 0
    assert "recomputed?" in shown.stdout


def test_the_command_prints_json_for_programs(tmp_path: Path) -> None:
    for name, document in (("a.json", vllm_row(FOUND)), ("b.json", LLAMA_BENCH)):
        (tmp_path / name).write_text(json.dumps(document), encoding="utf-8")
    shown = invoke(str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--json")

    first, second = json.loads(shown.stdout)
    assert ImportedResult.model_validate(first).latency("ttft").agrees is True
    assert (first["kind"], second["kind"]) == ("vllm", "llama-bench")


@pytest.mark.parametrize(("named", "row", "like"), [("sglang", vllm_row, "vllm"), ("vllm", sglang_row, "sglang")])
def test_a_format_that_is_named_and_does_not_fit_is_refused_with_the_one_that_does(
    tmp_path: Path, named: str, row: Callable[[RequestColumns], dict[str, Any]], like: str
) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(row(FOUND)), encoding="utf-8")
    result = invoke(str(path), "--format", named)

    assert isinstance(result.exception, UsageError)
    assert f"this is not {named}: by its keys it looks like {like}" in result.exception.message
    assert f"--format {like}" in (result.exception.hint or "")


def test_the_formats_that_the_command_offers_are_those_that_are_read() -> None:
    assert tuple(OFFERED) == FORMATS


def test_the_command_goes_by_the_name_that_python_keeps_for_itself() -> None:
    assert import_command.name == "import"
