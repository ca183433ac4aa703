"""Lines that healthy servers write and that sound like a failure: none of them, nor all together, names a cause."""

from __future__ import annotations

import pytest

from assay.failures import Log, explain
from assay.records.failure import Cause

HARMLESS = """\
  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes
[2025-08-24 06:25:37 TP0] Ignore import error when loading sglang.srt.models.otter: No module named 'transformers.models.otter'
WARNING 03-31 16:53:06 [model_runner.py:1296] Computed max_num_seqs (min(64, 16384 // 32768)) to be less than 1. Setting it to the minimum value of 1.
INFO 03-19 11:53:56 [cuda.py:234] Cannot use FlashAttention-2 backend for Volta and Turing GPUs.
WARNING 11-20 18:08:11 [_custom_ops.py:20] Failed to import from vllm._C with ImportError('libcudart.so.12: cannot open shared object file: No such file or directory')
[2025-05-13 23:21:30] Cutlass MLA only supports a page_size of 128, change page_size to 128.
host:55933:55933 [1] NCCL INFO NET/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open shared object file: No such file or directory : when loading libnccl-net.so
[rank0]:[W126 14:50:24.964326689 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL.
common_download_file_single_online: HEAD failed, status: 404
GGML OpenVINO Backend: device CPU is not available, fallback to CPU
llm_load_vocab: missing or unrecognized pre-tokenizer type, using: 'default'
INFO 08-05 11:28:31 model_runner.py:1028] CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of memory, consider decreasing `gpu_memory_utilization`.
WARNING 05-21 23:17:46 [fp8.py:463] Failed to import DeepGemm kernels.
[2025-07-02 07:41:58 DP0 TP0] max_total_tokens=131072 is larger than the profiled value 561981. Use the profiled value instead.
INFO 03-30 10:00:00 [cuda.py:275] Some attention backends are not valid for cuda. Reasons: {FLASH_ATTN: [sink setting not supported]}
/site/torch/cuda/__init__.py:61: FutureWarning: The pynvml package is deprecated. Please install nvidia-ml-py instead.
[2025-07-09 11:52:19] Attention backend not set. Use flashinfer backend by default.
load: control-looking token: 128247 '</s>' was not control-type; this is probably a bug in the model. its type will be overridden
[TensorRT-LLM][WARNING] Device 0 peer access Device 1 is not available.
No module named 'vllm.commit_id'
I0302 10:11:13.123456 9 pb_stub.cc:366] "Failed to shut down the stub cleanly: RuntimeError: otters"
ggml_backend_sched_alloc_splits: failed to allocate graph, reserving (backend_ids_changed = 1)
ERROR 05-13 10:46:44 [dump_input.py:72] Dumping input data for V1 LLM engine (v0.20.2) with config: model='otter', tokenizer='otter', chat_template=None, tokenizer_mode=auto, kv_cache_dtype=fp8
ERROR 05-13 10:46:44 [otter.py:7] EngineArgs(model='otter', tokenizer='unknown', load_format='auto', worker_cls='unsupported')
[2025-04-01 09:58:02 TP0] Custom allreduce is disabled because this process group spans across nodes.
WARNING 03-26 15:23:05 [backend_guidance.py:86] LLMatcher error: Parser Error: token " null" doesn't satisfy the grammar; byte 'n' fails parse
[2025-05-02 10:11:12] INFO:     127.0.0.1:40000 - "GET /health HTTP/1.1" 503 Service Unavailable
""".splitlines()  # noqa: E501 - lines as they are written


@pytest.mark.parametrize("line", HARMLESS)
def test_a_harmless_line_names_no_cause(line: str) -> None:
    found = explain([Log("x", [line])])

    assert found.cause is Cause.UNKNOWN, found.rule


def test_all_together_name_none() -> None:
    found = explain([Log("x", HARMLESS)])

    assert found.cause is Cause.UNKNOWN, found.rule
    assert found.num_lines == len(HARMLESS)


ROUNDS = 400
STARTS = {
    "vllm": """\
(APIServer pid=7) INFO 01-01 10:00:00 [api_server.py:1400] vLLM API server version 0.32.0
(APIServer pid=7) INFO 01-01 10:00:00 [utils.py:253] non-default args: {'model': 'org/otter', 'max_model_len': 8192}
(APIServer pid=7) WARNING 01-01 10:00:03 [model.py:2700] Default sampling parameters have been overridden by the model's generation config.
(EngineCore_DP0 pid=9) INFO 01-01 10:00:09 [core.py:96] Initializing a V1 LLM engine (v0.32.0) with config: model='org/otter', dtype=torch.bfloat16
(EngineCore_DP0 pid=9) WARNING 01-01 10:00:10 [topk_topp_sampler.py:60] FlashInfer is not available. Falling back to the PyTorch-native implementation of top-p & top-k sampling.
(EngineCore_DP0 pid=9) INFO 01-01 10:00:12 [gpu_model_runner.py:3500] Starting to load model org/otter...
Loading safetensors checkpoint shards: 100% Completed | 2/2 [00:04<00:00,  2.10s/it]
(EngineCore_DP0 pid=9) WARNING 01-01 10:00:30 [fused_moe.py:886] Using default MoE config. Performance might be sub-optimal! Config file not found at /site/vllm/E=128,N=768.json
(EngineCore_DP0 pid=9) INFO 01-01 10:00:40 [gpu_worker.py:390] Available KV cache memory: 41.20 GiB
(EngineCore_DP0 pid=9) WARNING 01-01 10:00:41 [cudagraph_dispatcher.py:77] RuntimeError: graphs of 7 otters exceed the pool, so they are left out
(EngineCore_DP0 pid=9) INFO 01-01 10:00:52 [gpu_model_runner.py:4900] Graph capturing finished in 9 secs, took 0.50 GiB
(APIServer pid=7) INFO:     Application startup complete.""",  # noqa: E501 - lines as they are written
    "sglang": """\
[2026-01-01 10:00:00] server_args=ServerArgs(model_path='org/otter', tokenizer_path='org/otter', mem_fraction_static=0.85)
[2026-01-01 10:00:03] Ignore import error when loading sglang.srt.models.otter: No module named 'transformers.models.otter'
[2026-01-01 10:00:09 TP0] Load weight begin. avail mem=78.50 GB
[2026-01-01 10:00:20 TP0] Otter attention needs SM100; falling back to Triton.
[2026-01-01 10:00:30 TP0] Memory pool end. avail mem=10.10 GB
[2026-01-01 10:00:31 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=10.00 GB
[2026-01-01 10:00:40 TP0] Capture cuda graph end. Time elapsed: 9.00 s. avail mem=8.00 GB.
[2026-01-01 10:00:41] The server is fired up and ready to roll!""",  # noqa: E501 - lines as they are written
    "llamacpp": """\
build: 6900 (abc1234) with cc for x86_64-linux-gnu
ggml_cuda_init: found 1 CUDA devices:
  Device 0: NVIDIA GeForce RTX 2080 Ti, compute capability 7.5
llama_model_loader: loaded meta data with 25 key-value pairs and 579 tensors from /models/otter.gguf
load: special_eos_id is not in special_eog_ids - the tokenizer config may be incorrect
llama_context: n_ctx_per_seq (4096) < n_ctx_train (131072) -- the full capacity of the model will not be utilized
main: server is listening on http://127.0.0.1:8080 - starting the main loop""",
}
SERVES = {
    "vllm": """\
(APIServer pid=7) INFO:     127.0.0.1:50{n:03} - "POST /v1/chat/completions HTTP/1.1" 200 OK
(APIServer pid=7) INFO 01-01 10:01:00 [logger.py:41] Received request chatcmpl-{n}: prompt: 'Why does my log say ValueError: max_num_seqs must be positive? CUDA out of memory', params: SamplingParams(n=1)
(APIServer pid=7) INFO 01-01 10:01:00 [loggers.py:257] Engine 000: Avg prompt throughput: {n}.0 tokens/s, Running: 7 reqs, Waiting: 0 reqs
(EngineCore_DP0 pid=9) WARNING 01-01 10:01:01 [scheduler.py:7] AssertionError: otter {n} was asserted and survived""",  # noqa: E501 - lines as they are written
    "sglang": """\
[2026-01-01 10:01:00 TP0] Prefill batch. #new-seq: 1, #new-token: {n}, #cached-token: 0, token usage: 0.01, #running-req: 1
[2026-01-01 10:01:00 TP0] Decode batch. #running-req: 1, #token: {n}, token usage: 0.01, gen throughput (token/s): 77.00
[2026-01-01 10:01:00] INFO:     127.0.0.1:50{n:03} - "POST /generate HTTP/1.1" 200 OK
[2026-01-01 10:01:00 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.6 -> 0.7""",  # noqa: E501 - lines as they are written
    "llamacpp": """\
slot launch_slot_: id  0 | task {n} | processing task
slot update_slots: id  0 | task {n} | new prompt, n_ctx_slot = 4096, n_keep = 0, n_prompt_tokens = 77
slot      release: id  0 | task {n} | stop processing: n_past = 177, truncated = 0
srv  log_server_r: request: POST /completion 127.0.0.1 200""",
}


@pytest.mark.parametrize("engine", STARTS)
def test_a_healthy_server_that_serves_for_long_names_none(engine: str) -> None:
    served = [SERVES[engine].replace("{n:03}", f"{n:03}").replace("{n}", str(n)) for n in range(ROUNDS)]
    lines = "\n".join([STARTS[engine], *served]).splitlines()

    found = explain([Log(engine, lines)])

    assert (found.cause, found.stage) == (Cause.UNKNOWN, "under-load"), found.rule
    assert found.num_lines > 4 * ROUNDS
