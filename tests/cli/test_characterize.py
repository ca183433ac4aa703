"""`assay characterize`: what it takes, what it refuses, and what it shows."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from assay.api import status
from assay.api.characterize import Question
from assay.api.characterize import characterize as ask
from assay.api.measured_run import of_campaign
from assay.cli.characterize import characterize
from assay.cli.command import TeachingCommand
from assay.cli.failure import Trouble, explain
from assay.errors import EngineError, UsageError
from assay.process import free_port
from assay.records.attribution import Characterization
from assay.records.estimate import OperatingPoint
from assay.render.characterize_view import characterize_view
from assay.render.progress import QuietProgress
from assay.roofline import attribution, cpu
from tests.cli.records import modules_loaded_by
from tests.unit.test_attribution import run, trace
from tests.unit.test_ceilings_roofline import machine, model
from tests.unit.test_traces import STEP, torch_file

COMMAND: TeachingCommand = characterize


def trouble(*words: str) -> Trouble:
    with pytest.raises((UsageError, click.ClickException)) as caught:
        COMMAND.main(list(words), prog_name="assay characterize", standalone_mode=False)
    return explain(caught.value)


def shown(found: Characterization, width: int) -> str:
    sink = io.StringIO()
    Console(file=sink, width=width, highlight=False, markup=False, color_system=None).print(characterize_view(found))
    return sink.getvalue()


def example() -> Characterization:
    """A run of a model on a CPU whose every ceiling is given."""
    shape, found = model("Q4_1", experts=16, top_k=2), machine()
    points = [
        cpu.estimate(shape, found, 2, OperatingPoint(phase="decode", sequences=count, context_tokens=256))
        for count in (1, 4)
    ]
    prompt = cpu.estimate(
        shape, found, 2, OperatingPoint(phase="prefill", sequences=1, context_tokens=0, new_tokens=128)
    )
    measured = run(tpot_s=20e-3, ttft_s=1.5, in_flight=8.0, requests_per_s=4.0, output_tokens_per_s=190.0)
    profile = trace()
    splits = [
        attribution.decode(measured, points[1], prompt, profile),
        attribution.first_token(measured, prompt, points[1], None),
    ]
    return Characterization(
        machine="a machine, 2 cores", ceilings=found, threads=2, model="a model",
        model_facts={
            "architecture": "llama", "parameters": 134_515_008, "active_parameters": 50e6, "weight_bytes": 96.6e6,
            "cache_bytes_per_token": 23040.0, "storage": "Q4_1, Q8_0, F32", "experts": "2 of 16",
        },
        points=[*points, prompt], memory_floors_s=[cpu.memory_floor_s(each, found, 2) for each in [*points, prompt]],
        run=measured, run_point=points[1], trace=profile,
        efficiency=attribution.efficiency(points[1], 190.0, peak_bytes_per_s=30e9, peak_flop_per_s=90e9),
        attributions=[split for split in splits if split is not None], notes=["a note"],
    )  # fmt: skip


def test_the_help_teaches() -> None:
    text = CliRunner().invoke(COMMAND, ["--help"], prog_name="assay characterize").stdout

    sections = ["Usage:", "Options:", "Needs first:", "Examples:", "Exit codes:"]
    assert [text.index(section) for section in sections] == sorted(text.index(section) for section in sections)
    for option in COMMAND.params:
        assert isinstance(option, click.Option)
        assert option.help, option.name


@pytest.mark.parametrize("line", COMMAND.examples)
def test_an_example_is_taken_by_the_parser(line: str) -> None:
    words = shlex.split(line)

    assert words[:2] == ["assay", "characterize"]
    COMMAND.make_context("characterize", words[2:])


def test_the_help_imports_nothing_heavy() -> None:
    loaded = modules_loaded_by(["-c", "import assay.cli.characterize"])

    assert not loaded & {"pydantic", "numpy", "scipy", "rich", "pyarrow", "msgspec", "sqlalchemy", "xllamacpp"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--run", "r0001", "--url", "http://127.0.0.1:9"], "contradict each other"),
        (["--run", "r0001"], "holds no campaign"),
        (["--model", "no-such-model"], "no-such-model"),
        (["--model", "llama-3.1-8b", "--on", "8xNO-SUCH-GPU"], "NO-SUCH-GPU"),
        (["--trace", "missing.json"], "missing.json"),
        (["--threads", "0"], "threads"),
        (["--url", "ftp://host"], "ftp://host"),
    ],
)
def test_nonsense_is_refused_with_the_value_and_a_hint(tmp_path: Path, words: list[str], said: str) -> None:
    found = trouble("--folder", str(tmp_path), *words)

    assert found.exit_code == 2
    assert said in found.message
    assert found.hint


def test_a_run_that_the_campaign_does_not_have_is_refused_with_those_it_has(finished: Path) -> None:
    found = trouble("--folder", str(finished), "--run", "r9999")

    assert "r9999" in found.message
    assert "it has r0001 to " in str(found.hint)


def test_the_run_to_explain_is_the_middle_one_of_the_baseline(finished: Path) -> None:
    state = status(finished)

    found = of_campaign(state, None)

    rates = sorted(
        each.outcome.measures.output_tokens_per_s
        for each in state.runs
        if each.outcome and each.outcome.measures and each.outcome.status == "ok" and not each.intent.arm.deltas
        and each.intent.candidate is None
    )  # fmt: skip
    assert found is not None
    assert found.output_tokens_per_s == rates[len(rates) // 2]
    assert found.in_flight == state.spec.workload.concurrency


def test_a_trace_without_a_model_is_split_by_its_own_span(tmp_path: Path) -> None:
    question = Question(folder=tmp_path, on="H100-SXM", trace=torch_file(tmp_path, STEP))
    found = ask(question, QuietProgress())

    (split,) = found.attributions
    assert split.what == "span of the trace"
    assert {part.cause for part in split.parts} == {"kernels", "communication", "launch gaps", "scheduling, CPU"}
    assert "scheduling, CPU" in shown(found, 80)


def test_what_took_no_time_in_a_trace_has_no_bar(tmp_path: Path) -> None:
    alone = [span for span in STEP if "nccl" not in span[0]]
    found = ask(Question(folder=tmp_path, on="H100-SXM", trace=torch_file(tmp_path, alone)), QuietProgress())

    (line,) = (line for line in shown(found, 80).splitlines() if line.startswith("communication alone"))
    assert line.split() == ["communication", "alone", "0", "µs", "0%"]


def test_a_box_by_its_data_sheet_has_a_roofline_without_anything_being_measured(tmp_path: Path) -> None:
    found = ask(Question(folder=tmp_path, model="llama-3.1-8b", on="H100-SXM"), QuietProgress())

    assert found.ceilings is None
    assert [step.point.sequences for step in found.points] == [1, 8, 64, 256, 1]
    assert found.points[0].bound == "memory"


def test_ceilings_from_a_file_go_before_the_data_sheet_and_are_shown(tmp_path: Path) -> None:
    record = Path(__file__).parents[2] / "examples" / "ceilings" / "one-h200.json"
    plain, measured = (
        ask(Question(folder=tmp_path, model="llama-3.1-8b", on="H200", measured=file), QuietProgress())
        for file in (None, record)
    )

    assert plain.gpu_ceilings is None
    assert plain.points[0].ops[0].basis == ["elsewhere"]
    assert measured.points[0].ops[0].basis == ["measured"]
    assert measured.points[0].time_s.mid != plain.points[0].time_s.mid
    assert "memory read        4,421 GB/s" in shown(measured, 80)


def test_ceilings_of_a_gpu_are_no_ceilings_of_processors(tmp_path: Path) -> None:
    record = Path(__file__).parents[2] / "examples" / "ceilings" / "one-h200.json"
    found = trouble("--folder", str(tmp_path), "--model", "gpt2", "--on", "cpu", "--measured", str(record))

    assert found.exit_code == 2
    assert "tells of a GPU" in found.message


def test_a_server_that_does_not_answer_ends_it_before_anything_is_measured(tmp_path: Path) -> None:
    words = ["--folder", str(tmp_path), "--url", f"http://127.0.0.1:{free_port()}"]
    with pytest.raises(EngineError) as raised:
        COMMAND.main(words, prog_name="assay characterize", standalone_mode=False)

    assert explain(raised.value).exit_code == 4
    assert "Connection refused" in raised.value.message


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_is_cut_off_on_a_terminal(width: int) -> None:
    text = shown(example(), width)

    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for words in ("memory read", "Q4_1", "decode 4 at 256", "ceiling of", "queueing", "unexplained", "MBU", "a note"):
        assert words in text


def test_what_was_disturbed_carries_a_mark_that_is_explained() -> None:
    found = example()
    assert found.ceilings is not None
    shaken = [one.model_copy(update={"foreign_cpu_cores": 0.2}) for one in found.ceilings.measurements]
    text = shown(found.model_copy(update={"ceilings": found.ceilings.model_copy(update={"measurements": shaken})}), 80)

    assert re.search(r"\d~", text)
    assert "other processes ran" in text


def test_a_characterization_is_read_back_as_it_was() -> None:
    found = example()

    assert Characterization.model_validate_json(found.model_dump_json()) == found
