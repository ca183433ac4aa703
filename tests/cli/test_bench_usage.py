"""`assay bench` and `assay compare`: what they take, and what they refuse before a request is sent."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import get_args

import click
import pytest
from click.testing import CliRunner

from assay.cli import bench_options as given
from assay.cli import bench_spelling as spelling
from assay.cli.bench import METRICS, bench, compare
from assay.cli.command import TeachingCommand
from assay.cli.failure import Trouble, explain
from assay.errors import UsageError
from assay.records.compare import CompareMetric
from assay.render.bench_words import METRICS as SHOWN
from tests.cli.records import modules_loaded_by

COMMANDS: dict[str, TeachingCommand] = {"bench": bench, "compare": compare}
URL = "http://127.0.0.1:9"
NAMED = [URL, "--model", "m"]


def trouble(name: str, *words: str) -> Trouble:
    """What the command refuses these words with."""
    with pytest.raises((UsageError, click.ClickException)) as caught:
        COMMANDS[name].main(list(words), prog_name=f"assay {name}", standalone_mode=False)
    return explain(caught.value)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_teaches(name: str) -> None:
    text = CliRunner().invoke(COMMANDS[name], ["--help"], prog_name=f"assay {name}").stdout

    sections = ["Usage:", "Options:", "Needs first:", "Examples:", "Exit codes:"]
    assert [text.index(section) for section in sections] == sorted(text.index(section) for section in sections)
    for option in COMMANDS[name].params:
        if isinstance(option, click.Option):
            assert option.help, option.name
            assert option.opts[-1] in text


@pytest.mark.parametrize("example", [(name, each) for name, command in COMMANDS.items() for each in command.examples])
def test_an_example_is_taken_by_the_parser(example: tuple[str, str]) -> None:
    name, line = example
    words = shlex.split(re.split(r" 2?> ", line)[0])

    assert words[:2] == ["assay", name]
    COMMANDS[name].make_context(name, words[2:])


def test_the_help_imports_nothing_heavy() -> None:
    loaded = modules_loaded_by(["-c", "import assay.cli.bench"])

    assert not loaded & {"pydantic", "numpy", "scipy", "rich", "pyarrow", "jinja2", "sqlalchemy"}


def test_every_metric_of_the_record_can_be_asked_for_and_is_shown_with_a_unit() -> None:
    assert set(METRICS) == set(get_args(CompareMetric)) <= set(SHOWN)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Missing argument"),
        (["localhost:8000", "--model", "m"], "localhost:8000 is no http address"),
        ([*NAMED, "--concurrency", "0"], "concurrency"),
        ([*NAMED, "--rate", "0"], "rate"),
        ([*NAMED, "--rate", "5", "--arrival", "closed"], "closed arrival takes no rate"),
        ([*NAMED, "--arrival", "poisson"], "poisson arrival wants a rate"),
        ([*NAMED, "--arrival", "poison", "--rate", "5"], "no arrival law"),
        ([*NAMED, "--input", "many"], "input=many"),
        ([*NAMED, "--output", "9-3"], "9 is above 3"),
        ([*NAMED, "--workload", "sharegpt:x.json", "--input", "9"], "contradict each other"),
        ([*NAMED, "--workload", "nothing-of-the-kind"], "neither a workload nor a file"),
        ([*NAMED, "--sweep", "1,2,x"], "--sweep 1,2,x"),
        ([*NAMED, "--sweep", "1,2,2"], "--sweep 1,2,2"),
        ([*NAMED, "--sweep", "1,2", "--concurrency", "4"], "--sweep and --concurrency contradict"),
        ([*NAMED, "--sweep", "1,2", "--rate", "4"], "--sweep and --rate contradict"),
        ([*NAMED, "--sweep", "1,2", "--arrival", "poisson"], "--sweep and --arrival contradict"),
        ([*NAMED, "--rate", "5", "--ramp", "30"], "--ramp 30 belongs to --arrival ramp:A-B, not to poisson"),
        ([*NAMED, "--arrival", "ramp:1-5", "--ramp", "0"], "ramp"),
        ([*NAMED, "--sweep", "1,2", "--ramp", "4"], "--sweep and --ramp contradict"),
        ([*NAMED, "--ceiling", "0"], "ceiling"),
        ([*NAMED, "--slo", "ttft=500"], "wants a unit"),
        ([*NAMED, "--slo", "itl=5ms"], "not a bound on ttft, tpot or e2e"),
        ([*NAMED, "--slo", "ttft=0ms"], "above zero"),
        ([*NAMED, "--slo", "e2e=1s,e2el=2s"], "bounded twice"),
        ([*NAMED, "--extra-body", "top_k"], "want name=value"),
        ([*NAMED, "--extra-body", "stop=[1]"], "neither number, text nor true or false"),
        ([*NAMED, "--max-error-share", "100%"], "below 100%"),
        ([*NAMED, "--max-error-share", "few"], "is no share"),
        ([*NAMED, "--endpoint", "embeddings"], "embeddings"),
        ([*NAMED, "--api-key-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set"),
    ],
)
def test_a_bench_that_is_told_nonsense_exits_2_with_the_value_and_a_hint(words: list[str], said: str) -> None:
    found = trouble("bench", *words)

    assert found.exit_code == 2
    assert said in found.message
    assert found.hint


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "0 side given"),
        ([URL], "1 side given"),
        ([URL, "localhost:8000"], "localhost:8000 looks like an address"),
        ([URL, "llama-server 'open"], "cannot be read"),
        ([URL, "  "], "a side is empty"),
        ([URL, "ftp://x"], "no http address"),
        ([URL, URL, "--label", "one"], "1 labels for 2 sides"),
        ([URL, URL, "--label", "x", "--label", "x"], "2 labels for 2 sides"),
        ([URL, URL, "--metric", "speed"], "speed"),
        ([URL, URL, "--min-effect", "0%"], "min_effect"),
        ([URL, URL, "--alpha", "0.9"], "alpha"),
        ([URL, URL, "--max-rounds", "1"], "max_rounds = 1 is below min_rounds = 3"),
        ([URL, URL, "--rate", "5", "--arrival", "closed"], "closed arrival takes no rate"),
    ],
)
def test_a_comparison_that_is_told_nonsense_exits_2(words: list[str], said: str) -> None:
    found = trouble("compare", *words)

    assert found.exit_code == 2
    assert said in found.message


def test_a_key_given_in_place_of_its_variable_is_refused_and_not_repeated() -> None:
    found = trouble("bench", *NAMED, "--api-key-env", "sk-abc-123")

    assert "not the key itself" in found.message
    assert "sk-abc-123" not in f"{found.message} {found.hint}"


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bench.json").write_text("{}", encoding="utf-8")

    assert "is not empty" in trouble("bench", *NAMED, "--folder", str(tmp_path)).message
    assert "is not empty" in trouble("compare", URL, URL, "--folder", str(tmp_path)).message


def test_a_new_folder_has_the_first_number_that_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    first = given.new_folder(None, "bench")
    first.mkdir()
    second = given.new_folder(None, "bench")

    assert re.fullmatch(r"bench-\d{8}-1", first.name)
    assert second.name == first.name[:-1] + "2"
    assert not second.exists()


@pytest.mark.parametrize(
    "text",
    [
        "ttft=500ms,tpot=50ms,e2e=10s",
        "ttft<500ms tpot<=50ms e2e<10s",
        "ttft:p95<0.5s,tpot:mean<50ms,e2e_latency:p99<10s",
    ],
)
def test_bounds_are_read_in_either_spelling(text: str) -> None:
    slo, notes = spelling.read_slo(text)

    assert (slo.ttft_s, slo.tpot_s, slo.e2e_s) == pytest.approx((0.5, 0.05, 10.0))
    assert len(notes) == text.count(":")


def test_no_bounds_are_no_bounds() -> None:
    assert spelling.read_slo(None)[0].is_empty


@pytest.mark.parametrize("url", [URL, f"{URL}/", f"{URL}/v1", f"{URL}/v1/"])
def test_an_address_may_end_in_v1(url: str) -> None:
    assert spelling.read_url(url) == URL


def test_fields_of_requests_keep_their_types() -> None:
    fields = spelling.read_extra_body(["top_k=1", "temperature=0.5", "stream_x=true", "name=plain words=here"])

    assert fields == {"top_k": 1, "temperature": 0.5, "stream_x": True, "name": "plain words=here"}


def load(**changes: object) -> given.GivenLoad:
    fields: dict[str, object] = {"concurrency": None, "rate": None, "arrival": None, "workload": None}
    return given.GivenLoad(**(fields | {"input_tokens": None, "output_tokens": None} | changes))


def test_without_a_word_about_it_the_load_is_eight_closed_streams() -> None:
    arrival = load().read_arrival()

    assert (arrival.kind, arrival.concurrency) == ("closed", 8)


def test_a_rate_alone_is_poisson_without_a_limit_and_a_concurrency_beside_it_is_one() -> None:
    assert (load(rate=5.0).read_arrival().kind, load(rate=5.0).read_arrival().concurrency) == ("poisson", None)
    assert load(rate=5.0, concurrency=9).read_arrival().concurrency == 9


def test_a_ramp_rises_within_the_seconds_that_are_given_and_in_a_minute_otherwise() -> None:
    assert load(arrival="ramp:1-50", ramp_s=120.0).read_arrival().ramp_s == 120
    assert load(arrival="ramp:1-50").read_arrival().ramp_s == 60


def test_input_and_output_are_short_for_a_synthetic_workload_and_join_one_that_is_spelled() -> None:
    plain = load(input_tokens="100-400", output_tokens="64").read_workload()
    joined = load(workload="synthetic:prefix=4x512", input_tokens="100").read_workload()

    assert (plain.input.low, plain.input.high, plain.output.mean) == (100, 400, 64)
    assert (joined.prefix_groups, joined.prefix_tokens, joined.input.mean) == (4, 512, 100)


def test_numbers_of_a_sweep_are_taken_in_order_of_load() -> None:
    assert spelling.read_numbers("--sweep", "64, 1,4") == [1, 4, 64]
