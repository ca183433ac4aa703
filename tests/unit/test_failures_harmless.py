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
""".splitlines()  # noqa: E501 - lines as they are written


@pytest.mark.parametrize("line", HARMLESS)
def test_a_harmless_line_names_no_cause(line: str) -> None:
    found = explain([Log("x", [line])])

    assert found.cause is Cause.UNKNOWN, found.rule


def test_all_together_name_none() -> None:
    found = explain([Log("x", HARMLESS)])

    assert found.cause is Cause.UNKNOWN, found.rule
    assert found.num_lines == len(HARMLESS)
