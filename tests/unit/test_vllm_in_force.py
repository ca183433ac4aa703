"""Whether vLLM does what a flag asked for, by its own word alone."""

from __future__ import annotations

from typing import Any

import pytest

from assay.engines.vllm_in_force import contradiction
from assay.engines.vllm_server import kept
from assay.records.base import Flags

REPORTED: dict[str, Any] = {
    "scheduler_config.max_num_seqs": 16,
    "scheduler_config.async_scheduling": False,
    "scheduler_config.max_num_batched_tokens": 2048,
    "cache_config.cache_dtype": "fp8_e4m3",
    "cache_config.enable_prefix_caching": True,
    "model_config.dtype": "torch.bfloat16",
    "model_config.max_model_len": 131072,
    "compilation_config.mode": 0,
    "compilation_config.cudagraph_mode": [2, 1],
    "compilation_config.pass_config.fuse_norm_quant": True,
    "parallel_config.tensor_parallel_size": 2,
    "attention_config.backend": "vllm.v1.attention.backends.flash_attn.FlashAttentionBackend",
    "args.async_scheduling": True,
}


@pytest.mark.parametrize(
    "flags",
    [
        {"--max-num-seqs": 16},
        {"--max-num-seqs": "16"},
        {"--kv-cache-dtype": "fp8"},
        {"--kv-cache-dtype": "auto"},
        {"--dtype": "bfloat16"},
        {"--max-model-len": "128K"},
        {"--max-model-len": 131072},
        {"--compilation-config.cudagraph_mode": "FULL_AND_PIECEWISE"},
        {"--compilation-config": '{"mode": 0, "pass_config": {"fuse_norm_quant": true}}'},
        {"--enable-prefix-caching": True},
        {"--no-async-scheduling": True},
        {"--tensor-parallel-size": 2},
        {"--attention-backend": "FLASH_ATTN"},
        {"--a-flag-that-is-not-reported": 7},
        {"--served-model-name": "x"},
    ],
)
def test_what_it_confirms_or_does_not_report_is_in_force(flags: Flags) -> None:
    assert contradiction(flags, REPORTED, []) is None


def test_fp8_in_the_layout_of_sparse_attention_is_fp8() -> None:
    reported = {"cache_config.cache_dtype": "fp8_ds_mla"}
    assert contradiction({"--kv-cache-dtype": "fp8_e4m3"}, reported, []) is None
    assert contradiction({"--kv-cache-dtype": "bfloat16"}, reported, []) is not None


def test_what_is_reported_of_an_object_holds_no_address() -> None:
    told = {"quant_config": "<vllm.model_executor.layers.quantization.fp8.Fp8Config object at 0x7f5b241d6ae0>"}
    assert kept(told) == {"quant_config": "<vllm.model_executor.layers.quantization.fp8.Fp8Config>"}


def test_where_several_sections_have_the_name_one_that_agrees_is_enough() -> None:
    reported = {"model_config.dtype": "torch.bfloat16", "speculative_config.dtype": "torch.float16"}
    assert contradiction({"--dtype": "float16"}, reported, []) is None
    assert contradiction({"--dtype": "float32"}, reported, []) is not None


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"--async-scheduling": True}, "--async-scheduling true is not in force: the server reports "
         "scheduler_config.async_scheduling = false"),
        ({"--max-num-batched-tokens": 8192}, "max_num_batched_tokens = 2048"),
        ({"--max-model-len": "128k"}, "max_model_len = 131072"),
        ({"--compilation-config": '{"mode": 3}'}, "compilation_config.mode = 0"),
        ({"--enable-prefix-caching": False}, "enable_prefix_caching = true"),
    ],
)  # fmt: skip
def test_what_it_contradicts_is_not(flags: Flags, said: str) -> None:
    assert said in (contradiction(flags, REPORTED, []) or "")


def test_the_configuration_of_the_log_counts_where_the_server_cannot_be_asked() -> None:
    assert "engine.enable_prefix_caching = true" in (
        contradiction({"--enable-prefix-caching": False}, {"engine.enable_prefix_caching": True}, []) or ""
    )


def test_a_warning_about_the_subject_of_the_flag_counts() -> None:
    line = "Speculative decoding is not supported with this model; using plain decoding instead."
    flags: Flags = {"--speculative-config": '{"method": "ngram"}'}
    assert line in (contradiction(flags, {}, [line]) or "")


def test_a_backend_that_is_put_aside_in_a_line_of_information_is_not_in_force() -> None:
    line = "Cannot use AttentionBackendEnum.FLASHINFER backend on CPU."
    assert line in (contradiction({"--attention-backend": "FLASHINFER"}, {}, [line]) or "")


def test_what_is_set_is_not_what_it_gives_up() -> None:
    line = (
        "Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup. This is equivalent to -cc.mode"
    )
    assert contradiction({"--enforce-eager": True}, {}, [line]) is None
    assert line in (contradiction({"--compilation-config.mode": 3}, {}, [line]) or "")
    assert contradiction({"--compilation-config.pass_config.fuse_norm_quant": True}, {}, [line]) is None


def test_a_reason_in_front_is_not_what_is_given_up() -> None:
    line = "Since chunked prefill is off, disabling prefix caching."
    assert contradiction({"--enable-chunked-prefill": True}, {}, [line]) is None
    assert line in (contradiction({"--enable-prefix-caching": True}, {}, [line]) or "")


def test_what_another_feature_loses_by_a_flag_does_not_accuse_the_flag() -> None:
    line = "Async scheduling not supported with ngram-based speculative decoding and will be disabled."
    assert contradiction({"--speculative-config": '{"method": "ngram"}'}, {}, [line]) is None
    assert line in (contradiction({"--async-scheduling": True}, {}, [line]) or "")


@pytest.mark.parametrize(
    "line",
    [
        "Model Runner V2 requires Triton; using the V1 model runner instead.",
        "Chunked prefill requires --max-num-seqs to be set; ignoring nothing else.",
        "FlashInfer is not available. Falling back to the PyTorch-native implementation of top-p & top-k sampling",
    ],
)
def test_a_warning_about_something_else_or_about_a_condition_accuses_nobody(line: str) -> None:
    assert contradiction({"--max-num-seqs": 16, "--attention-backend": "FLASH_ATTN"}, REPORTED, [line]) is None


@pytest.mark.parametrize(
    ("flag", "line"),
    [
        ("--async-scheduling", "Disabling NCCL for DP synchronization when using async scheduling."),
        ("--enable-dbo", "Disabling cascade attention when DBO is enabled."),
        (
            "--speculative-config",
            "Disabling cascade attention (not yet compatible with async speculative decoding).",
        ),
        ("--api-server-count", "AsyncLLM created with api_server_count more than 1; disabling stats logging"),
        ("--quantization", "FlashInfer mnnvl allreduce quantization fusion workspace unavailable; falling back"),
    ],
)
def test_what_a_flag_only_brings_about_does_not_contradict_it(flag: str, line: str) -> None:
    """Lines of vLLM 0.26.0."""
    assert contradiction({flag: "x" if flag != "--async-scheduling" else True}, {}, [line]) is None


def test_what_gives_a_flag_up_contradicts_it() -> None:
    for flag, line in (
        ("--api-server-count", "Ignoring --api-server-count=4 when using rust front-end process"),
        ("--enable-dbo", "Dual-Batch Overlap is not supported on CPU, disabled."),
    ):
        assert line in str(contradiction({flag: 4}, {}, [line]))
