"""`assay estimate`: what it takes, what it refuses and with which advice, and what it says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from assay.cli.estimate import estimate
from assay.cli.estimate_spelling import read_concurrencies, read_layout, read_routing
from assay.cli.failure import Trouble, explain
from assay.errors import UsageError
from assay.roofline.scheduling import ENGINES
from tests.cli.records import modules_loaded_by

BOX = "8xRTX-PRO-6000"
FOUNDING = ["glm-5-nvfp4", "--on", BOX, "--layout", "tp8"]


def told(*words: str, width: int = 80) -> str:
    """What the command prints."""
    done = CliRunner(env={"COLUMNS": str(width), "NO_COLOR": "1"}).invoke(
        estimate, list(words), prog_name="assay estimate", catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def document(*words: str) -> dict[str, Any]:
    return dict(json.loads(told(*words, "--json")))


def trouble(*words: str) -> Trouble:
    """What the command refuses these words with."""
    with pytest.raises((UsageError, click.ClickException)) as caught:
        estimate.main(list(words), prog_name="assay estimate", standalone_mode=False)
    return explain(caught.value)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A small dense model as a folder with config.json, made for these tests."""
    folder = tmp_path / "small"
    folder.mkdir()
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "max_position_embeddings": 131072,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_the_help_teaches() -> None:
    text = CliRunner().invoke(estimate, ["--help"], prog_name="assay estimate").stdout

    sections = ["Usage:", "Options:", "Needs first:", "Examples:", "Exit codes:"]
    assert [text.index(section) for section in sections] == sorted(text.index(section) for section in sections)
    for option in estimate.params:
        if isinstance(option, click.Option):
            assert option.help, option.name


def test_the_help_imports_nothing_heavy_and_an_estimate_no_more_than_it_needs(small: Path) -> None:
    heavy = {"pydantic", "numpy", "scipy", "rich", "pyarrow", "jinja2", "sqlalchemy", "torch", "transformers"}
    call = f"from assay.cli.estimate import estimate; estimate.main([{str(small)!r}, '--on', '{BOX}'])"

    assert not modules_loaded_by(["-c", "import assay.cli.estimate"]) & heavy
    assert not modules_loaded_by(["-c", call]) & {"scipy", "pyarrow", "jinja2", "sqlalchemy", "torch", "transformers"}


@pytest.mark.parametrize(
    ("words", "said", "advice"),
    [
        ([], "MODEL is missing", "--list"),
        (["glm-5-nvfp4"], "--on BOX is missing", "--list"),
        (["glm-5-nvfpp4", "--on", BOX], "glm-5-nvfpp4", "glm-5-nvfp4"),
        (["glm-5-nvfp4", "--on", "8xRTX-PRO-600"], "RTX-PRO-600", "rtx-pro-6000"),
        ([*FOUNDING[:3], "--layout", "tq8"], "--layout tq8", "tp8"),
        ([*FOUNDING[:3], "--layout", "tp8tp4"], "at most once", "tp4pp2"),
        ([*FOUNDING[:3], "--layout", "tp0"], "from 1 up", "tp8"),
        ([*FOUNDING[:3], "--layout", "tp16"], "it takes 16 devices, and there are 8", "--layout tp8"),
        (["llama-3.1-8b", "--on", BOX, "--layout", "ep8"], "llama-3.1-8b has none", "--layout tp8"),
        ([*FOUNDING, "--concurrency", "8,x"], "--concurrency 8,x", "1,8,64"),
        ([*FOUNDING, "--concurrency", "0"], "--concurrency 0", "1,8,64"),
        ([*FOUNDING, "--routing", "zipf"], "--routing zipf", "zipf:1.0"),
        (["llama-3.1-8b", "--on", BOX, "--routing", "zipf:1"], "llama-3.1-8b has no experts", "leave it out"),
        (["llama-3.1-8b", "--on", BOX, "--search", "--routing", "zipf:1"], "has no experts", "leave it out"),
        ([*FOUNDING, "--engine", "vllm==0.9.0; rm -rf"], "'0.9.0; rm -rf' is no version", "vllm==0.11.1"),
        ([*FOUNDING, "--engine", "vllm=="], "'' is no version", "vllm==0.11.1"),
        (["~nosuchuser/m", "--on", BOX], "~nosuchuser", "from / on"),
        ([*FOUNDING, "--context", "5", "--input", "5"], "contradict each other", "decode alone"),
        ([*FOUNDING, "--search"], "--search and --layout contradict", "search first"),
        ([*FOUNDING[:3], "--search", "--context", "9"], "--search and --context contradict", "search first"),
        ([*FOUNDING[:3], "--search", "--slo", "e2e=9s"], "not on e2e", "tpot"),
        ([*FOUNDING[:3], "--search", "--slo", "p99=4"], "p99=4", "for example --slo ttft=500ms,tpot=50ms"),
        (["glm-5-nvfp4", "--on", "2xRTX-PRO-6000", "--search"], "does not fit on 2 of", "on 8 of these devices under"),
        (["llama-3.1-8b", "--on", "cpu"], "no device is called 'cpu'", "assay characterize --model MODEL --on cpu"),
        ([*FOUNDING, "--slo", "ttft=5s"], "--slo belongs to --search", "--search"),
        (["glm-5-nvfp4", "--on", "2xRTX-PRO-6000"], "does not fit as tp2", "on 8 of these devices under tp8"),
        ([*FOUNDING, "--input", "200000", "--output", "200000"], "does not fit into the cache", "at most"),
    ],
)
def test_what_cannot_be_is_refused_with_the_value_and_the_way_out(words: list[str], said: str, advice: str) -> None:
    found = trouble(*words)

    assert found.exit_code == 2
    assert said in found.message
    assert advice in (found.hint or "")


@pytest.mark.parametrize("text", ["tp2,dp4,ep8", "tp2 dp4 ep8", "TP2DP4EP8", "tp=2, dp=4, ep=8", "tp2/dp4/ep8"])
def test_a_layout_is_read_in_any_spelling(text: str) -> None:
    assert read_layout(text).name == "tp2 dp4 ep8"


def test_the_help_names_every_engine_whose_scheduling_is_known() -> None:
    said = next(one.help or "" for one in estimate.params if isinstance(one, click.Option) and one.name == "engine")

    assert set(re.findall(r"[a-z-]+", said.partition(":")[2].partition(";")[0])) == set(ENGINES)


def test_numbers_and_routing_are_read() -> None:
    assert read_concurrencies("64, 1,8") == [1, 8, 64]
    assert (read_routing("zipf:1.2").law, read_routing("zipf:1.2").exponent) == ("zipf", 1.2)
    assert read_routing("uniform").law == "uniform"


@pytest.mark.parametrize("example", estimate.examples)
def test_an_example_is_taken_by_the_parser(example: str) -> None:
    words = shlex.split(example)

    assert words[:2] == ["assay", "estimate"]
    estimate.make_context("estimate", words[2:])


def test_models_and_devices_are_listed() -> None:
    text = told("--list")

    assert "glm-5-nvfp4" in text
    assert "rtx-pro-6000" in text
    assert set(document("--list")) == {"models", "devices"}


def test_the_founding_case_runs_what_the_cache_holds_and_says_so() -> None:
    text = " ".join(told(*FOUNDING, "--concurrency", "2048", "--memory-fraction", "0.92").split())

    assert re.search(r"744 B parameters, 39\.\d B active without embedding and head \(8 of 256 experts\)", text)
    assert re.search(r"2,048 requests of 1,280 tokens need 2\.6 M tokens of cache; 3\d\d,\d{3} fit: 2\d\d run", text)


@pytest.mark.parametrize("width", [80, 120])
def test_every_line_fits_the_terminal_without_colour(width: int) -> None:
    text = told(*FOUNDING, "--all", width=width)

    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= width


def test_the_document_holds_ranges_in_order_and_no_time_below_its_floor(small: Path) -> None:
    found = document(str(small), "--on", "2xRTX-PRO-6000")

    assert found["layout"]["tp"] == 2
    for point in found["points"]:
        for op in point["decode"]["ops"]:
            assert op["time_s"]["low"] <= op["time_s"]["mid"] <= op["time_s"]["high"]
            assert op["floor_s"] <= op["time_s"]["low"] * 1.0001
        assert point["decode"]["tokens_per_s"]["high"] <= point["decode"]["ceiling_tokens_per_s"] * 1.0001


def test_more_requests_are_never_slower_in_all_and_never_faster_for_each(small: Path) -> None:
    points = document(str(small), "--on", "RTX-PRO-6000", "--concurrency", "1,4,16,64")["points"]

    rates = [point["decode"]["tokens_per_s"]["mid"] for point in points]
    steps = [point["tpot_s"]["mid"] for point in points]
    assert rates == sorted(rates)
    assert steps == sorted(steps)


def test_what_was_measured_goes_before_what_is_known(small: Path, tmp_path: Path) -> None:
    measured = tmp_path / "measured.json"
    measured.write_text('{"memory_read_bytes_per_s": 1e11}', encoding="utf-8")
    words = [str(small), "--on", "RTX-PRO-6000", "--concurrency", "1"]

    known, slow = document(*words), document(*words, "--measured", str(measured))

    assert slow["points"][0]["tpot_s"]["mid"] > 5 * known["points"][0]["tpot_s"]["mid"]
    assert "measured" in slow["points"][0]["decode"]["ops"][0]["basis"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "no object"),
        ("{", "cannot be read"),
        ('{"memory_bandwidth": 1e12}', "memory_bandwidth is no fact"),
        ('{"memory_read_bytes_per_s": 0}', "above zero"),
        ('{"memory_read_bytes_per_s": "fast"}', "memory_read_bytes_per_s"),
        ('{"measurements": []}', "no facts of a device"),
        ('{"curves": [{"world": 8}]}', "a curve is malformed"),
    ],
)
def test_a_file_of_ceilings_that_means_nothing_is_refused(content: str, said: str, small: Path, tmp_path: Path) -> None:
    measured = tmp_path / "measured.json"
    measured.write_text(content, encoding="utf-8")

    assert said in trouble(str(small), "--on", BOX, "--measured", str(measured)).message


def test_a_search_ranks_what_fits_and_counts_what_does_not(small: Path) -> None:
    found = document(str(small), "--on", "4xRTX-PRO-6000", "--search")

    rates = [each["output_tokens_per_s"]["mid"] for each in found["candidates"]]
    assert rates == sorted(rates, reverse=True)
    assert all(each["devices"] <= 4 for each in found["candidates"])
    assert {each["storage"] for each in found["candidates"]} > {"as stored"}
    assert document(str(small), "--on", "4xRTX-PRO-6000", "--search", "--gpus", "2")["devices"] == 2


def test_a_search_keeps_the_bounds_and_says_when_nothing_does(small: Path) -> None:
    words = [str(small), "--on", "2xRTX-PRO-6000", "--search"]

    kept = document(*words, "--slo", "ttft=200ms,tpot=20ms")["candidates"]

    assert kept
    assert all(each["tpot_s"]["mid"] <= 0.02 and each["ttft_s"]["mid"] <= 0.2 for each in kept)
    nothing = " ".join(told(*words, "--slo", "tpot=1us", "--all", width=120).split())
    assert "nothing keeps these bounds here" in nothing
    assert re.search(r"[tp]p\d, \w+: TTFT .* ms, TPOT .* ms \([\d,]+ times 0.001 ms\)", nothing)
    assert re.search(r"a single request in flight takes [\d,.]+ times a bound", nothing)


def test_a_search_fits_the_terminal_and_says_why_on_demand() -> None:
    short = told("glm-5-nvfp4", "--on", BOX, "--search")
    whole = told("glm-5-nvfp4", "--on", BOX, "--search", "--all")

    for text in (short, whole):
        assert "\N{HORIZONTAL ELLIPSIS}" not in text
        assert max(len(line) for line in text.splitlines()) <= 80
    assert "too large. Why: --all" in short
    assert "GB are missing on each device" in whole


def test_the_page_is_written(small: Path, tmp_path: Path) -> None:
    told(str(small), "--on", "RTX-PRO-6000", "--html", str(tmp_path / "page.html"))

    assert "roofline of one" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_request_beyond_the_positions_of_the_model_is_calculated_and_said(small: Path) -> None:
    words = [str(small), "--on", "H200", "--concurrency", "1", "--output", "2"]
    said = "longer than the 131,072 positions"
    assert said in " ".join(document(*words, "--input", "131072")["assumptions"])
    assert said not in " ".join(document(*words, "--input", "131070")["assumptions"])


def test_a_search_and_an_estimate_agree_on_what_a_load_test_would_show(small: Path) -> None:
    words = [str(small), "--on", "H200", "--input", "512", "--output", "128"]
    best = next(one for one in document(*words, "--search")["candidates"] if one["storage"] == "as stored")
    point = document(*words, "--concurrency", str(best["concurrency"]))["points"][0]
    for name in ("tpot_s", "output_tokens_per_s"):
        assert best[name]["mid"] == pytest.approx(point[name]["mid"])
    assert best["ttft_s"]["mid"] == pytest.approx(point["ttft_s"]["mid"])


def step_ms(*words: str) -> float:
    [point] = document("llama-3.1-8b", "--on", "H100-SXM", "--concurrency", "64", *words)["points"]
    return 1e3 * float(point["decode"]["time_s"]["mid"])


def test_the_version_of_an_engine_decides_how_it_schedules_and_an_option_overrules_it() -> None:
    serial = step_ms("--engine", "vllm==0.11.1")
    overlapped = step_ms("--engine", "vllm==0.26.0")

    assert serial - overlapped == pytest.approx(1.2 + 64 * 0.012)
    assert step_ms("--engine", "vllm") == overlapped
    assert step_ms("--engine", "vllm==0.26.0", "--scheduling", "serial") == serial
    assert step_ms("--engine", "llamacpp", "--scheduling", "overlapped") == step_ms("--engine", "llamacpp")


def test_scheduling_is_told_among_what_is_assumed() -> None:
    words = " ".join(told("llama-3.1-8b", "--on", "H100-SXM", "--engine", "vllm==0.11.1").split())

    assert "Serial scheduling (vllm 0.11.1 does it by default: asynchronous since 0.14)" in words


@pytest.mark.parametrize(
    ("engine", "advice"),
    [("tgi", "known: vllm, sglang"), ("vllm==new", "as vllm==0.11.1"), ("vllm==", "as vllm==0.11.1")],
)
def test_an_engine_whose_scheduling_is_not_known_is_refused(engine: str, advice: str) -> None:
    assert advice in str(trouble("llama-3.1-8b", "--on", "H100-SXM", "--engine", engine).hint)
