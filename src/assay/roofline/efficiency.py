"""How far real kernels stay below the ceilings: every constant of the expected times, in one place.

None of them enters a floor. Each is a range (slow, usual, fast kernels) with the reason it was set so; `calibration`
scales the outcome by what was measured. "Share" is of what a device can reach: of a measured ceiling, or of a data
sheet's times `STREAM_SHARE_OF_SPEC` or `MATMUL_SHARE_OF_SPEC`. In a range of shares, low is the slow kernel.

No constant was fitted by a program, but two sources were known when they were set, so that agreement of uncalibrated
estimates with them is no independent evidence:

- GLM-5 on eight RTX PRO 6000 (voipmonitor/rtx6kpro, models/glm5.md). Read by hand, it gave 0.44 to 0.57 of the data
  sheet's bandwidth for FP4 weights of experts: the middle of `grouped_gemm_packed` (0.65 * 0.88 = 0.57).
- Own measurements of 2026-11-30 on H200s (torch 2.11.0, vLLM 0.26.0, SGLang 0.5.17; "own" below): kernels alone, as
  told at each constant; arms of two campaigns and two traces of a step, which set the host's part and the number of
  kernels outside of layers. src/assay/data/published/assay-vllm-h200.toml was in view.

Where neither is named, a constant is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from assay.records.device import Basis
from assay.records.estimate import Range

Kind = Literal["gemm", "grouped_gemm", "grouped_gemm_packed", "attention", "elementwise", "sampling"]
"""What a kernel is like: a matmul, many small ones in one launch (with weights of 16 bits, or of fewer), attention's
core, or a pass over data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCost:
    """What a step costs an engine's host; `assay.roofline.host` says when the device waits for it."""

    ahead_step_s: Range
    """Scheduling and preparing a step, taking in what came out of the one before: what overlapping can hide."""
    ahead_sequence_s: Range
    """The same, per sequence in the step."""
    rest_step_s: Range
    """What the device waits for under either scheduling."""
    rest_sequence_s: Range
    """The same, per sequence in the step."""
    eager_launch_s: Range | None = None
    """From one kernel to the next where graphs are off; None: the profile's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How kernels behave on one kind of processor."""

    read_share: dict[Kind, Range]
    """Of the achievable memory bandwidth, in the limit of a large kernel."""
    compute_share: dict[Kind, Range]
    """Of the achievable arithmetic rate, in the limit of a large kernel."""
    ramp_s: Range
    """What a kernel loses while it fills and drains: half of the rate is reached at ramp * bandwidth bytes."""
    launch_s: Range
    """From one kernel to the next inside a replayed graph; a device's own `launch_s` replaces it."""
    eager_launch_s: Range
    """The same, launched by the host one by one."""
    host: HostCost
    """Of an engine that nothing is known of."""
    hosts: Mapping[str, HostCost] = field(default_factory=dict)
    """Of engines that were measured, or that are built otherwise."""


COMPILED = ("llamacpp", "lmdeploy", "gpt-fast", "trtllm-engine")
"""Engines whose loop is compiled, or serves nobody: no Python prepares a step."""
_NONE = Range(low=0.0, mid=0.0, high=0.0)
# The host's part. What overlapped scheduling hides: own, each engine with and without it, the same model and load one
# after the other on an H200; kernels are the same in both and cancel. vLLM 0.26 (examples/gpu/h200-vllm, r0006): 1.94
# ms a token at 64 streams and 1.38 at 16. SGLang 0.5.17 (examples/gpu/h200-sglang, r0007): 3.22 and 1.63, of which
# prompts' own steps lost 0.36 and 0.09. Other Python engines are taken to be as vLLM.
_AHEAD = Range(low=0.2e-3, mid=1.2e-3, high=2.5e-3)
_AHEAD_EACH = Range(low=0.5e-6, mid=12e-6, high=40e-6)
_AHEAD_SGLANG = Range(low=0.2e-3, mid=1.1e-3, high=2.5e-3)
_AHEAD_EACH_SGLANG = Range(low=0.5e-6, mid=27e-6, high=40e-6)
# What the device waits for in any case: own, traces of vLLM 0.26 with overlapped scheduling (examples/gpu/h200-step).
# The step of the load test beside them is 0.171 ms longer than its kernels at 64 streams and 0.079 at 16: 2 us a
# sequence, and nothing for the step, since the starts of its kernels are expected to take longer (0.26 ms). The high
# ends are what closed loops of others ask for, of which there is no trace.
_REST = Range(low=0.0, mid=0.0, high=2.0e-3)
_REST_EACH = Range(low=0.0, mid=2e-6, high=60e-6)
# A launch through an engine's Python, of models that are not compiled. The middle: own traces of vLLM 0.26
# (examples/gpu/h200-step), from one launch outside of the graph to the next: 58 us on average at 16 streams, 85 at 64,
# on a host where a launch by torch alone takes 8 to 10. Low: 16.5 ms a step of 58 dense layers, some ten kernels each,
# on another H200 (vllm-project/vllm#51167). High: a step with a prompt took 32 ms for what is counted here as 274
# kernels (docs/gpu.md), which is 117 us each; it was known when the middle was set, and so were SGLang's arms without
# graphs.
_EAGER = Range(low=25e-6, mid=70e-6, high=140e-6)
_PYTHON = HostCost(
    ahead_step_s=_AHEAD,
    ahead_sequence_s=_AHEAD_EACH,
    rest_step_s=_REST,
    rest_sequence_s=_REST_EACH,
    eager_launch_s=_EAGER,
)
_SGLANG = replace(_PYTHON, ahead_step_s=_AHEAD_SGLANG, ahead_sequence_s=_AHEAD_EACH_SGLANG)
# One loop that waits for each step, nothing to overlap. Set when one constant stood for all engines, and not measured;
# C++ runtimes show about 1 us a sequence.
_COMPILED = HostCost(
    ahead_step_s=_NONE,
    ahead_sequence_s=_NONE,
    rest_step_s=Range(low=0.05e-3, mid=0.45e-3, high=2.0e-3),
    rest_sequence_s=Range(low=0.1e-6, mid=15e-6, high=60e-6),
)

GPU = Profile(
    # gemm, own: [rows x 4096] x [8192 x 4096] in BF16, replayed over 24 weights, took 18.7, 18.8 and 19.7 us at 1, 8
    # and 64 rows, where reading 67 MB at the read ceiling takes 15.6: 0.92 to 0.97 without launch and ramp.
    # grouped_gemm (16 bits), own: vLLM's fused_experts at GLM-5's shapes reached 0.92-0.98 of the read ceiling at 64 to
    # 256 tokens and 0.70-0.83 at 1,024 to 2,048, all its kernels counted; torch._grouped_mm 0.37-0.68.
    # Packed weights and attention, which reads pages of a table: assumed. The width of the former covers the reports in
    # flashinfer#2786 (none to 2x from tiles).
    read_share={
        "gemm": Range(low=0.75, mid=0.93, high=1.0),
        "grouped_gemm": Range(low=0.55, mid=0.90, high=1.0),
        "grouped_gemm_packed": Range(low=0.40, mid=0.65, high=0.95),
        "attention": Range(low=0.40, mid=0.65, high=0.95),
        "elementwise": Range(low=0.50, mid=0.75, high=1.0),
        "sampling": Range(low=0.20, mid=0.45, high=0.90),
    },
    # Large dense matmuls come close to what a matmul benchmark shows (own: 0.97 of the 8192^3 rate at 256 rows of the
    # matrix above, without launch and ramp; the middle allows for worse shapes). GB10 reached 356 TFLOP/s of FP4 in
    # dense GEMMs and 120-154 in grouped ones (NVIDIA developer forum 359960): 0.34-0.43. Attention: FlashAttention-3
    # reports up to 740 TFLOP/s in FP16 on H100, 0.75 of the data sheet (arXiv 2407.08608). The rest is assumed.
    compute_share={
        "gemm": Range(low=0.60, mid=0.85, high=1.0),
        "grouped_gemm": Range(low=0.30, mid=0.50, high=0.85),
        "grouped_gemm_packed": Range(low=0.30, mid=0.50, high=0.85),
        "attention": Range(low=0.30, mid=0.55, high=0.95),
        "elementwise": Range(low=0.10, mid=0.25, high=0.50),
        "sampling": Range(low=0.05, mid=0.10, high=0.30),
    },
    # One wave of blocks has to start, fetch its first bytes and end. Own: the GEMM above leaves at most 1.9 us for it.
    ramp_s=Range(low=0.5e-6, mid=1.5e-6, high=3.0e-6),
    # Own: 1.134 us from one tiny kernel to the next in a replayed graph; other devices are assumed to be near.
    launch_s=Range(low=0.7e-6, mid=1.15e-6, high=2.2e-6),
    # A launch through a framework costs the host this much, and the device waits for it in small steps. Own: 9.1 us.
    eager_launch_s=Range(low=4e-6, mid=9e-6, high=15e-6),
    host=_PYTHON,
    hosts={"vllm": _PYTHON, "sglang": _SGLANG, **dict.fromkeys(COMPILED, _COMPILED)},
)

CPU = Profile(
    # Measured ceilings of a CPU come from the same threads that later compute: the share is high. Basis: assumed.
    read_share={
        "gemm": Range(low=0.75, mid=0.92, high=1.0),
        "grouped_gemm": Range(low=0.60, mid=0.85, high=1.0),
        "grouped_gemm_packed": Range(low=0.60, mid=0.85, high=1.0),
        "attention": Range(low=0.40, mid=0.70, high=1.0),
        "elementwise": Range(low=0.50, mid=0.80, high=1.0),
        "sampling": Range(low=0.20, mid=0.50, high=1.0),
    },
    compute_share={
        "gemm": Range(low=0.50, mid=0.80, high=1.0),
        "grouped_gemm": Range(low=0.35, mid=0.65, high=1.0),
        "grouped_gemm_packed": Range(low=0.35, mid=0.65, high=1.0),
        "attention": Range(low=0.15, mid=0.40, high=0.90),
        "elementwise": Range(low=0.10, mid=0.30, high=0.80),
        "sampling": Range(low=0.05, mid=0.10, high=0.50),
    },
    ramp_s=Range(low=0.1e-6, mid=0.5e-6, high=2e-6),
    # A barrier between two operations of a thread pool. Assumed.
    launch_s=Range(low=0.5e-6, mid=2e-6, high=8e-6),
    eager_launch_s=Range(low=0.5e-6, mid=2e-6, high=8e-6),
    host=HostCost(
        ahead_step_s=_NONE,
        ahead_sequence_s=_NONE,
        rest_step_s=Range(low=0.02e-3, mid=0.15e-3, high=1e-3),
        rest_sequence_s=Range(low=1e-6, mid=10e-6, high=50e-6),
    ),
)

STREAM_SHARE_OF_SPEC = Range(low=0.78, mid=0.88, high=0.95)
"""Reading at best over a data sheet's memory bandwidth, where nobody measured it.

Source of the low end: copies of 1,375-1,490 GB/s against 1,792 on RTX PRO 6000 (voipmonitor/rtx6kpro,
hardware/pcie-bandwidth.md): 0.77-0.83; reads are assumed to do better than copies. Of the middle: own, 4,294 GB/s of
4,800 on H200 by reading and 4,211 by copying: 0.895 and 0.877. The high end is assumed.
"""
MATMUL_SHARE_OF_SPEC = Range(low=0.60, mid=0.78, high=0.95)
"""A large dense matmul at best over a data sheet's rate, where nobody measured it: clocks fall under load.

Own: 750 TFLOP/s of 989 in BF16 and 1,287 of 1,979 in FP8 on H200: 0.76 and 0.65. The high end is assumed.
"""

CURVE_SPREADS: dict[Basis, Range] = {
    "measured": Range(low=0.9, mid=1.0, high=1.25),
    "elsewhere": Range(low=0.9, mid=1.0, high=1.8),
    "spec": Range(low=0.6, mid=1.0, high=1.8),
    "assumed": Range(low=0.6, mid=1.0, high=1.8),
}
"""Around a curve, by what it rests on: collectives inside a step wait for the slowest rank, and boxes differ.

Source of 1.8 for other boxes: eight RTX PRO 6000 reach 40 GB/s with switches and 22 GB/s on two sockets with default
channels (voipmonitor/rtx6kpro, hardware/pcie-bandwidth.md). The rest is assumed.
"""
LINK_SHARE = Range(low=0.35, mid=0.62, high=0.85)
"""Bus bandwidth of a ring over a data sheet's link, where no curve is known.

Source: 37-41 GB/s over PCIe 5.0 x16 of 63 GB/s with tuned channels, 22 GB/s without (voipmonitor/rtx6kpro,
hardware/pcie-bandwidth.md): 0.35 to 0.65; 370 GB/s over NVLink of 450 GB/s (NVIDIA/nccl-tests#212): 0.82.
"""
COLLECTIVE_LATENCY_S = Range(low=6e-6, mid=14e-6, high=30e-6)
"""An empty collective where no curve is known. 24 us is what NCCL needs on eight PCIe devices (same source)."""
UNKNOWN_LINK_BYTES_PER_S = 16e9
"""A link nobody described: half of PCIe 4.0 x16. Assumed, so that a forgotten row makes no fast box."""

MLA_HEAD_GROUP = 64
"""Heads that share one reading of MLA's latent in a decode kernel: a tile of 64 rows. Assumed."""
EXPERT_TILE_ROWS = ((16, 16), (16, 64), (64, 128))
"""Least and largest tile to which a grouped GEMM rounds each expert's rows up: fast, usual, slow. Assumed."""
CACHE_OVER_MEMORY = Range(low=1.5, mid=2.5, high=5.0)
"""Bandwidth of the last-level cache over the memory's, where `l2_read_bytes_per_s` is not known. Assumed."""
LINEAR_STATE_BYTES = Range(low=2.0, mid=4.0, high=4.0)
"""Bytes an element of a linear attention's state: FP32 in the engines' defaults, BF16 at best."""

LAYER_KERNELS = {"norm": 2, "rope_and_cache": 2, "activation": 1, "router": 2, "permute": 3, "quantize": 2}
"""Kernels per layer besides matmuls and attention, with the fusions that engines have by default. Assumed; own traces
(examples/gpu/h200-step) have as many, and norms of queries and keys besides, since nothing is compiled there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKernels:
    """Kernels of a step that belong to no layer; copies count, since each is started like a kernel."""

    inputs: int
    """Positions, slots of the cache, metadata of the attention back end; the embedding's look-up not counted."""
    sampling: int
    """Softmax, penalties, top-k/top-p, the draw."""


STEP_KERNELS = StepKernels(inputs=4, sampling=6)
"""Assumed, of engines that nobody traced."""
STEP_KERNELS_OF: Mapping[str, StepKernels] = {"vllm": StepKernels(inputs=22, sampling=10)}
"""Own: traces of vLLM 0.26 (examples/gpu/h200-step) have 22.4 (11 copies among them) and 9.5 a step."""
