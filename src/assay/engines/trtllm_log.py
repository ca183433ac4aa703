"""The shapes of a TensorRT-LLM log: the facts it tells, and where it changes its mind.

Its Python says `[01/02/2026-03:04:05] [TRT-LLM] [W] ...`, newer versions with the rank before the level, or subsystem
and rank after it; its C++ `[TensorRT-LLM][WARNING] ...`.
"""

from __future__ import annotations

import re
from typing import Any

from assay.engines import told
from assay.engines.python_repr import pairs

LINE = re.compile(
    r"\[(?:TRT-LLM|TensorRT-LLM)\] ?(?:\[RANK \d+\] )?\[(?P<level>I|W|E|INFO|WARNING|ERROR)\] "
    r"(?:\[\w+ *\] ?)?(?:\[RANK \d+\] )?(?P<body>.*)$"
)
WARNINGS = frozenset({"W", "E", "WARNING", "ERROR"})
READY = re.compile(r"Application startup complete|Uvicorn running on |Server state: READY")
"""uvicorn's words, and those of `trtllm-serve` itself. Since 2026 it listens while it still loads, and answers 503 to
everything: that `/health` answers 200 is what counts. Source: TensorRT-LLM, serve/readiness.py."""
FACTS = {
    "log.kv_cache_tokens": re.compile(r"for max tokens in paged KV cache \((\d+)\)"),
    "log.kv_cache_gib": re.compile(r"Allocated ([\d.]+) GiB for max tokens in paged KV cache"),
    "log.max_seq_len": re.compile(r"\bmax_seq_len=(\d+), max_num_requests="),
    "log.max_num_requests": re.compile(r"\bmax_num_requests=(\d+), max_num_tokens="),
    "log.max_num_tokens": re.compile(r"\bmax_num_requests=\d+, max_num_tokens=(\d+)"),
    "log.max_batch_size": re.compile(r"\bmax_num_tokens=\d+, max_batch_size=(\d+)"),
    "log.largest_graph": re.compile(r"CUDA graph warmup for batch size=(\d+)"),
    "log.host_blocks": re.compile(r"\bsecondary blocks=([1-9]\d*)"),
    "log.memory_fraction": re.compile(r"\bfraction is set ([\d.]+), kv size"),
    "log.kv_dtype": re.compile(r'Validating KV Cache config against kv_cache_dtype="(\w+)"'),
    "log.sampler": re.compile(r"Using Sampler: (\w+)"),
    "log.chunked_prefill": re.compile(r"AttentionRuntimeFeatures\(chunked_prefill=(\w+)"),
    "log.cache_reuse": re.compile(r"AttentionRuntimeFeatures\(.*\bcache_reuse=(\w+)"),
    "log.draft_tokens": re.compile(r"AttentionRuntimeFeatures\(.*\bhas_speculative_draft_tokens=(\w+)"),
    "log.tokens_per_block": re.compile(r"Number of tokens per block: (\d+)"),
    "log.backend": re.compile(r"Using LLM with (\w+) backend"),
}
"""What only the log tells; of several mentions the largest: a cache of a few tokens is made first to measure.

The limits stand in one line, `max_seq_len=4097, max_num_requests=64, max_num_tokens=8192, max_batch_size=64`; defaults
of the same names stand in others. Source: TensorRT-LLM, _torch/pyexecutor/_util.py, `create_py_executor_instance`, and
py_executor_creator.py (features of attention, sampler); a published log of trtllm-serve 1.1.0rc3 (gpt-oss-120b)."""
EXECUTOR = re.compile(r"\bPyTorchConfig\((?P<pairs>.*)\)\s*$")
"""The executor's configuration, as the process that runs the model prints it. Source: the same log; versions from 1.2
on print their arguments in its place (`ARGUMENTS`)."""
OPTIONS = {
    "use_cuda_graph": "use_cuda_graph",
    "cuda_graph_max_batch_size": "cuda_graph_config.max_batch_size",
    "cuda_graph_padding_enabled": "cuda_graph_config.enable_padding",
    "moe_backend": "moe_config.backend",
    "moe_max_num_tokens": "moe_config.max_num_tokens",
    "kv_cache_dtype": "kv_cache_config.dtype",
    "torch_compile_piecewise_cuda_graph": "torch_compile_config.enable_piecewise_cuda_graph",
    "torch_compile_enabled": "torch_compile_enabled",
} | {
    name: name
    for name in (
        "attn_backend", "allreduce_strategy", "stream_interval", "disable_overlap_scheduler", "enable_autotuner",
        "enable_min_latency", "force_dynamic_quantization", "sampler_type", "print_iter_log", "enable_iter_perf_stats",
    )
}  # fmt: skip
"""Its names, and the options of the file that they come from."""
ARGUMENTS = re.compile(r"\] LLM Args:\s*(?P<pairs>.*)$")
"""All arguments, printed by the first rank when the executor is made; the values follow, or stand on the next line.

Source: TensorRT-LLM, _torch/pyexecutor/py_executor_creator.py, `create_py_executor` (since NVIDIA/TensorRT-LLM#9120 of
November 2025; not in 1.1). Fields that the executor changes for itself (the sizes of its cache) are left out below."""
TOLD = frozenset(
    {
        "tensor_parallel_size", "pipeline_parallel_size", "moe_expert_parallel_size", "enable_attention_dp",
        "num_postprocess_workers", "max_seq_len", "attn_backend", "allreduce_strategy", "stream_interval",
        "disable_overlap_scheduler", "enable_chunked_prefill", "moe_config.backend", "kv_cache_config.dtype",
        "cuda_graph_config.max_batch_size", "cuda_graph_config.enable_padding",
        "torch_compile_config.enable_piecewise_cuda_graph",
    }
)  # fmt: skip
"""Of these arguments, which are read: they carry the names of the options."""
SECOND_THOUGHT = re.compile(
    r"fall(?:ing|s)? ?back|\bdisabl(?:ed|ing)\b|\bignor(?:ed|es|ing)\b|not (?:yet )?supported|unsupported|"
    r"has no effect|does not support|overrid(?:e|ing|den)|\bforc(?:ed|ing)\b|\bclamped to\b|"
    r"\bset(?:ting)? .* to\b|will be (?:set|reduced)",
    re.IGNORECASE,
)
CHATTER = re.compile(r"Implicitly setting|Logger level|Using default gpus_per_node|timing cache")
LONGEST = 600


def facts(text: str) -> dict[str, Any]:
    """What the log tells of the configuration: facts after `log.`, options of the executor after `config.`."""
    found: dict[str, Any] = {}
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if printed := EXECUTOR.search(line):
            found |= _executor(printed["pairs"])
        if printed := ARGUMENTS.search(line):
            found |= _arguments(printed["pairs"] or "".join(lines[at + 1 : at + 2]))
        for key, pattern in FACTS.items():
            if match := pattern.search(line):
                value = _rounded(told.scalar(match[1]))
                before = found.get(key)
                found[key] = max(before, value) if isinstance(before, int | float) else value
    return found


def _executor(printed: str) -> dict[str, Any]:
    return {f"config.{OPTIONS[name]}": value for name, value in pairs(printed).items() if name in OPTIONS}


def _arguments(printed: str) -> dict[str, Any]:
    return {f"config.{name}": value for name, value in pairs(printed, between=" ").items() if name in TOLD}


def _rounded(value: Any) -> Any:
    """A share of the memory is printed in single precision: 0.8999999761581421."""
    return round(value, 6) if isinstance(value, float) else value


def fallbacks(text: str) -> list[str]:
    """Warnings in which the engine says that it does something else than asked, each once, without stamps."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        match = LINE.search(line)
        if match is None or match["level"] not in WARNINGS or CHATTER.search(match["body"]):
            continue
        if SECOND_THOUGHT.search(match["body"]):
            found.setdefault(match["body"].strip()[:LONGEST])
    return list(found)
