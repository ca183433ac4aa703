"""vLLM's flags against a build: the recorded flags of a published version, as its help would tell them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from assay.engines.declared_flags import to_info, to_spec
from assay.engines.vllm import create
from assay.engines.vllm_flags import joined
from assay.errors import UsageError
from assay.flags import history
from assay.records.base import Flags
from assay.records.machine import EngineBuild

VLLM = create()
BUILD = EngineBuild(
    engine="vllm",
    argv=["vllm", "serve"],
    version="vLLM 0.32.0+cpu",
    source="PATH",
    flags=[to_info(spec) for spec in history("vllm").at("0.32.0")],
)


def words(flags: Flags) -> list[str]:
    argv = VLLM.argv(BUILD, "/m", flags, 8123)
    return argv[argv.index("--served-model-name") + 2 :]


def test_a_command_names_the_model_and_listens_on_loopback() -> None:
    assert VLLM.argv(BUILD, "/m", {}, 8123) == [
        "vllm", "serve", "/m", "--host", "127.0.0.1", "--port", "8123", "--served-model-name", "model",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ({"--max-num-seqs": 16}, ["--max-num-seqs", "16"]),
        ({"--enforce-eager": True}, ["--enforce-eager"]),
        ({"--enable-prefix-caching": False}, ["--no-enable-prefix-caching"]),
        ({"--cudagraph-capture-sizes": "1 2 4"}, ["--cudagraph-capture-sizes", "1", "2", "4"]),
        ({"-O3": True}, ["--optimization-level", "3"]),
        ({"-tp": 2}, ["--tensor-parallel-size", "2"]),
        ({"--compilation-config.mode": 3}, ["--compilation-config.mode", "3"]),
        ({"-cc.use_inductor_graph_partition": True}, ["--compilation-config.use_inductor_graph_partition", "true"]),
        (
            {"--compilation-config": '{"mode": 3}', "-cc.pass_config.fuse_norm_quant": False},
            ["--compilation-config", '{"mode": 3, "pass_config": {"fuse_norm_quant": false}}'],
        ),
    ],
)
def test_flags_become_words_as_vllm_reads_them(flags: Flags, wanted: list[str]) -> None:
    assert words(flags) == wanted


def test_parts_of_what_is_no_object_cannot_be_joined() -> None:
    with pytest.raises(UsageError, match="no JSON object"):
        joined({"--compilation-config": 3, "--compilation-config.mode": 1})


@pytest.mark.parametrize("name", ["--port", "--api-key", "--served_model_name", "--host", "--config", "--uds"])
def test_what_assay_sets_itself_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="Assay sets this itself"):
        VLLM.argv(BUILD, "/m", {name: "x"}, 1)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"--no-such-flag": True}, "--no-such-flag is not known"),
        ({"--num-scheduler-steps": 8}, "removed"),
        ({"--max-num-seqs": "many"}, "takes a whole number"),
        ({"--kv-cache-dtype": "q9"}, "takes one of auto"),
        ({"--enforce-eager": 3}, "takes no value"),
        ({"--tensor-parallel-size": True}, "needs a value"),
        ({"--compilation-config": '{"mode":'}, "takes JSON"),
        ({"--compilation-config": '{"fuse_act_quant": true}'}, "write pass_config.fuse_act_quant"),
        ({"--compilation-config": '{"mode": 9}'}, "mode takes one of NONE, 0"),
        ({"-cc.pass_config.fuse_norm_quant": "yep"}, "takes true or false, not yep"),
        ({"--speculative-config.method": "eaglee"}, "write eagle if that was meant (vllm 0.32.0 wheel: keys of Spec"),
    ],
)
def test_what_this_version_does_not_take_is_said(flags: Flags, said: str) -> None:
    assert said in (VLLM.check_flags(BUILD, flags) or "")


def test_what_it_takes_is_taken() -> None:
    flags: Flags = {
        "--max-num-seqs": 16, "--kv-cache-dtype": "fp8", "--enable-prefix-caching": False, "-tp": 2,
        "--compilation-config.mode": 3, "--speculative-config": '{"method": "ngram"}', "--max_model_len": "2k",
    }  # fmt: skip
    assert VLLM.check_flags(BUILD, flags) is None


def test_a_negative_switch_is_its_positive_one_set_to_false() -> None:
    assert VLLM.canonical(BUILD, {"--no-enable-prefix-caching": True, "--max_num_seqs": 4}) == {
        "--enable-prefix-caching": False,
        "--max-num-seqs": 4,
    }


def test_a_flag_survives_the_record() -> None:
    for spec in history("vllm").at("0.32.0"):
        there_and_back = to_spec(to_info(spec))
        assert (there_and_back.names, there_and_back.many, there_and_back.is_switch, there_and_back.choices) == (
            spec.names, spec.many, spec.is_switch, spec.choices,
        )  # fmt: skip


@pytest.fixture
def python_that_sees_vllm(tmp_path: Path) -> Path:
    """Of an environment with a vLLM 0.32.0+cpu that somebody patched: its CompilationConfig has a key of its own."""
    package = tmp_path / "lib" / "vllm"
    for name, text in {
        "__init__.py": "",
        "engine/arg_utils.py": "TypeAdapter()\nclass EngineArgs:\n    compilation_config: CompilationConfig = None\n",
        "config/compilation.py": "from pydantic.dataclasses import dataclass\n"
        "@config\n@dataclass\nclass CompilationConfig:\n    warp_factor: int = 0\n",
        "../vllm-0.32.0+cpu.dist-info/METADATA": "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path / "lib"}" exec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    return python


def test_inside_of_json_the_source_that_is_installed_decides_where_it_is_of_the_builds_version(
    python_that_sees_vllm: Path,
) -> None:
    flags: Flags = {"--compilation-config": '{"warp_factor": "nine"}'}
    here = BUILD.model_copy(update={"argv": [str(python_that_sees_vllm), "-m", "vllm.entrypoints.cli.main"]})
    elsewhere = here.model_copy(update={"version": "vLLM 0.31.0"})

    assert "takes a whole number, not nine" in (VLLM.check_flags(here, flags) or "")
    assert "takes no key warp_factor" in (VLLM.check_flags(elsewhere, flags) or "")


def test_a_bare_word_of_a_recorded_build_starts_nothing_that_lies_in_the_current_folder(
    python_that_sees_vllm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(python_that_sees_vllm.parent)
    recorded = BUILD.model_copy(update={"argv": ["vllm"]})

    reason = VLLM.check_flags(recorded, {"--compilation-config": '{"warp_factor": "nine"}'})

    assert "takes no key warp_factor" in (reason or "")
