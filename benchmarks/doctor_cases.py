"""Flags and versions with the finding that is right for them, held against `assay doctor`.

Each case says where its truth comes from: a published wheel (read as source), a pull request or an issue. The program
prints a table of the misses and ends with 1 when there is one.

    python benchmarks/doctor_cases.py [--all]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

from assay.api.doctor import Question, doctor

SGLANG = "python -m sglang.launch_server --model-path M "
VLLM = "vllm serve M "
GLM: dict[str, Any] = {"model": "glm-5-nvfp4", "gpu": "RTX-PRO-6000", "gpus": 8}
H100: dict[str, Any] = {"gpu": "H100-SXM", "gpus": 8}


@dataclass(frozen=True, slots=True)
class Case:
    """One flag of one version."""

    engine: str
    version: str
    flags: str
    flag: str
    """The one that the finding is about."""
    kind: str
    """`clean`: no finding but, perhaps, that it is the default."""
    says: str
    """In the finding's words, remedy or replacement; empty: anything."""
    source: str
    machine: tuple[tuple[str, Any], ...] = ()


def s(version: str, flags: str, flag: str, kind: str, says: str, source: str, **machine: Any) -> Case:
    return Case("sglang", version, SGLANG + flags, flag, kind, says, source, tuple(machine.items()))


def v(version: str, flags: str, flag: str, kind: str, says: str, source: str, **machine: Any) -> Case:
    return Case("vllm", version, VLLM + flags, flag, kind, says, source, tuple(machine.items()))


DEAD = "--num-continuous-decode-steps"
PIECEWISE = "--enable-piecewise-cuda-graph"
SBO = "--enable-single-batch-overlap"
TBO = "--enable-two-batch-overlap"
MSCCLPP = "--enable-mscclpp"
COMPILATION = "--compilation-config"
SPECULATIVE = "--speculative-config"

CASES = [
    # SGLang 0.5.4
    s("0.5.4", f"{DEAD} 16", DEAD, "dead", "reads it", "13 wheels 0.3.6..0.5.23: no reader"),
    s("0.5.4", PIECEWISE, PIECEWISE, "clean", "", "wheel 0.5.4; sglang#10062"),
    s("0.5.4", "--enable-ep-moe", "--enable-ep-moe", "dead", "--ep-size", "wheel 0.5.4: prints a deprecation only"),
    s("0.5.4", "--enable-deepep-moe", "--enable-deepep-moe", "dead", "deepep", "wheel 0.5.4"),
    s("0.5.4", "--enable-triton-kernel-moe", "--enable-triton-kernel-moe", "dead", "triton_kernel", "wheel 0.5.4"),
    s("0.5.4", "--fp4-gemm-backend cudnn", "--fp4-gemm-backend", "not-yet", "", "wheels: 0.5.8 has it"),
    s("0.5.4", "--nsa-decode-backend fa3", "--nsa-decode-backend", "clean", "", "wheels"),
    s("0.5.4", "--dsa-decode-backend fa3", "--dsa-decode-backend", "not-yet", "--nsa-decode-backend", "wheel 0.5.16"),
    s("0.5.4", "--sm-group-num 4", "--sm-group-num", "dead", "", "wheel 0.5.4: declared, read by no file"),
    s("0.5.4", "--oltp-traces-endpoint x:4317", "--oltp-traces-endpoint", "clean", "", "wheels"),
    s("0.5.4", f"--tp-size 4 {MSCCLPP}", MSCCLPP, "inert", "8 or 16", "pymscclpp.py: _SUPPORTED_WORLD_SIZES"),
    s("0.5.4", SBO, SBO, "inert", "exchange", "sglang#9660; single_batch_overlap.py"),
    s("0.5.4", "--speculative-algorithm DFLASH", "--speculative-algorithm", "bad-value", "0.5.11", "wheel 0.5.11"),
    s("0.5.4", "--max-num-seqs 64", "--max-num-seqs", "unknown", "--max-running-requests", "vLLM's name"),
    # SGLang 0.5.9
    s("0.5.9", f"{DEAD} 16", DEAD, "dead", "reads it", "13 wheels: no reader"),
    s("0.5.9", "--enable-ep-moe", "--enable-ep-moe", "renamed", "--ep-size", "wheels: last in 0.5.4"),
    s("0.5.9", "--enable-flashinfer-cutlass-moe", "--enable-flashinfer-cutlass-moe", "renamed",
      "--moe-runner-backend flashinfer_cutlass", "wheels 0.5.4 and 0.5.5"),
    s("0.5.9", "--oltp-traces-endpoint x", "--oltp-traces-endpoint", "renamed", "--otlp-traces-endpoint", "0.5.6"),
    s("0.5.9", "--disable-piecewise-cuda-graph", "--disable-piecewise-cuda-graph", "not-yet", "", "wheel 0.5.12"),
    s("0.5.9", "--cuda-graph-max-bs-decode 64", "--cuda-graph-max-bs-decode", "not-yet", "--cuda-graph-max-bs",
      "wheel 0.5.14"),
    s("0.5.9", f"--tp-size 8 {MSCCLPP} --max-running-requests 2048", MSCCLPP, "inert", "85 tokens",
      "1 MiB / (2 x 6144)", **GLM),
    s("0.5.9", f"--tp-size 8 {MSCCLPP}", MSCCLPP, "inert", "custom all-reduce", "parallel_state.py: order", **H100),
    s("0.5.9", SBO, SBO, "inert", "exchange", "single_batch_overlap.py", **GLM),
    s("0.5.9", TBO, TBO, "needs", "all-to-all", "server_args.py: raises ValueError"),
    s("0.5.9", "--tp-size 8 --max-running-requests 2048", "--max-running-requests", "capped", "each running",
      "314,304 tokens measured at 0.92 (rtx6kpro)", **GLM),
    s("0.5.9", "--attention-backend fa3", "--attention-backend", "needs", "9.0", "attention_registry.py", **GLM),
    s("0.5.9", "--enable-hierarchical-cache --disable-radix-cache", "--enable-hierarchical-cache", "contradiction", "",
      "server_args.py: mutually exclusive"),
    s("0.5.9", "--tp-size 8 --ep-size 4 --moe-a2a-backend deepep", "--ep-size", "substituted", "8",
      "server_args.py: ep_size = tp_size"),
    s("0.5.9", "--tp-size 8 --ep-size 4 --moe-runner-backend flashinfer_cutlass", "--moe-runner-backend",
      "contradiction", "--ep-size", "server_args.py: assertion"),
    s("0.5.9", f"{PIECEWISE} --quantization modelopt_fp4", PIECEWISE, "inert", "fp4_quantize", "flashinfer#2999"),
    s("0.5.9", "--schedule-policy fcfs", "--schedule-policy", "default", "", "wheel 0.5.9: fcfs"),
    s("0.5.9", "--schedule-policy lpm", "--schedule-policy", "clean", "", "wheel 0.5.9: schedule_policy.py"),
    s("0.5.9", "--schedule-policy lpm --disable-radix-cache", "--schedule-policy", "substituted", "fcfs",
      "wheel 0.5.9: schedule_policy.py"),
    s("0.5.9", "--mem_fraction_static 0.9", "--mem_fraction_static", "unknown", "--mem-fraction-static", "argparse"),
    s("0.5.9", "--tp 8", "--tp", "ambiguous", "read as --tp-size", "argparse takes unambiguous beginnings"),
    s("0.5.9", "--file-storage-path /x", "--file-storage-path", "dead", "", "wheel 0.5.9: read by no file"),
    # SGLang 0.5.12
    s("0.5.12", PIECEWISE, PIECEWISE, "deprecated", "", "wheel 0.5.12: deprecated, on by default"),
    s("0.5.12", "--disable-piecewise-cuda-graph", "--disable-piecewise-cuda-graph", "clean", "", "wheel 0.5.12"),
    s("0.5.12", f"{DEAD} 4", DEAD, "dead", "", "13 wheels"),
    s("0.5.12", "--piecewise-cuda-graph-max-tokens 2048 --moe-a2a-backend deepep",
      "--piecewise-cuda-graph-max-tokens", "inert", "switched off", "_handle_piecewise_cuda_graph"),
    s("0.5.12", "--enable-nan-detection", "--enable-nan-detection", "deprecated", "", "wheels"),
    s("0.5.12", "--enable-double-sparsity", "--enable-double-sparsity", "removed", "", "wheels: <= 0.5.9"),
    s("0.5.12", TBO, TBO, "needs", "all-to-all", "server_args.py"),
    s("0.5.12", "--triton-attention-reduce-in-fp32", "--triton-attention-reduce-in-fp32", "dead", "", "wheel 0.5.12"),
    s("0.5.12", "--speculative-adaptive", "--speculative-adaptive", "clean", "", "wheels"),
    # SGLang 0.5.23
    s("0.5.23", f"{DEAD} 16", DEAD, "dead", "", "13 wheels"),
    s("0.5.23", PIECEWISE, PIECEWISE, "renamed", "--cuda-graph-backend-prefill", "wheels"),
    s("0.5.23", "--cuda-graph-max-bs 64", "--cuda-graph-max-bs", "renamed", "--cuda-graph-max-bs-decode", "0.5.14"),
    s("0.5.23", "--cuda-graph-bs 1 2 4", "--cuda-graph-bs", "renamed", "--cuda-graph-bs-decode", "wheel 0.5.14"),
    s("0.5.23", "--nsa-prefill-backend fa3", "--nsa-prefill-backend", "renamed", "--dsa-prefill-backend", "0.5.16"),
    s("0.5.23", "--disable-piecewise-cuda-graph", "--disable-piecewise-cuda-graph", "renamed",
      "--cuda-graph-backend-prefill=disabled", "wheel 0.5.16"),
    s("0.5.23", "--torchao-config int4wo-128", "--torchao-config", "removed", "", "wheels"),
    s("0.5.23", "--stream-output", "--stream-output", "renamed", "--incremental-streaming-output", "wheel 0.5.12"),
    s("0.5.23", TBO, TBO, "needs", "data-parallel attention", "validation_hook.py"),
    s("0.5.23", f"--tp-size 4 {MSCCLPP}", MSCCLPP, "clean", "", "pymscclpp.py: 4 ranks since 0.5.21"),
    s("0.5.23", "--enable-dp-attention --dp-size 8 --tp-size 8", "--enable-dp-attention", "deprecated",
      "--attn-dp-size", "server_args.py"),
    s("0.5.23", "--spec-trace-dir /x", "--spec-trace-dir", "dead", "", "wheel 0.5.23: read by no file"),
    s("0.5.23", "--return-hidden-states", "--return-hidden-states", "substituted", "--return-hidden-states-mode",
      "argparse reads it as the beginning of a new flag"),
    s("0.5.23", "--disable-cuda-graph", "--disable-cuda-graph", "deprecated", "--cuda-graph-backend", "server_args.py"),
    s("0.5.23", "--schedule-policy dfs-weight --disable-radix-cache", "--schedule-policy", "substituted", "fcfs",
      "wheel 0.5.23: schedule_policy.py"),
    s("0.5.23", "--cuda-graph-config '{\"decode\": {\"max_seq_len\": 9}}'", "--cuda-graph-config", "unknown",
      "prefill.max_seq_len", "wheel 0.5.23: cuda_graph_config.py, ALLOWED_KEYS_PER_PHASE"),
    s("0.5.23", "--limit-mm-data-per-request '{\"images\": 1}'", "--limit-mm-data-per-request", "unknown", "image",
      "wheel 0.5.23: serving_hook.py, allowed_modalities"),
    # vLLM 0.11
    v("0.11.0", "--num-scheduler-steps 8", "--num-scheduler-steps", "removed", "V0", "wheels: last 0.9"),
    v("0.11.0", "--max-seq-len-to-capture 8192", "--max-seq-len-to-capture", "removed", "", "wheels"),
    v("0.11.0", "--guided-decoding-backend xgrammar", "--guided-decoding-backend", "deprecated",
      "--structured-outputs-config", "wheels; arg_utils.py"),
    v("0.11.0", "--all2all-backend pplx", "--all2all-backend", "not-yet", "", "wheels 0.11.0 and 0.11.2"),
    v("0.11.0", "--moe-backend triton", "--moe-backend", "not-yet", "", "wheels: 0.17"),
    v("0.11.0", "--disable-log-requests", "--disable-log-requests", "deprecated", "", "arg_utils.py"),
    v("0.11.0", "--enable-eplb", "--enable-eplb", "needs", "--enable-expert-parallel", "config: raises ValueError"),
    v("0.11.0", "--max-num-seqs 4096 --max-num-batched-tokens 2048", "--max-num-batched-tokens", "contradiction", "",
      "config: raises ValueError"),
    v("0.11.0", "--enable-auto-tool-choice", "--enable-auto-tool-choice", "needs", "--tool-call-parser", "cli_args.py"),
    v("0.11.0", "--swap-space 4", "--swap-space", "default", "", "config/cache.py: 4"),
    v("0.11.0", f"{COMPILATION}.pass_config.fuse_norm_quant true", f"{COMPILATION}.pass_config.fuse_norm_quant",
      "not-yet", "pass_config.enable_fusion", "wheels 0.11.2 and 0.12.0: class PassConfig"),
    v("0.11.0", f"{SPECULATIVE} '{{\"num_spec_tokens\": 3}}'", SPECULATIVE, "unknown", "leaves it out",
      "wheel 0.11.0: a dataclass of pydantic's that says nothing of other keys"),
    # vLLM 0.14
    v("0.14.0", "--guided-decoding-backend xgrammar", "--guided-decoding-backend", "renamed",
      "--structured-outputs-config.backend", "wheel 0.12.0"),
    v("0.14.0", "--rope-scaling {}", "--rope-scaling", "renamed", "--hf-overrides", "wheels: last 0.11"),
    v("0.14.0", "--task embed", "--task", "renamed", "--runner", "wheel 0.13.0"),
    v("0.14.0", "--cuda-graph-sizes 1 2", "--cuda-graph-sizes", "renamed", "--cudagraph-capture-sizes", "wheel 0.11.2"),
    v("0.14.0", "--all2all-backend pplx --enable-expert-parallel --data-parallel-size 2", "--all2all-backend", "clean",
      "", "config/parallel.py: pplx still runs"),
    v("0.14.0", "--disable-log-requests", "--disable-log-requests", "dead", "", "wheels 0.12..0.16: read by no file"),
    v("0.14.0", "--kv-offloading-backend native", "--kv-offloading-backend", "inert", "--kv-offloading-size",
      "config/cache.py"),
    v("0.14.0", "--num-redundant-experts 8", "--num-redundant-experts", "renamed", "--eplb-config", "wheel 0.10.2"),
    v("0.14.0", "--mem-fraction-static 0.9", "--mem-fraction-static", "unknown", "--gpu-memory-utilization",
      "SGLang's name"),
    v("0.14.0", f"{COMPILATION} '{{\"pass_config\": {{\"enable_noop\": true}}}}'", COMPILATION, "renamed",
      "pass_config.eliminate_noops", "wheels 0.12.0 and 0.13.0: class PassConfig"),
    v("0.14.0", f"{COMPILATION} '{{\"fuse_act_quant\": true}}'", COMPILATION, "unknown", "pass_config.fuse_act_quant",
      "wheel 0.14.0: classes CompilationConfig and PassConfig"),
    # vLLM 0.20
    v("0.20.0", "--all2all-backend naive", "--all2all-backend", "substituted", "allgather_reducescatter",
      "config/parallel.py"),
    v("0.20.0", "--all2all-backend pplx", "--all2all-backend", "substituted", "allgather_reducescatter",
      "config/parallel.py"),
    v("0.20.0", "--swap-space 4", "--swap-space", "removed", "", "wheels: last 0.17"),
    v("0.20.0", "--enable-dbo", "--enable-dbo", "needs", "deepep", "config/vllm.py: assertion"),
    v("0.20.0", "--numa-bind-nodes 0 1", "--numa-bind-nodes", "needs", "--numa-bind", "config/parallel.py"),
    v("0.20.0", "--gpu_memory_utilization 0.85", "--gpu_memory_utilization", "clean", "", "argparse_utils.py"),
    v("0.20.0", "--enforce-eager --cudagraph-capture-sizes 1 2", "--cudagraph-capture-sizes", "contradiction", "",
      "config/vllm.py"),
    v("0.20.0", "--calculate-kv-scales", "--calculate-kv-scales", "clean", "", "wheels: to 0.22"),
    v("0.20.0", "--tensor-parallel-size 8 --decode-context-parallel-size 3", "--decode-context-parallel-size",
      "contradiction", "divisor", "config/parallel.py"),
    v("0.20.0", f"{SPECULATIVE}.num-speculative-tokens 3", f"{SPECULATIVE}.num-speculative-tokens", "unknown",
      "num_speculative_tokens", "wheel 0.20.0: argparse_utils.py puts _ for - before the first dot only"),
    v("0.20.0", "--limit-mm-per-prompt '{\"image\": {\"heigth\": 8}}'", "--limit-mm-per-prompt", "unknown",
      "image.height", "wheel 0.20.0: config/multimodal.py"),
    # vLLM 0.33
    v("0.33.0", "--all2all-backend naive", "--all2all-backend", "substituted", "allgather_reducescatter", "wheels"),
    v("0.33.0", "--calculate-kv-scales", "--calculate-kv-scales", "removed", "", "wheels: last 0.22"),
    v("0.33.0", "--max-num-partial-prefills 2", "--max-num-partial-prefills", "removed", "", "wheels"),
    v("0.33.0", "--disable-cascade-attn", "--disable-cascade-attn", "dead", "no effect", "arg_utils.py"),
    v("0.33.0", "--mamba-cache-mode align", "--mamba-cache-mode", "dead", "no effect", "arg_utils.py"),
    v("0.33.0", "--monokernel", "--monokernel", "clean", "", "wheels"),
    v("0.33.0", "--max-seq-len-to-capture 8192", "--max-seq-len-to-capture", "renamed", "--max-cudagraph-capture-size",
      "wheels"),
    v("0.20.0", "--kv-cache-dtype fp9", "--kv-cache-dtype", "bad-value", "takes one of", "config/cache.py"),
    v("0.33.0", "--all2all-backend pplx", "--all2all-backend", "substituted", "allgather_reducescatter", "parallel.py"),
    v("0.33.0", "--async-scheduling --no-async-scheduling", "--async-scheduling", "repeated", "", "argparse"),
    v("0.33.0", f"{SPECULATIVE}.num-speculative-tokens 3", f"{SPECULATIVE}.num-speculative-tokens", "clean", "",
      "wheel 0.33.0: create_speculative_config takes keys with dashes"),
    v("0.33.0", "--override-generation-config '{\"max_tokens\": 9}'", "--override-generation-config", "unknown",
      "max_new_tokens", "wheel 0.33.0: config/model.py, available_params"),
    v("0.33.0", f"{SPECULATIVE} '{{\"method\": \"eaglee\"}}'", SPECULATIVE, "bad-value", "write eagle",
      "wheel 0.33.0: config/speculative.py, SpeculativeMethod"),
    v("0.33.0", f"{SPECULATIVE} '{{\"method\": \"medusa\"}}'", SPECULATIVE, "bad-value", "the last checked version",
      "wheels: SpeculativeMethod"),
    v("0.20.0", f"{SPECULATIVE}.method dspark", f"{SPECULATIVE}.method", "bad-value", "the first checked version",
      "wheels: SpeculativeMethod"),
    v("0.33.0", f"{COMPILATION} '{{\"mode\": 9}}'", COMPILATION, "bad-value", "VLLM_COMPILE, 3, not 9",
      "wheel 0.33.0: CompilationMode"),
    v("0.33.0", "-cc.cudagraph_capture_sizes '[1, \"two\"]'", "-cc.cudagraph_capture_sizes", "bad-value",
      "takes a whole number, not two", "wheel 0.33.0: list[int]"),
    v("0.33.0", "-cc.cudagraph_mode FULLL", "-cc.cudagraph_mode", "bad-value", "write FULL ", "CUDAGraphMode"),
    v("0.33.0", "-cc.cudagraph_mode full_and_piecewise -cc.mode 3", "-cc.cudagraph_mode", "clean", "",
      "config/compilation.py: names in any case of letters"),
    v("0.9.0", f"{SPECULATIVE} '{{\"method\": \"eaglee\"}}'", SPECULATIVE, "clean", "",
      "wheel 0.9.0: a plain dataclass checks no value"),
    v("0.33.0", "--kv-transfer-config '{\"kv_role\": \"kv_prodcer\", \"kv_port\": \"14579\"}'",
      "--kv-transfer-config", "bad-value", "kv_role takes one of", "wheel 0.33.0: config/kv_transfer.py"),
    s("0.5.23", "--cuda-graph-config '{\"prefill\": {\"backend\": \"tc_piecewise\"}}'", "--cuda-graph-config",
      "bad-value", "0.5.21 was the last", "wheels 0.5.21 and 0.5.23: ALLOWED_BACKENDS_PER_PHASE"),
    v("0.9.0", "--swap 4", "--swap", "ambiguous", "from 0.18.0 on no flag begins so", "wheels"),
    v("0.33.0", "--tensor_par 2", "--tensor_par", "ambiguous", "--tensor-parallel-size", "argparse; argparse_utils.py"),
    v("0.33.0", "--speculative-model x", "--speculative-model", "renamed", "--speculative-config", "before 0.9"),
]  # fmt: skip


def miss(case: Case) -> str | None:
    """Why the doctor is wrong about a case; None when it is right."""
    report = doctor(
        Question(words=[case.flags], engine_version=case.version, ask_installed=False, **dict(case.machine))
    )
    found = [finding for finding in report.findings if case.flag in finding.flags]
    told = [f"{one.kind}: {one.what} | {one.remedy} | {one.replacement}" for one in found]
    if case.kind == "clean":
        bad = [text for one, text in zip(found, told, strict=True) if one.kind != "default"]
        return f"told {bad[0]}" if bad else None
    right = [text for one, text in zip(found, told, strict=True) if one.kind == case.kind and one.flags[0] == case.flag]
    if any(case.says in text for text in right):
        return None
    return f"expected {case.kind} ({case.says}), told {told or 'nothing'}"


def main() -> int:
    """Run all cases and print what was missed, and the count by version."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="print the cases that are right, too")
    given = parser.parse_args()
    misses = {case: problem for case in CASES if (problem := miss(case)) is not None}
    for case in CASES:
        if case in misses or given.all:
            print(f"{'MISS' if case in misses else 'ok  '} {case.engine} {case.version} {case.flag}: "
                  f"{misses.get(case, case.kind)} [{case.source}]")  # fmt: skip
    versions = sorted({(case.engine, case.version) for case in CASES})
    for engine, version in versions:
        cases = [case for case in CASES if (case.engine, case.version) == (engine, version)]
        print(f"{engine} {version}: {sum(case not in misses for case in cases)} of {len(cases)}")
    print(f"in all: {len(CASES) - len(misses)} of {len(CASES)}")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
