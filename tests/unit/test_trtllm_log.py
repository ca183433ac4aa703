"""What a log of TensorRT-LLM proves: limits, graphs, and the executor's configuration where it is printed.

The lines have the form of a published log of trtllm-serve 1.1.0rc3; the numbers are ours.
"""

from __future__ import annotations

import pytest

from assay.engines.trtllm import Trtllm
from assay.engines.trtllm_log import facts, fallbacks
from assay.plan.proof import refuted
from assay.records.base import Flags
from assay.records.machine import EngineBuild

STAMP = "[01/02/2026-03:04:05] [TRT-LLM] [I] "
LOG = "\n".join(
    [
        f"{STAMP}PyTorchConfig(extra_resource_managers={{}}, use_cuda_graph=True, cuda_graph_batch_sizes=[1, 2], "
        "cuda_graph_max_batch_size=32, disable_overlap_scheduler=True, attn_backend='TRTLLM', moe_backend='CUTLASS', "
        "sampler_type=<SamplerType.auto: 'auto'>, kv_cache_dtype='auto', stream_interval=1, allreduce_strategy='AUTO')",
        f"{STAMP}ATTENTION RUNTIME FEATURES:  AttentionRuntimeFeatures(chunked_prefill=False, cache_reuse=True, "
        "has_speculative_draft_tokens=False, chunk_size=8192)",
        f'{STAMP}Validating KV Cache config against kv_cache_dtype="auto"',
        f"{STAMP}Using Sampler: TorchSampler",
        "[TensorRT-LLM][INFO] Max KV cache blocks per sequence: 65, primary blocks=4096, secondary blocks=0",
        f"{STAMP}Run generation only CUDA graph warmup for batch size=32, draft_len=0",
        f"{STAMP}Run generation only CUDA graph warmup for batch size=1, draft_len=0",
        f"{STAMP}Peak memory: 113 GiB, fraction is set 0.949999988079071, kv size is 73728. total 119 GiB",
        f"{STAMP}max_seq_len=8224, max_num_requests=64, max_num_tokens=8192, max_batch_size=64",
    ]
)


def test_the_executor_s_configuration_is_told_under_the_options_of_the_file() -> None:
    told = facts(LOG)

    assert told["config.moe_config.backend"] == "CUTLASS"
    assert told["config.cuda_graph_config.max_batch_size"] == 32
    assert told["config.disable_overlap_scheduler"] is True
    assert told["config.sampler_type"] == "auto"
    assert told["log.largest_graph"] == 32
    assert told["log.max_batch_size"] == 64
    assert told["log.memory_fraction"] == 0.95
    assert told["log.chunked_prefill"] == "False"
    assert "log.host_blocks" not in told  # none are there


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"--config.moe_config.backend": "CUTLASS"}, None),
        ({"--config.moe_config.backend": "TRTLLM"}, "config.moe_config.backend = CUTLASS"),
        ({"--moe_config.backend": "AUTO"}, None),
        ({"--config.disable_overlap_scheduler": True}, None),
        ({"--config.disable_overlap_scheduler": False}, "config.disable_overlap_scheduler = true"),
        ({"--config.enable_attention_dp": True}, None),
    ],
)
def test_an_option_is_held_against_what_the_executor_has(flags: Flags, words: str | None) -> None:
    said = Trtllm().in_force(flags, facts(LOG), [])

    assert (said is None) if words is None else (words in str(said))


@pytest.mark.parametrize(
    ("verify", "holds"),
    [
        ("log.memory_fraction = 0.95", True),
        ("log.cache_reuse = false", False),
        ("log.chunked_prefill = false", True),
        ("log.max_batch_size = 128", False),
        ("log.draft_tokens = true", False),
        ("log.sampler = MTP*|Eagle3*", False),
        ("log.sampler = Torch*", True),
    ],
)
def test_proofs_of_entries_read_these_facts(verify: str, *, holds: bool) -> None:
    assert (refuted(verify, {}, {}, facts(LOG)) is None) is holds


@pytest.mark.parametrize("after", ["\n", " "])
@pytest.mark.parametrize(
    ("verify", "asked", "holds"),
    [
        ("config.enable_attention_dp = true", {}, True),
        ("config.moe_expert_parallel_size = --ep_size", {"--ep_size": 8}, True),
        ("config.pipeline_parallel_size = --pp_size", {"--pp_size": 2}, False),
        ("config.moe_config.backend = TRTLLM", {}, True),
        ("config.cuda_graph_config.max_batch_size = 64", {}, True),
        ("config.max_seq_len = 4096", {}, True),
    ],
)
def test_the_arguments_that_newer_versions_print_prove_sizes_and_options(
    after: str, verify: str, asked: Flags, *, holds: bool
) -> None:
    told = facts(
        f"{STAMP}LLM Args:{after}model=PosixPath('/m odel') tokenizer=None tensor_parallel_size=8 "
        "pipeline_parallel_size=1 moe_expert_parallel_size=8 enable_attention_dp=True max_seq_len=4096 "
        "kv_cache_config=KvCacheConfig(enable_block_reuse=True, dtype='auto') num_postprocess_workers=4 "
        "cuda_graph_config=CudaGraphConfig(batch_sizes=[1, 2, 64], max_batch_size=64, enable_padding=True) "
        "moe_config=MoeConfig(backend='TRTLLM', max_num_tokens=None) sampler_type=<SamplerType.auto: 'auto'>"
    )

    assert "config.kv_cache_config.enable_block_reuse" not in told  # the executor changes it for itself
    assert (refuted(verify, asked, {}, told) is None) is holds


@pytest.mark.parametrize(
    "stamp",
    ["[TRT-LLM] [W] ", "[TRT-LLM] [W] [_torch] ", "[TRT-LLM] [RANK 0] [W] ", "[TRT-LLM] [W] [_torch][RANK 3] ",
     "[TensorRT-LLM][WARNING] "],
)  # fmt: skip
def test_a_warning_is_read_wherever_a_version_says_which_rank_it_comes_from(stamp: str) -> None:
    assert fallbacks(f"[01/02/2026-03:04:05] {stamp}Disabling block reuse for FLASHINFER backend") == [
        "Disabling block reuse for FLASHINFER backend"
    ]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"--config.moe_backend": "TRTLLM"}, "option moe_backend is now moe_config.backend: write moe_config.backend"),
        ({"--config.allreduce_strategy": "FAST"}, "takes one of AUTO"),
        ({"--config.moe_config.backend": "TRTLLM", "--config.of_a_later_version": 1}, None),
    ],
)
def test_an_option_that_its_version_is_known_to_refuse_costs_no_launch(flags: Flags, words: str | None) -> None:
    build = EngineBuild(engine="trtllm", argv=["trtllm-serve"], version="TensorRT-LLM 1.2.0", source="", flags=[])
    said = Trtllm().check_flags(build, flags)

    assert (said is None) if words is None else (words in str(said))
