"""A launch command of a Python engine becomes a campaign's target."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.api.command_target import target_of
from assay.api.init import init_from_command
from assay.errors import UsageError
from assay.store.spec_file import read_spec


@pytest.fixture(autouse=True)
def _no_engine_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is recorded of the newest version then counts."""
    monkeypatch.setenv("PATH", str(tmp_path))


def test_flags_variables_and_model_are_taken_and_what_assay_sets_is_left_out() -> None:
    target = target_of(
        "VLLM_USE_V1=1 HF_TOKEN=hf_abc vllm serve org/model --port 9000 --api-key sk-1 -tp 2 -O3 "
        "--no-enable-prefix-caching --cudagraph-capture-sizes 1 2 4 -cc.cudagraph_mode NONE --max_model_len=2k"
    )
    assert target is not None
    assert (target.engine, target.model, target.executable) == ("vllm", "org/model", None)
    assert target.env == {"VLLM_USE_V1": "1"}
    assert target.flags == {
        "--tensor-parallel-size": 2,
        "--optimization-level": 3,
        "--enable-prefix-caching": False,
        "--cudagraph-capture-sizes": "1 2 4",
        "--compilation-config.cudagraph_mode": "NONE",
        "--max-model-len": "2k",
    }


def test_a_program_with_a_path_is_kept() -> None:
    target = target_of("/opt/vllm/bin/vllm serve --model org/model")
    assert target is not None
    assert target.executable == "/opt/vllm/bin/vllm"


def test_a_word_that_changes_who_serves_is_not_dropped_without_a_word() -> None:
    with pytest.raises(UsageError, match="sudo stands before the engine, and would get lost"):
        target_of("sudo vllm serve org/model")


@pytest.mark.parametrize("command", ["llama-server -m m.gguf", "my-own-server --model m.gguf"])
def test_other_programs_are_left_to_others(command: str) -> None:
    assert target_of(command) is None


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("vllm serve --max-num-seqs 4", "names no model"),
        ("docker run vllm/vllm-openai:v0.11.0 --model m", "in the image"),
        ("numactl -N 0 vllm serve m", "would get lost"),
        ("vllm serve m extra", "extra belongs to no flag"),
        ("sglang serve --model-path m x", "x belongs to no flag"),
    ],
)
def test_what_would_get_lost_is_refused(command: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        target_of(command)


def test_a_llama_server_that_is_not_here_gets_the_recorded_long_spellings(tmp_path: Path) -> None:
    written = init_from_command(tmp_path / "new", "CUDA_VISIBLE_DEVICES=0 llama-server -m x.gguf -ngl 99 -np 8")

    target = read_spec(written).target
    assert target.flags == {"--gpu-layers": 99, "--parallel": 8}
    assert target.env == {"CUDA_VISIBLE_DEVICES": "0"}


def test_a_version_that_was_not_read_is_said_in_the_question(tmp_path: Path) -> None:
    written = init_from_command(tmp_path / "new", "vllm serve org/model -tp 2", engine_version="99.0")

    assert "vLLM 99.0 itself was not read: the flags of " in written.read_text()
    assert read_spec(written).target.engine_version == "99.0"
    with pytest.raises(UsageError, match="no version"):
        init_from_command(tmp_path / "other", "vllm serve org/model", engine_version="1.2.3.4.5.6")
