"""The entries of TensorRT-LLM's configuration file, held against its version, each with its path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from assay.api.doctor import Question, doctor
from assay.flags.option_check import check_options
from assay.records.doctor import DoctorReport


def told(content: dict[str, Any], version: str) -> dict[str, tuple[str, str]]:
    findings, undecided = check_options("trtllm", version, content, "--config")
    return {one.flags[0]: (one.kind, one.what) for one in findings} | {
        one.flags[0]: ("undecided", one.reason) for one in undecided
    }


def asked(folder: Path, text: str, version: str, more: str = "") -> DoctorReport:
    (folder / "extra.yml").write_text(text, encoding="utf-8")
    words = f"trtllm-serve org/model --extra_llm_api_options {folder / 'extra.yml'} {more}"
    return doctor(Question(words=[words], engine_version=version, ask_installed=False))


@pytest.mark.parametrize(
    ("content", "version", "path", "kind", "words"),
    [
        ({"use_cuda_graph": True}, "1.0.0", "use_cuda_graph", "renamed", "is now cuda_graph_config"),
        ({"cuda_graph_padding_enabled": True}, "1.2.0", "cuda_graph_padding_enabled", "renamed", "enable_padding"),
        ({"cuda_graph_config": {"padding_enabled": True}}, "1.2.0", "cuda_graph_config.padding_enabled", "renamed",
         "cuda_graph_config.enable_padding"),
        ({"moe_backend": "TRTLLM"}, "1.1.0", "moe_backend", "renamed", "moe_config.backend"),
        ({"pytorch_backend_config": {"use_cuda_graph": True}}, "1.0.0", "pytorch_backend_config", "removed", "top"),
        ({"kv_cache_dtype": "fp8"}, "1.1.0", "kv_cache_dtype", "renamed", "kv_cache_config.dtype"),
        ({"enable_trtllm_sampler": True}, "1.2.0", "enable_trtllm_sampler", "renamed", "sampler_type"),
        ({"sampler_type": "auto"}, "1.0.0", "sampler_type", "not-yet", "1.1.0rc6 is the first"),
        ({"batching_type": "X"}, "1.2.0", "batching_type", "removed", "1.0.0rc4 was the last"),
        ({"allreduce_strategy": "FAST"}, "1.2.0", "allreduce_strategy", "bad-value", "takes one of AUTO"),
        ({"disable_overlap_scheduler": "maybe"}, "1.2.0", "disable_overlap_scheduler", "bad-value", "true, false"),
        ({"kv_cache_config": {"free_gpu_mem_fraction": 0.9}}, "1.2.0", "kv_cache_config.free_gpu_mem_fraction",
         "unknown", "nearest: kv_cache_config.free_gpu_memory_fraction"),
        ({"flux_capacitor": 1}, "1.2.0", "flux_capacitor", "undecided", "no recorded version"),
    ],
)  # fmt: skip
def test_an_entry_is_told_with_its_path(
    content: dict[str, Any], version: str, path: str, kind: str, words: str
) -> None:
    found = told(content, version)[path]

    assert found[0] == kind
    assert words in found[1]


@pytest.mark.parametrize(
    ("content", "version"),
    [
        ({"kv_cache_dtype": "fp8"}, "1.0.0"),
        ({"use_cuda_graph": True, "moe_backend": "TRTLLM"}, "0.20.0"),
        ({"cuda_graph_config": {"enable_padding": True, "max_batch_size": 512}, "print_iter_log": True}, "1.2.0"),
        ({"cuda_graph_config": None, "moe_config": {"backend": "DEEPGEMM"}, "stream_interval": 10}, "1.2.0"),
    ],
)
def test_what_a_version_takes_is_no_finding(content: dict[str, Any], version: str) -> None:
    assert {path: said for path, said in told(content, version).items() if said[0] != "undecided"} == {}


def test_the_doctor_reads_the_file_that_a_command_names(tmp_path: Path) -> None:
    text = "moe_backend: TRTLLM\nmax_batch_size: 8\ntensor_parallel_size: 4\nmax_num_tokens: 8192\n"
    report = asked(tmp_path, text, "1.2.0", "--max_batch_size 16 --tp_size 8 --max_num_tokens 8192")

    assert [(one.kind, one.flags) for one in report.findings] == [
        ("renamed", ["moe_backend", "--extra_llm_api_options"]),
        ("repeated", ["--max_batch_size", "--extra_llm_api_options"]),
        ("repeated", ["--tp_size", "--extra_llm_api_options"]),
    ]
    assert "the file counts" in report.findings[1].what


def test_a_file_that_is_elsewhere_is_no_error_and_said(tmp_path: Path) -> None:
    report = doctor(
        Question(words=["trtllm-serve m --config /nowhere/x.yml"], engine_version="1.2.0", ask_installed=False)
    )

    assert report.findings == []
    assert any("/nowhere/x.yml (--config) is not here" in note for note in report.notes)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("- 1\n- 2\n", "holds a list and no options"),
        ("a: [1, 2\nb: }", "is no YAML: line 2: "),
        ("a: !!python/object/apply:os.system [x]", "could not determine a constructor"),
        ("[a]: 1\n", "is no YAML: line 1: "),
        ("day: 2024-13-40\n", "is no YAML: month must be in 1..12"),
    ],
)
def test_a_file_that_the_engine_cannot_read_either_is_an_error_of_its_flag(
    tmp_path: Path, content: str, words: str
) -> None:
    report = asked(tmp_path, content, "1.2.0")

    assert [(one.kind, one.severity, one.flags) for one in report.findings] == [
        ("bad-value", "error", ["--extra_llm_api_options"])
    ]
    assert words in report.findings[0].what
    assert "--extra_llm_api_options" not in report.clean


@pytest.mark.parametrize(
    ("content", "words"),
    [("{a: " * 3000 + "1" + "}" * 3000, "nested too deeply"), ("a: 1\n" * 200_001, "longer than 1,000,000 characters")],
    ids=["deep", "long"],
)
def test_a_file_too_large_to_read_is_not_checked_in_part_and_that_is_said(
    tmp_path: Path, content: str, words: str
) -> None:
    report = asked(tmp_path, content, "1.2.0")

    assert report.findings == []
    assert words in report.notes[-1]


def test_entries_that_repeat_each_other_without_end_are_soon_told(tmp_path: Path) -> None:
    sections = [f"s{n}: &s{n} {{{', '.join(f'k{k}: *s{n - 1}' for k in range(9))}}}" for n in range(1, 9)]
    content = "\n".join(["s0: &s0 {a: 1}", *sections, "kv_cache_config: *s8", "kv: &kv {again: *kv}"])

    report = asked(tmp_path, content, "1.2.0")

    assert [one.flags[0] for one in report.undecided][:2] == ["s0", "s1"]
    assert len(report.undecided) + len(report.findings) < 30


def test_a_file_of_thousands_of_secrets_is_told_without_one_of_them(tmp_path: Path) -> None:
    lines = [f"x{number}_api_key: valuexyz{number:06d}\n" for number in range(5000)]

    report = asked(tmp_path, "".join([*lines, "max_batch_size: valuexyz000007-valuexyz000008\n"]), "1.2.0")

    assert "valuexyz" not in report.model_dump_json()
    assert any("[redacted]-[redacted]" in one.what for one in report.findings)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yml")
    report = doctor(
        Question(
            words=[f"trtllm-serve m --config {tmp_path / 'pipe.yml'}"], engine_version="1.2.0", ask_installed=False
        )
    )

    assert "is no regular file" in report.notes[-1]


@pytest.mark.parametrize(
    ("words", "version", "finding"),
    [
        ("--tensor_parallel_size 8", "1.1.0rc6", ("not-yet", "error", "--tp_size")),
        ("--tp_size 8 --ep_size 8 --extra_llm_api_options x.yml --backend pytorch", "0.20.0", None),
        ("--tp_size 8 --kv_cache_free_gpu_memory_fraction 0.9", "1.2.0", None),
        ("--backend tensorrt", "1.1.0rc6", ("bad-value", "error", None)),
        ("--server_role context", "1.0.0", ("not-yet", "warning", None)),
    ],
)
def test_flags_of_trtllm_serve_are_told_by_version(
    words: str, version: str, finding: tuple[str, str, str | None] | None
) -> None:
    report = doctor(Question(words=[f"trtllm-serve m {words}"], engine_version=version, ask_installed=False))

    told_ = [(one.kind, str(one.severity)) for one in report.findings if one.kind != "default"]
    assert told_ == ([] if finding is None else [finding[:2]])
    if finding and finding[2]:
        assert finding[2] in report.findings[0].remedy
