"""`assay catalogue`: the list, one entry, a folder of one's own; and `assay plan --explain`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from assay.cli.catalogue import catalogue
from assay.cli.plan import plan
from assay.errors import CheckFailed, UsageError
from tests.unit.entry_files import HEAD

TARGET = [
    "--on",
    "h200",
    "--model",
    "qwen3-30b-a3b",
    "--launch",
    "vllm serve Q --max-num-seqs 128",
    "--concurrency",
    "256",
]
MINE = (
    HEAD
    + """[engines.vllm]
versions = ">=0.20"
flags = { "--swap-space" = 4 }
"""
)


def run(words: list[str], width: int = 120) -> Result:
    return CliRunner(env={"COLUMNS": str(width), "NO_COLOR": "1"}).invoke(catalogue, words, prog_name="assay catalogue")


def document(words: list[str]) -> Any:
    return json.loads(run([*words, "--json"]).stdout)


def test_the_list_has_one_aligned_line_an_entry_and_says_for_which_engines() -> None:
    lines = run(["--mechanism", "overlap"]).stdout.splitlines()

    (line,) = [line for line in lines if line.startswith("single-batch-overlap")]
    assert line.split() == [
        "single-batch-overlap",
        "1",
        "(V)",
        "S",
        "+0",
        "to",
        "+5%",
        "Single",
        "batch",
        "overlap",
    ]
    assert "in brackets: has to be made first" in lines[-1]


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert all(len(line) <= width for line in run([], width).stdout.splitlines())


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_cuts_no_figure_and_breaks_no_word(width: int) -> None:
    text = run([], width).stdout

    assert len(re.findall(r"[+-][\d.]+ to [+-][\d.]+%", text)) == len(document([]))
    assert "Asynchronous" in text


def test_filters_narrow_the_list() -> None:
    everything, some = document([]), document(["--engine", "trtllm", "--tier", "1"])

    assert len(everything) >= 100
    assert 0 < len(some) < len(everything) / 3
    assert all("trtllm" in one["engines"] for one in some)
    assert {variant["tier"] for one in some for variant in one["engines"]["trtllm"]} == {1}


def test_an_entry_is_shown_with_every_spelling_risk_and_claim() -> None:
    shown = " ".join(run(["show", "piecewise-cuda-graph"]).stdout.split())

    for word in (">=0.5.4,<0.5.10: --enable-piecewise-cuda-graph", "flashinfer-ai/flashinfer#2999", "sglang#15927"):
        assert word in shown


def test_against_a_target_each_entry_is_planned_blocked_or_skipped_with_a_range_and_a_reason() -> None:
    found = document([*TARGET, "--applies"])

    assert {one["outcome"] for one in found["entries"].values()} == {"planned", "blocked", "skipped"}
    assert all(one["reason"] for one in found["entries"].values() if one["outcome"] != "planned")
    assert found["entries"]["max-concurrency"]["ceiling"]["applies"]
    assert "256 are asked for and 128 run at once" in " ".join(found["surroundings"]["sentences"])


def test_an_entry_against_a_target_tells_the_reasoning() -> None:
    shown = " ".join(run(["show", "max-concurrency", *TARGET]).stdout.split())

    assert "outcome planned" in shown
    assert "a step would take" in shown
    assert "predicted 0% to" in shown


def test_a_campaigns_own_folder_extends_the_list(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('[policy]\ncatalogue = ["entries"]\n')
    (tmp_path / "entries").mkdir()
    (tmp_path / "entries" / "mine.toml").write_text(MINE)

    assert document(["show", "mine", "--folder", str(tmp_path)])["id"] == "mine"
    assert "mine" in {one["id"] for one in document(["--folder", str(tmp_path)])}


def test_a_folder_whose_flags_do_not_exist_fails_the_check_with_entry_engine_and_versions(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE)
    done = run(["check", str(tmp_path)])

    assert isinstance(done.exception, CheckFailed)
    assert "error: mine: vllm 0.20.0 to 0.33.0: has no --swap-space" in done.stdout


def test_a_sound_folder_passes(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE.replace(">=0.20", "<0.18"))
    done = run(["check", str(tmp_path)])

    assert (done.exit_code, done.stdout) == (0, f"{tmp_path}: nothing wrong\n")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('applies_when = "model.is_mo"', "applies_when: 'is_mo' is not known"),
        ('regime_when = "wrokload.concurrency > 8"', "regime_when: 'wrokload' is not known"),
        ('applies_when = "workload.concurrency"', "applies_when: workload.concurrency is 8, which is no condition"),
        ("applies_when = \"workload.concurrency > '8'\"", "compares unlike things"),
        ('applies_when = "build.is_version(5)"', "build.is_version(5)"),
    ],
)
def test_what_no_target_has_is_an_error_with_its_key(tmp_path: Path, line: str, told: str) -> None:
    (tmp_path / "mine.toml").write_text(f"{line}\n" + MINE.replace(">=0.20", "<0.18"))
    done = run(["check", str(tmp_path)])

    assert isinstance(done.exception, CheckFailed)
    assert "error: mine: vllm <0.18: " in done.stdout
    assert told in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('requires = ["mine"]', "error: mine: vllm: requires itself: mine > mine"),
        ('excludes = ["nobody"]', "warning: mine: vllm <0.18: excludes nobody, and no entry has that id"),
        ('requires = ["nobody"]', "warning: mine: vllm <0.18: requires nobody, and no entry has that id"),
    ],
)
def test_names_that_nobody_has_and_circles_are_told(tmp_path: Path, line: str, told: str) -> None:
    (tmp_path / "mine.toml").write_text(f"{line}\n" + MINE.replace(">=0.20", "<0.18"))

    assert told in run(["check", str(tmp_path)]).stdout


def test_an_engine_that_no_adapter_has_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE.replace("engines.vllm", "engines.vlm"))

    assert "warning: mine: vlm: no such engine; known: " in run(["check", str(tmp_path)]).stdout


@pytest.mark.parametrize(
    "given", ['flags = { "--hf-token" = "hf_made0up0secret" }', 'env = { HF_TOKEN = "hf_made0up0secret" }']
)
def test_a_secret_in_an_entry_is_refused_and_not_repeated(tmp_path: Path, given: str) -> None:
    (tmp_path / "mine.toml").write_text(MINE.replace('flags = { "--swap-space" = 4 }', given))
    done = run(["check", str(tmp_path)])

    assert isinstance(done.exception, UsageError)
    assert "holds a secret" in done.exception.message
    assert "made0up" not in f"{done.exception.message}{done.exception.hint}"


def test_a_target_reads_as_lines_with_the_reason_under_each_entry() -> None:
    lines = run(["--applies", *TARGET]).stdout.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("  max-concurrency (tier "))

    assert "by calculation" in lines[place]
    assert lines[place + 1].startswith("      ")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("tier = 1", "tier = 9", "mine.toml: tier: Input should be less than or equal to 3"),
        ('">=0.20"', '"latest"', "mine.toml: engines.vllm.versions: 'latest' is no version specifier"),
        ("flags =", "flag =", "mine.toml: engines.vllm.flag is no key of a catalogue entry"),
        ('risk = "r"', "", "mine.toml: risk: missing"),
        ('flags = { "--swap-space" = 4 }', 'env = { X = "= 2 *" }', "mine.toml: env.X: expected a value"),
    ],
)
def test_a_file_that_is_no_entry_is_refused_with_file_and_key(tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "mine.toml").write_text(MINE.replace(old, new))
    done = run(["check", str(tmp_path)])

    assert isinstance(done.exception, UsageError)
    assert told in done.exception.message


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["show", "mscclp"], "did you mean mscclpp"),
        (["show"], "assay catalogue show ENTRY"),
        (["check"], "assay catalogue check FOLDER"),
        (["--applies"], "--engine"),
        (["list", "mscclpp"], "assay catalogue show mscclpp"),
        (["show", "mscclpp", *TARGET], "it is for sglang"),
        (["--applies", *TARGET, "--engine-version", "newest"], "such as 0.5.9"),
    ],
)
def test_a_question_that_cannot_be_answered_says_how_to_ask(words: list[str], hint: str) -> None:
    done = run(words)

    assert isinstance(done.exception, UsageError)
    assert hint in str(done.exception.hint)


def explain(folder: Path, name: str, *more: str) -> Result:
    words = ["--folder", str(folder), "--explain", name, *more]
    return CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(plan, words)


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rehearsal of the founding story's box with three entries: one planned, one blocked, one skipped."""
    folder = tmp_path_factory.mktemp("planned")
    (folder / "assay.toml").write_text(SPEC)
    (folder / "world.toml").write_text(WORLD)
    (folder / "mine").mkdir()
    for name, more, flags in (
        (
            "planned",
            'ceiling = "mscclpp"\nregime_when = "step.all_reduce_bytes <= 1048576"',
            '"--enable-mscclpp" = true',
        ),
        ("blocked", "", '"--no-such-flag" = true'),
        ("skipped", 'applies_when = "layout.tp == 4"', '"--enable-mscclpp" = true'),
    ):
        entry = MINE.replace('"mine"', f'"{name}"').replace("[engines.vllm]", f"{more}\n[engines.rehearsal]")
        entry = entry.replace('versions = ">=0.20"\n', "").replace('"--swap-space" = 4', flags)
        (folder / "mine" / f"{name}.toml").write_text(entry)
    return folder


SPEC = """
name = "explained"
[target]
engine = "rehearsal"
model = "glm-5-nvfp4"
[target.flags]
"--world" = "world.toml"
"--box" = "8xRTX-PRO-6000"
"--tp-size" = 8
[workload]
concurrency = 64
input_tokens = [1024, 1024]
output_tokens = [1024, 1024]
[policy]
builtin_catalogue = false
catalogue = ["mine"]
"""
WORLD = """
title = "a box"
seed = 1
[[flags]]
name = "--enable-mscclpp"
help = "MSCCL++"
"""


def test_a_planned_entry_is_explained_with_conditions_ceiling_range_regime_and_worth(
    planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(planned)
    shown = " ".join(explain(planned, "planned").stdout.split())

    for words in (
        "outcome planned",
        "MSCCL++ all-reduce: at most",
        "prior 0% to +10%",
        "predicted 0% to +8.",
        "upper end: the estimate's ceiling (Amdahl)",
        "this load lies where it pays (step.all_reduce_bytes = 786,432)",
        "chance of an effect worth having",
    ):
        assert words in shown, words


def test_blocked_and_skipped_entries_are_explained_too(planned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(planned)

    assert "outcome blocked: " in " ".join(explain(planned, "blocked").stdout.split())
    skipped = json.loads(explain(planned, "skipped", "--json").stdout)
    assert (skipped["outcome"], skipped["reason"]) == ("skipped", "layout.tp == 4 is false: layout.tp = 8")
    assert skipped["surroundings"]["sentences"]


def test_an_entry_that_is_not_there_names_the_nearest(planned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(planned)
    done = explain(planned, "planed")

    assert isinstance(done.exception, UsageError)
    assert "did you mean planned" in str(done.exception.hint)


def test_the_documents_carry_the_numbers_and_the_whole_command(planned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(planned)
    explain(planned, "planned")
    text = next((planned / "improvements").glob("*-planned.md")).read_text()

    for words in ("8x RTX PRO 6000", "256 experts of which a token takes 8", "--enable-mscclpp", "157 all-reduces"):
        assert words in text, words
    assert "The whole command:" in text
