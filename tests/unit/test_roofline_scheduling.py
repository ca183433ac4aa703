"""Which scheduling and which graphs an engine uses, by its version and flags."""

from __future__ import annotations

from typing import Any

import pytest

from assay.probes.published import load_published
from assay.roofline import published
from assay.roofline.scheduling import host_of, of_words, version_of

EAGLE, NGRAM = '{"method": "eagle3", "num_speculative_tokens": 3}', {"method": "ngram", "num_speculative_tokens": 3}


@pytest.mark.parametrize(
    ("version", "flags", "scheduling"),
    [
        ("0.9.2", {}, "serial"),
        ("0.11.1", {}, "serial"),
        ("0.11.1", {"--async-scheduling": True}, "overlapped"),
        ("0.13.0", {}, "serial"),
        ("0.14.0", {}, "overlapped"),
        ("vLLM 0.26.0", {}, "overlapped"),
        ("0.26.0", {"--async-scheduling": False}, "serial"),
        ("0.26.0", {"--no-async-scheduling": True}, "serial"),
        ("0.26.0", {"--speculative-config": EAGLE}, "overlapped"),
        ("0.26.0", {"--speculative-config": NGRAM}, "serial"),
        ("0.26.0", {"--speculative-config": '{"model": "draft", "num_speculative_tokens": 3}'}, "overlapped"),
        ("0.26.0", {"--speculative-config": '{"method": "mtp", "disable_padded_drafter_batch": true}'}, "serial"),
        ("0.26.0", {"--distributed-executor-backend": "ray"}, "serial"),
        ("0.14.1", {"--pipeline-parallel-size": 2}, "serial"),
        ("0.15.0", {"--pipeline-parallel-size": 2}, "overlapped"),
        (None, {}, "overlapped"),
    ],
)
def test_vllm_overlaps_by_default_since_0_14_unless_something_forbids_it(
    version: str | None, flags: dict[str, Any], scheduling: str
) -> None:
    found = host_of("vllm", version, flags)

    assert found.scheduling == scheduling
    assert found.why


@pytest.mark.parametrize(
    ("version", "flags", "scheduling"),
    [
        ("0.3.4", {}, "serial"),
        ("0.3.4", {"--enable-overlap-schedule": True}, "overlapped"),
        ("0.4.6.post5", {}, "overlapped"),
        ("0.5.17", {"--disable-overlap-schedule": True}, "serial"),
        ("0.5.17", {"--pp-size": 2}, "serial"),
        ("0.5.17", {"--speculative-algorithm": "EAGLE"}, "serial"),
        ("0.5.17", {"--speculative-algorithm": "EAGLE", "SGLANG_ENABLE_SPEC_V2": "1"}, "overlapped"),
        ("0.5.17", {"--speculative-algorithm": "NGRAM", "SGLANG_ENABLE_SPEC_V2": "1"}, "serial"),
    ],
)
def test_sglang_overlaps_by_default_since_0_3_6(version: str, flags: dict[str, Any], scheduling: str) -> None:
    assert host_of("sglang", version, flags).scheduling == scheduling


@pytest.mark.parametrize(
    ("engine", "version", "flags", "scheduling"),
    [
        ("trtllm", "0.19.0", {}, "serial"),
        ("trtllm", "1.1.0rc4", {}, "overlapped"),
        ("trtllm", "1.1.0", {"--config.disable_overlap_scheduler": True}, "serial"),
        ("trtllm-engine", "0.6.1", {}, "serial"),
        ("llamacpp", "6918", {}, "serial"),
        ("", None, {}, "overlapped"),
    ],
)
def test_other_engines(engine: str, version: str | None, flags: dict[str, Any], scheduling: str) -> None:
    assert host_of(engine, version, flags).scheduling == scheduling


@pytest.mark.parametrize(
    ("flags", "graphs"),
    [
        ({}, "all"),
        ({"--enforce-eager": True}, "none"),
        ({"--compilation-config": '{"mode": 0, "cudagraph_mode": "FULL"}'}, "all"),
        ({"--compilation-config": '{"cudagraph_mode": "FULL_DECODE_ONLY"}'}, "decode"),
        ({"--compilation-config": {"cudagraph_mode": "NONE"}}, "none"),
        ({"--compilation-config": "3"}, "all"),
        ({"--compilation-config": "no JSON"}, "all"),
        ({"--compilation-config.cudagraph_mode": "FULL_DECODE_ONLY"}, "decode"),
        ({"-cc.cudagraph_mode": "none"}, "none"),
        ({"-cc.cudagraph_mode": "FULL", "-cc.mode": 0}, "all"),
        ({"--compilation-config": '{"cudagraph_mode": "FULL"}', "-cc.cudagraph_mode": "NONE"}, "none"),
        ({"--optimization-level": 0}, "none"),
        ({"-O0": True}, "none"),
        ({"-O": "0", "-cc.cudagraph_mode": "FULL"}, "all"),
        ({"-O3": True}, "all"),
        # Graphs in pieces need the compilation in pieces; vLLM drops them without a word on the command line.
        ({"-cc.mode": 0}, "none"),
        ({"--compilation-config": '{"mode": 1}'}, "none"),
        ({"--compilation-config": '{"mode": "VLLM_COMPILE", "cudagraph_mode": "PIECEWISE"}'}, "all"),
    ],
)
def test_graphs_by_the_flags_of_vllm(flags: dict[str, Any], graphs: str) -> None:
    assert host_of("vllm", "0.26.0", flags).graphs == graphs


@pytest.mark.parametrize(
    ("flags", "graphs"),
    [
        ({}, "all"),
        ({"--disable-cuda-graph": True}, "none"),
        ({"--disable-decode-cuda-graph": True, "--disable-prefill-cuda-graph": True}, "none"),
        ({"--disable-prefill-cuda-graph": True}, "decode"),
        ({"--disable-piecewise-cuda-graph": True}, "decode"),
    ],
)
def test_graphs_by_the_flags_of_sglang(flags: dict[str, Any], graphs: str) -> None:
    assert host_of("sglang", "0.5.17", flags).graphs == graphs


@pytest.mark.parametrize(
    ("flags", "compiles"),
    [
        ({}, True),
        ({"--enforce-eager": True}, False),
        ({"--compilation-config": '{"mode": 0, "cudagraph_mode": "FULL"}'}, False),
        ({"--compilation-config": {"level": 0}}, False),
        ({"--compilation-config": {"mode": "NONE"}}, False),
        ({"--compilation-config": {"mode": 3}}, True),
        ({"--compilation-config": {"cudagraph_mode": "FULL"}}, True),
        ({"--compilation-config.mode": 0}, False),
        ({"-cc.mode": "NONE"}, False),
        ({"-cc.mode": 3}, True),
        ({"-O0": True}, False),
        ({"-O3": True}, True),
        ({"-O0": True, "-cc.mode": 3}, True),
        ({"--compilation-config": "0"}, False),
    ],
)
def test_whether_vllm_compiles_by_its_flags(flags: dict[str, Any], compiles: bool) -> None:
    assert host_of("vllm", "0.26.0", flags).compiles is compiles


@pytest.mark.parametrize(
    ("said", "engine", "scheduling"),
    [
        ("vllm 0.26.0", "vllm", "overlapped"),
        ("vllm 0.11.1", "vllm", "serial"),
        ("tensorrt_llm 0.19.0", "trtllm", "serial"),
        ("llamacpp b6918-abc", "llamacpp", "serial"),
        ("0.11.1", "0.11.1", "overlapped"),  # no engine's name: as engines of today
    ],
)
def test_a_servers_own_words_name_its_engine(said: str, engine: str, scheduling: str) -> None:
    found = of_words(said)

    assert (found.engine, found.scheduling) == (engine, scheduling)


def test_versions_are_found_among_words() -> None:
    assert str(version_of("vLLM 0.11.1")) == "0.11.1"
    assert str(version_of("0.4.6.post5")) == "0.4.6.post5"
    assert version_of("image voipmonitor/sglang") is None
    assert version_of(None) is None


def test_the_version_of_each_published_source_decides_how_it_scheduled() -> None:
    found = {table.engine.split(",")[0]: published.host_of(table) for table in load_published(None).values()}

    assert found["vLLM 0.26.0"].scheduling == "overlapped"
    assert found["vLLM 0.11.1"].scheduling == "serial"
    assert found["vLLM 0.10.0"].scheduling == "serial"
    assert found["TensorRT-LLM 1.x (release not stated)"].scheduling == "overlapped"
    assert found["TensorRT-LLM 0.6.1"].engine == "trtllm-engine"
    assert found["SGLang (image voipmonitor/sglang:cu130)"].scheduling == "overlapped"
    assert {host.engine for host in found.values()} == {
        "vllm", "sglang", "trtllm", "trtllm-engine", "llamacpp", "lmdeploy", "gpt-fast",
    }  # fmt: skip


def test_before_0_12_the_level_of_vllm_was_the_mode_itself() -> None:
    assert host_of("vllm", "0.11.1", {"-O1": True}).graphs == "none"
    assert host_of("vllm", "0.12.0", {"-O1": True}).graphs == "all"


@pytest.mark.parametrize(
    ("engine", "flags", "decode", "prompts"),
    [
        ("vllm", {}, None, None),
        ("vllm", {"--compilation-config": '{"cudagraph_capture_sizes": [1, 2, 832]}'}, 832, 832),
        ("vllm", {"-cc.cudagraph_capture_sizes": "[8,64]"}, 64, 64),
        ("vllm", {"--cudagraph-capture-sizes": "1 2 128"}, 128, 128),
        ("vllm", {"--max-cudagraph-capture-size": 2048}, 2048, 2048),
        ("sglang", {}, None, None),
        ("sglang", {"--cuda-graph-bs-decode": "1 2 48", "--cuda-graph-bs-prefill": "256 2048"}, 48, 2048),
        ("sglang", {"--cuda-graph-max-bs": 160, "--piecewise-cuda-graph-max-tokens": 4096}, 160, 4096),
    ],
)
def test_the_largest_captured_step_is_read_where_a_flag_tells_it(
    engine: str, flags: dict[str, Any], decode: int | None, prompts: int | None
) -> None:
    found = host_of(engine, None, flags)

    assert (found.captured_decode_tokens, found.captured_prompt_tokens) == (decode, prompts)


@pytest.mark.parametrize(
    "value", ["[" * 100_000, '{"mode": ' + "9" * 5000 + "}", "9" * 5000, '{"cudagraph_capture_sizes": 7']
)
def test_a_setting_that_no_engine_could_read_tells_nothing_of_graphs(value: str) -> None:
    found = host_of("vllm", None, {"--compilation-config": value, "--cudagraph-capture-sizes": "x"})

    assert found.captured_decode_tokens is None
