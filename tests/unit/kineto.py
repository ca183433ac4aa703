"""Traces as PyTorch's Kineto writes them of vLLM's decode: graphs replayed, kernels without a parent on the host."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PRODUCT = "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT"
FLASH = (
    "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> > > >"
)
Kernel = tuple[str, float]
"""Name, and microseconds."""
ATTENTION: list[Kernel] = [
    ("void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>", 3.0),
    (PRODUCT, 25.0),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16>", 2.0),
    ("void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>", 2.0),
    ("void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>", 2.0),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, float, true>", 2.0),
    ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, 0>", 2.0),
    (FLASH, 30.0),
    ("void flash::FlashAttnFwdCombine<cute::tuple<cute::C<8> > >", 3.0),
    (PRODUCT, 19.0),
    ("void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>", 3.0),
]
EXPERTS: list[Kernel] = [
    (PRODUCT, 4.0),
    ("void vllm::moe::topkGating<8, 256, 4, 16, 32, int, __nv_bfloat16>", 3.0),
    ("void vllm::moe::moe_align_block_size_kernel<int>", 5.0),
    ("void vllm::moe::count_and_sort_expert_tokens_kernel<int>", 4.0),
    ("fused_moe_kernel", 340.0),
    ("void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel, true>", 2.0),
    ("fused_moe_kernel", 200.0),
    ("void vllm::moe::moe_sum_kernel<c10::BFloat16, 8>", 3.0),
]
DENSE: list[Kernel] = [
    (PRODUCT, 60.0),
    ("void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel, true>", 2.0),
    (PRODUCT, 30.0),
]
PREPARED: list[Kernel] = [
    ("Memcpy HtoD (Pinned -> Device)", 1.0),
    ("_compute_slot_mapping_kernel", 2.0),
    ("void flash::prepare_varlen_num_blocks_kernel<1, true>", 2.0),
]
EMBEDDED: Kernel = ("void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)", 3.0)
LAST_NORM: Kernel = ("void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>", 3.0)
HEAD: Kernel = (PRODUCT, 95.0)
SAMPLED: list[Kernel] = [
    ("void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>", 4.0),
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float> > >", 20.0),
]
COPIED: Kernel = ("Memcpy DtoH (Device -> Pinned)", 1.0)
START_US, HOST_US = 1.0, 300.0
"""Pauses: from one kernel to the next, and between two steps."""


class Tape:
    """A trace that is being written: the host runs ahead, the device follows."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.host_us, self.device_us, self._correlation = 1000.0, 1100.0, 40

    def launch(self, call: str, kernels: Sequence[Kernel], *, stream: int = 7) -> None:
        """One call of the driver, and what it launches."""
        self._correlation += 1
        args = {"External id": 9, "cbid": 311, "correlation": self._correlation}
        self._complete("cuda_runtime", call, self.host_us, 4.0, 99, 99, args)
        self.events.append(
            {
                "ph": "s",
                "id": self._correlation,
                "pid": 99,
                "tid": 99,
                "ts": self.host_us,
                "cat": "ac2g",
                "name": "ac2g",
            }
        )
        self.host_us += 5.0
        self.device_us = max(self.device_us, self.host_us)
        for name, took_us in kernels:
            kind = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
            told = {"device": 0, "context": 1, "stream": stream, "correlation": self._correlation, "grid": [132, 1, 1]}
            self._complete(kind, name, self.device_us, took_us, 0, stream, told)
            self.device_us += took_us + START_US

    def step(self, name: str, layers: Sequence[Kernel], *, annotate: bool = True, graph: bool = True) -> None:
        """One step of the engine."""
        self.device_us += HOST_US
        begun_host_us, begun_us = self.host_us, self.device_us
        for kernel in PREPARED:
            self.launch("cudaMemcpyAsync" if kernel[0].startswith("Memcpy") else "cuLaunchKernelEx", [kernel])
        inside = [EMBEDDED, *layers, LAST_NORM]
        if graph:
            self.launch("cudaGraphLaunch", inside)
        else:
            for kernel in inside:
                self.launch("cudaLaunchKernel", [kernel])
        self.launch("cudaLaunchKernelExC", [HEAD])
        if annotate:
            self._complete("user_annotation", name, begun_host_us, self.host_us - begun_host_us, 99, 99, {})
            self._complete("gpu_user_annotation", name, begun_us, self.device_us - begun_us, 0, 7, {})
            self._complete("gpu_user_annotation", name, begun_us + 9, 1.0, 0, 20, {})
        for kernel in SAMPLED:
            self.launch("cudaLaunchKernel", [kernel])
        self.launch("cudaMemcpyAsync", [COPIED], stream=20)

    def write(self, path: Path, *, without: Sequence[str] = ()) -> Path:
        """The file, without events of some categories."""
        content = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, "numSms": 132}],
            "cupti_version": 130000,
            "displayTimeUnit": "ms",
            "traceEvents": [
                {"name": "process_name", "ph": "M", "ts": 0, "pid": 0, "tid": 0, "args": {"name": "python"}},
                *(event for event in self.events if event["cat"] not in without),
            ],
        }
        raw = json.dumps(content).encode()
        path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
        return path

    def _complete(self, cat: str, name: str, ts: float, dur: float, pid: int, tid: int, args: dict[str, Any]) -> None:
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
        )


def decode_name(sequences: int, cached_tokens: int | None = None, prompts: int = 0) -> str:
    """vLLM's annotation of a step, brief or with sums of tokens (`detailed_trace_annotation`)."""
    if cached_tokens is None:
        return f"execute_context_{prompts}({256 * prompts})_generation_{sequences}({sequences})"
    kept = sequences * (cached_tokens + 1)
    return (
        f"execute_{sequences + 256 * prompts}_context_{prompts}(sq{256 * prompts}sk{256 * prompts}sqsq0sqsk0)"
        f"_generation_{sequences}(sq{sequences}sk{kept}sqsq{sequences}sqsk{kept})"
    )


def decode_tape(*, sequences: int = 64, context: int | None = 320, layers: int = 3, steps: int = 5) -> Tape:
    """Steps of decode with experts; one of them, in the middle, has a prompt in it and no graph."""
    tape = Tape()
    for number in range(steps):
        mixed = number == steps // 2
        name = decode_name(sequences - mixed, context, prompts=int(mixed))
        tape.step(name, [*ATTENTION, *EXPERTS] * layers, graph=not mixed)
    return tape
