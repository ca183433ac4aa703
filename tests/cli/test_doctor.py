"""`assay doctor`: what it says, how it is read at 80 and 120 columns, and its exit codes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from assay.cli.doctor import doctor
from assay.errors import AssayError, CheckFailed, UsageError
from tests.cli.records import modules_loaded_by

BAD = ["--engine-version", "0.20.0", "--", "vllm", "serve", "M", "--swap-space", "4", "--all2all-backend", "naive"]
GOOD = ["--engine-version", "0.20.0", "--", "vllm", "serve", "M", "--seed", "1", "--max-num-seqs", "64"]


def run(words: list[str], width: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(width), "NO_COLOR": "1"}).invoke(doctor, words, prog_name="assay doctor")


def document(words: list[str]) -> dict[str, Any]:
    return dict(json.loads(run(["--json", *words]).stdout))


def test_a_clean_command_is_one_line_and_exit_code_0() -> None:
    done = run(GOOD)

    assert done.exit_code == 0
    assert "2 flags are as they should be: --seed, --max-num-seqs" in done.stdout
    assert "findings" not in done.stdout


def test_a_flag_that_the_engine_refuses_is_exit_code_1_and_says_what_to_write() -> None:
    done = run(BAD)

    assert isinstance(done.exception, CheckFailed)
    assert done.exception.exit_code == 1
    assert "error: --swap-space was removed" in done.stdout
    assert "do: leave it out" in done.stdout
    assert done.stdout.index("error: ") < done.stdout.index("warning: ")


def test_a_flag_of_llamacpp_that_is_gone_is_told_with_its_successor() -> None:
    done = run(["--engine-version", "11549", "--", "llama-server", "-m", "x.gguf", "--draft-max", "8"])

    assert "do: write --spec-draft-n-max instead" in done.stdout


def test_every_finding_stands_with_its_source() -> None:
    done = run(
        ["--engine-version", "0.20.0", "--", "vllm", "serve", "M", "--max-num-seqs", "x", "--max-model-len", "y"]
    )

    assert done.stdout.count("error: ") == done.stdout.count("source: vllm 0.20.0 wheel") == 2


def test_json_is_the_only_document_and_keeps_the_exit_code() -> None:
    done = run(["--json", *BAD])

    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert report["engine"] == "vllm"
    assert report["findings"][0]["kind"] == "removed"
    assert all(finding["evidence"] for finding in report["findings"])


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = run(
        [
            "--engine-version", "0.5.9", "--gpu", "RTX-PRO-6000", "--gpus", "8", "--model", "glm-5-nvfp4", "--",
            *shlex.split(
                "python -m sglang.launch_server --model-path M --tp 8 --enable-mscclpp --max-running-requests 2048 "
                "--enable-two-batch-overlap --num-continuous-decode-steps 16 --moe-runner-backend cutlas"
            ),
        ],
        width,
    ).stdout  # fmt: skip

    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert "85 tokens at hidden size 6,144" in " ".join(text.split())


def test_one_text_is_as_good_as_words() -> None:
    assert document(["--engine-version", "0.20.0", "--", "vllm serve M --seed 1"])["clean"] == ["--seed"]


def test_dashes_before_the_command_may_be_left_out() -> None:
    report = document(["--engine-version", "0.20.0", "vllm", "serve", "M", "--seed", "1"])

    assert report["launch"]["flags"][0]["name"] == "--seed"


def test_defaults_are_told_in_one_line() -> None:
    done = run(
        [
            "--engine-version",
            "0.20.0",
            "--",
            "vllm serve M --seed 0 --block-size 16 --swap 1 --pipeline-parallel-size 1",
        ]
    )

    assert "2 flags say what is the default anyway: --seed 0, --pipeline-parallel-size 1" in " ".join(
        done.stdout.split()
    )


def test_no_engine_is_an_error_of_the_user() -> None:
    done = run(["--", "ls", "-l"])

    assert isinstance(done.exception, AssayError)
    assert done.exception.exit_code == 2


def test_the_help_imports_nothing_heavy() -> None:
    loaded = modules_loaded_by(
        ["-c", "from assay.cli.doctor import doctor; doctor.main(['--help'], standalone_mode=False)"]
    )

    assert not loaded & {"pydantic", "numpy", "scipy", "rich", "psutil"}


def test_of_an_options_file_no_secret_and_no_control_code_is_shown(tmp_path: Path) -> None:
    shaped_so = "hf_abcdefghij1234567890KLMN"
    file = tmp_path / "options.yaml"
    file.write_text(f'max_batch_size: {shaped_so}\n"ev\\e[31mil": 3\n', encoding="utf-8")
    words = ["--engine", "trtllm", "--", "trtllm-serve", "serve", "m", "--config", str(file)]

    for text in (run(words).stdout, json.dumps(document(words), ensure_ascii=False)):
        assert "takes a whole number, not [redacted]" in " ".join(text.split())
        assert shaped_so not in text
        assert "\x1b" not in text
        assert "\\u001b" not in text


@pytest.mark.parametrize(
    "words",
    [
        ["trtllm-serve", "serve", "m", "--config", "~nosuchuser/x.yaml"],
        ["vllm", "serve", "~nosuchuser/m"],
        ["llama-server", "-m", "~nosuchuser/x"],
    ],
)
def test_a_home_folder_that_nobody_here_has_is_a_file_that_is_not_here(words: list[str]) -> None:
    assert run(["--", *words]).exit_code == 0


def test_a_model_in_a_home_folder_that_nobody_here_has_is_a_mistake_of_usage() -> None:
    done = run(["--model", "~nosuchuser/m", "--", "vllm", "serve", "m"])

    assert isinstance(done.exception, UsageError)
    assert "~nosuchuser" in done.exception.message


def test_a_password_that_is_a_word_of_the_report_does_not_break_it() -> None:
    told = document(["--", "python", "-m", "sglang.launch_server", "--model-path", "M", "--api-key", "sglang"])

    assert told["engine"] == "sglang"
    assert told["launch"]["flags"][1] == {"name": "--api-key", "values": ["[redacted]"], "joined": False}
