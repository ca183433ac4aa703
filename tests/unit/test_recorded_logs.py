"""Logs of real servers on an H200 (excerpts of `examples/gpu`): what is read from them, and what is made of it."""

from __future__ import annotations

import pytest

from assay.engines import sglang_log, vllm_log
from assay.engines.sglang_in_force import contradiction
from assay.engines.sglang_state import reported
from assay.engines.vllm_in_force import contradiction as vllm_contradiction
from assay.engines.vllm_server import kept

SGLANG = """\
/opt/eng/sgl/sglang/launch_server.py:56: UserWarning: 'python -m sglang.launch_server' is still supported, but 'sglang serve' is the recommended entrypoint.
[2026-11-30 20:59:21] Using CUDA IPC for multimodal features: reserving up to 1024 MiB on base GPU 0 across 1 tokenizer worker(s). This reduces KV cache headroom; a full pool falls back to CPU transport.
[2026-11-30 20:59:33] Ignore import error when loading sglang.srt.models.inkling: No module named 'helion'
[2026-11-30 20:59:34] FlashInfer TRTLLM MoE deferred finalize is disabled (moe_runner_backend=triton, quant_method=UnquantizedFusedMoEMethod).
[2026-11-30 20:59:40] Load weight end. elapsed=6.45 s, type=Qwen3MoeForCausalLM, avail mem=109.33 GB, mem usage=29.77 GB.
[2026-11-30 20:59:41] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1172108, K size: 26.83 GB, V size: 26.83 GB
[2026-11-30 20:59:41] Capture target prefill CUDA graph begin. backend=breakable, num_tokens=[256, 320, 512, 576, 768, 832, 1024, 2048], avail mem=55.50 GB
  0%|          | 0/8 [00:00<?, ?it/s]\rCapturing num tokens (num_tokens=2048 avail_mem=55.50 GB):   0%|          | 0/8 [00:00<?, ?it/s][2026-11-30 20:59:42] Using default MoE kernel config. Performance might be sub-optimal! Config file not found at /opt/eng/sgl/sglang/srt/layers/moe/moe_runner/triton_utils/configs/triton_3_6_0/E=256,N=256,device_name=NVIDIA_H200.json, you can create them with https://github.com/sgl-project/sglang/tree/main/benchmark/kernels/fused_moe_triton
[2026-11-30 20:59:43] Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2, 4, 8, 16, 32, 48, 64], avail mem=55.09 GB
[2026-11-30 20:59:45] Capture target decode CUDA graph end. elapsed=1.76 s, mem usage=0.08 GB, avail mem=55.02 GB.
[2026-11-30 20:59:45] max_total_num_tokens=1172108, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=128, context_len=4096, available_gpu_mem=55.02 GB
[2026-11-30 20:59:45] Tree cache initialized: source=default impl=ChunkCache hybrid_swa=False hybrid_ssm=False hierarchical=False streaming_wrapped=False
[2026-11-30 20:59:45] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 2.47
/opt/eng/sgl/sglang/srt/entrypoints/http_server.py:450: FastAPIDeprecationWarning: ORJSONResponse is deprecated, FastAPI now serializes data directly to JSON bytes via Pydantic when a return type or response model is set, which is faster and doesn't need a custom response class.
"""  # noqa: E501 - lines of a log
VLLM = """\
(APIServer pid=1001) INFO 11-30 19:25:02 [vllm.py:1109] Asynchronous scheduling is enabled.
(APIServer pid=1001) WARNING 11-30 19:25:02 [vllm.py:1213] Inductor compilation was disabled by user settings, optimizations settings that are only active during inductor compilation will be ignored.
(EngineCore pid=1002) INFO 11-30 19:25:09 [topk_topp_sampler.py:39] FlashInfer top-p/top-k sampling disabled via VLLM_USE_FLASHINFER_SAMPLER=0.
(EngineCore pid=1002) INFO 11-30 19:25:10 [cuda.py:482] Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'TRITON_ATTN', 'FLEX_ATTENTION'].
(EngineCore pid=1002) INFO 11-30 19:25:10 [flash_attn.py:776] Using FlashAttention version 3
(EngineCore pid=1002) INFO 11-30 19:25:10 [unquantized.py:270] Using TRITON Unquantized MoE backend out of potential backends: ['TRITON', 'BATCHED_TRITON', 'FlashInfer TRTLLM', 'FlashInfer CUTLASS'].
(EngineCore pid=1002) INFO 11-30 19:25:10 [unquantized.py:375] Using AssayExperts MoE backend
(EngineCore pid=1002) INFO 11-30 19:25:18 [weight_utils.py:892] Auto-prefetch is disabled because the filesystem (EXT4) is not a recognized network FS (NFS/Lustre). If you want to force prefetching, start vLLM with --safetensors-load-strategy=prefetch.
(EngineCore pid=1002) INFO 11-30 19:25:18 [gpu_model_runner.py:6798] Rank 0: Torch profiler disabled for CUDA graph capture
"""  # noqa: E501 - lines of a log


def test_every_fact_of_a_real_sglang_log_is_read() -> None:
    assert sglang_log.facts(SGLANG) == {
        "log.model_class": "Qwen3MoeForCausalLM",
        "log.weights_gb": 29.77,
        "log.kv_dtype": "bfloat16",
        "log.prefill_graph": "breakable",
        "log.largest_prefill_graph": 2048,
        "log.moe_config": "default",
        "log.decode_graph": "full",
        "log.largest_graph": 64,
        "log.cuda_graph_s": 1.76,
        "log.max_total_num_tokens": 1172108,
        "log.max_running_requests": 128,
        "log.context_len": 4096,
        "log.tree_cache": "ChunkCache",
        "log.hierarchical": False,
    }


def test_of_a_real_sglang_log_only_what_the_engine_itself_gave_up_is_a_second_thought() -> None:
    assert sglang_log.fallbacks(SGLANG) == [
        "FlashInfer TRTLLM MoE deferred finalize is disabled (moe_runner_backend=triton, "
        "quant_method=UnquantizedFusedMoEMethod)."
    ]


def test_that_a_model_runs_by_transformers_instead_is_a_second_thought() -> None:
    line = "XForCausalLM has no SGLang implementation, falling back to Transformers implementation."

    assert sglang_log.fallbacks(f"[2026-11-30 20:59:34] {line}") == [line]
    assert sglang_log.fallbacks("[2026-11-30 20:59:34] `torch_dtype` is deprecated! Use `dtype` instead!") == []


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("--cuda-graph-bs-decode", "1 2 4 8 16 32 48 64", None),
        ("--cuda-graph-bs-decode", "1 2", "[1, 2, 4, 8, 16, 32, 48, 64]"),
        ("--cuda-graph-max-bs", 32, "cuda_graph_config.decode.max_bs = 64"),
        ("--context-length", "4Ki", None),
        ("--disable-cuda-graph", True, "cuda_graph_config.decode.backend = full"),
    ],
)
def test_what_a_real_sglang_server_reported_confirms_its_flags_and_contradicts_others(
    flag: str, value: str | int | bool, words: str | None
) -> None:
    sizes = [1, 2, 4, 8, 16, 32, 48, 64]
    reported = {
        "version": "0.5.17",
        "context_length": 4096,
        "cuda_graph_bs_decode": sizes,
        "cuda_graph_config.decode.backend": "full",
        "cuda_graph_config.decode.bs": sizes,
        "cuda_graph_config.decode.max_bs": 64,
    }
    said = contradiction({flag: value}, reported, sglang_log.fallbacks(SGLANG))

    assert (said is None) if words is None else (words in str(said)), said


@pytest.mark.parametrize(("flag", "value"), [("--quantization", "fp8"), ("--speculative-algorithm", "EAGLE")])
def test_what_sglang_reports_as_null_is_off(flag: str, value: str) -> None:
    told = reported({"quantization": None, "speculative_algorithm": None, "attention_backend": None})

    assert "is not in force: the server reports" in str(contradiction({flag: value}, told, []))
    assert contradiction({"--quantization": "unquant", "--attention-backend": "fa3"}, told, []) is None


def test_a_quantization_that_vllm_reports_as_null_is_off() -> None:
    told = kept({"model_config.quantization": None, "attention_config.backend": None})

    assert "model_config.quantization = none" in str(vllm_contradiction({"--quantization": "fp8"}, told, []))
    assert vllm_contradiction({"--attention-backend": "FLASHINFER"}, told, []) is None


def test_every_fact_of_a_real_vllm_log_is_read() -> None:
    assert vllm_log.facts(VLLM) == {
        "log.async_scheduling": "enabled",
        "log.sampler": "disabled",
        "log.attention_backend": "FLASH_ATTN",
        "log.flash_attention": 3,
        "log.moe_backend": "TRITON",
        "log.moe_experts": "AssayExperts",
    }


def test_of_a_real_vllm_log_what_the_settings_bring_about_is_told_and_chatter_is_not() -> None:
    assert vllm_log.fallbacks(VLLM) == [
        "Inductor compilation was disabled by user settings, optimizations settings that are only active during "
        "inductor compilation will be ignored.",
        "FlashInfer top-p/top-k sampling disabled via VLLM_USE_FLASHINFER_SAMPLER=0.",
    ]
