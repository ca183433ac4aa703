"""What lies beneath the engines, and what they write in C++: shapes of messages, and healthy lines."""

from __future__ import annotations

import pytest

from assay.failures import Log, explain
from assay.records.failure import Cause

FAMILIES = [
    # CUDA's and HIP's codes, by name
    ("RuntimeError: otter failed: cudaErrorMisalignedAddress", "illegal-memory-access"),
    ("otter: CUDA_ERROR_INVALID_PC", "illegal-memory-access"),
    ("RuntimeError: otter: CUDA_ERROR_NO_BINARY_FOR_GPU", "unsupported-architecture"),
    ("RuntimeError: cudaErrorSystemNotReady: system not yet initialized", "driver-mismatch"),
    ("RuntimeError: MPS client failed to connect to the MPS control daemon or the MPS server", "driver-mismatch"),
    ("RuntimeError: CUDA error: mapping of buffer object failed", "communication"),
    ("RuntimeError: CUDA error: a PTX JIT compilation failed", "jit-compile-failure"),
    ("RuntimeError: CUDA error: too many blocks in cooperative launch", "kernel-assertion"),
    # libraries
    ("RuntimeError: CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`", "oom-at-load"),
    ("RuntimeError: CUDA error: CUBLAS_STATUS_ARCH_MISMATCH when calling `cublasOtter`", "unsupported-architecture"),
    ("RuntimeError: cuDNN Frontend error: No valid execution plans built.", "kernel-assertion"),
    ("Unable to load any of {libcudnn_graph.so.9.1.0, libcudnn_graph.so.9}", "missing-dependency"),
    # compilers
    ("host_config.h:143:2: error: #error -- unsupported GNU version! gcc 15 is not supported!", "jit-compile-failure"),
    # networks
    ("[1763683011.2] [node7:936  :0]  ucp_otter.c:7 UCX  ERROR no otters reached the pond", "communication"),
    ("/src/nvshmem/src/host/init/init.cu:7: nvshmem setup connections failed", "communication"),
    ("E0618 10:00:00.1 7 rdma_endpoint.cpp:291] Failed to set up an otter", "communication"),
    ("An ORTE daemon has unexpectedly failed after launch", "communication"),
    # Python
    ("numpy.dtype size changed, may indicate binary incompatibility. Expected 96", "missing-dependency"),
    ("RuntimeError: module compiled against ABI version 0x1000009", "missing-dependency"),
    ("_pickle.UnpicklingError: invalid load key, 'v'.", "model-corrupt"),
    ("EOFError: Ran out of input", "model-corrupt"),
    ("NotImplementedError: Cannot copy out of meta tensor; no data!", "missing-weights"),
    ("yaml.scanner.ScannerError: mapping values are not allowed here", "bad-value"),
    # the hub
    ("ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "model-not-found"),
    ("OSError: You are not in. Access to model acme/otter is restricted.", "model-not-found"),
    ("OSError: [Errno 116] Stale file handle: '/models/otter/model-7.safetensors'", "model-corrupt"),
    # the host
    ("OSError: [Errno 24] Too many open files", "host-oom"),
    ("OSError: [Errno 30] Read-only file system: '/root/.cache/otter'", "disk-full"),
    (
        "[Errno 99] error while attempting to bind on address ('10.7.7.7', 8): cannot assign requested address",
        "bad-value",
    ),
    (
        "permission denied while trying to connect to the Docker daemon socket at unix:///run/d.sock",
        "missing-dependency",
    ),
    ('OCI runtime create failed: exec: "--tp-size": executable file not found in $PATH: unknown', "bad-value"),
    ("docker: invalid reference format.", "bad-value"),
    ("srun: error: Unable to allocate resources: Invalid account or account/partition", "bad-value"),
    ("acme@node7: Permission denied (publickey).", "communication"),
    # llama.cpp
    ("/src/ggml/src/ggml-cuda/otter.cu:7: unsupported type", "kernel-assertion"),
    ("/src/ggml/src/ggml.c:7: not enough space in the context's memory pool", "engine-assertion"),
    ("llama_model_load: error loading model: otters must be greater than one", "unsupported-model-architecture"),
    ("llama_model_load: error loading model: model arch and LoRA arch mismatch", "incompatible-combination"),
    ("otter: K cache type q4_0 with block size 32 does not divide n_embd_head_k=80", "incompatible-combination"),
    ("ggml_metal_library_init: error: failed to create library", "jit-compile-failure"),
    # TensorRT-LLM
    (
        "[TRT] [E] Error Code 10: Internal Error (Could not find any implementation for node {A}.)",
        "kernel-assertion",
    ),
    ("[TRT] [E] Error Code 4: API Usage Error (Parameter check failed, condition: otter)", "incompatible-combination"),
    (
        "[TensorRT-LLM][ERROR] Unsupported data type (/src/cpp/tensorrt_llm/runtime/otter.cpp:7)",
        "incompatible-combination",
    ),
    ("RuntimeError: Failed at /site/jit/csrc/moe/otter.cuh:7: otters must be dense", "kernel-assertion"),
]
HEALTHY = """\
decide: failed to allocate graph, reserving (backend_ids_changed = 1)
load_backend: loaded CUDA backend from /app/libggml-cuda.so
srv    load_model: cache_reuse is not supported by multimodal, it will be disabled
ggml_cuda_init: found 1 CUDA devices:
  Device 0: NVIDIA H100, compute capability 9.0, VMM: yes
[2026-01-01 10:00:00 TP0] FlashInfer workspace preflight: cuMemCreate probe failed on at least one rank. Skipping allreduce fusion.
[1763683011.28] [8b3b04d4aa39:936  :0]     ucp_context.c:2339 UCX  WARN  UCP API version is incompatible: required >= 1.20
[TensorRT-LLM][WARNING] [json.exception.type_error.302] type must be array, but is null
[TensorRT-LLM][WARNING] Attention workspace size is not enough, increase the size from 0 bytes to 67462144 bytes
[TensorRT-LLM][INFO] Max KV cache blocks per sequence: 65 [window size=2051], tokens per block=32
nvcc --generate-dependencies-with-compile -c /site/flashinfer/data/csrc/otter.cu -o otter.cuda.o
[1/3] c++ -c /site/csrc/otter_binding.cu -o otter.o
WARNING 01-01 10:00:00 [otter.py:7] Failed to import from acme._otters with ModuleNotFoundError
INFO:     10.0.0.7:41698 - "POST /v1/chat/completions HTTP/1.1" 200 OK
""".splitlines()  # noqa: E501 - lines as they are written


@pytest.mark.parametrize(("line", "cause"), FAMILIES, ids=[line[:40] for line, _ in FAMILIES])
def test_a_family_of_messages_is_known_by_its_shape(line: str, cause: str) -> None:
    found = explain([Log("x", [line])])

    assert found.cause == cause, found.rule


@pytest.mark.parametrize("line", HEALTHY)
def test_what_healthy_servers_and_compilers_write_names_no_cause(line: str) -> None:
    found = explain([Log("x", [line])])

    assert found.cause is Cause.UNKNOWN, found.rule


def test_an_exception_that_nobody_caught_is_quoted_rather_than_the_abort_after_it() -> None:
    found = explain(
        [
            Log(
                "x",
                [
                    "terminate called after throwing an instance of 'std::runtime_error'",
                    "  what():  the pond is full of otters",
                    "Aborted (core dumped)",
                ],
            )
        ]
    )

    assert (found.quote, found.certainty) == ("what():  the pond is full of otters", "inferred")


def test_memory_that_metal_lacks_outranks_the_abort_before_it() -> None:
    found = explain(
        [
            Log(
                "x",
                [
                    "/src/ggml/src/ggml-metal/ggml-metal-context.m:235: fatal error",
                    "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
                ],
            )
        ]
    )

    assert found.cause is Cause.OOM_AT_LOAD
