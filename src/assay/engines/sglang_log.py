"""The shapes of an SGLang log: what a line says without its stamp, the facts it tells, where SGLang changes its mind.

A line is `[2026-01-02 03:04:05 TP0] Attention backend not set. Use flashinfer backend by default.`: the rank is there
where there are several, the level is not there at all. A stamp may follow a progress bar on its line. Lines of a server
that runs on end in figures of each batch.
"""

from __future__ import annotations

import re
from typing import Any

from assay.engines import told

LINE = re.compile(r"(?:^|(?<=\]))\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [A-Z]{2,4}\d+)*\] (?P<body>.*)$")
READY = re.compile(r"The server is fired up and ready to roll")
BATCH = re.compile(r"^(?:Prefill|Decode) batch\b")
FACTS = {
    "log.max_total_num_tokens": re.compile(r"max_total_num_tokens=(\d+)"),
    "log.max_running_requests": re.compile(r"max_running_requests=(\d+)"),
    "log.context_len": re.compile(r"context_len=(\d+)"),
    "log.attention_backend": re.compile(r"[Uu]s(?:e|ing) (\w+) (?:attention )?backend"),
    "log.weights_gb": re.compile(r"Load weight end\..*mem usage=([\d.]+) GB"),
    "log.decode_attention": re.compile(r"Using hybrid attention backend for decode and prefill: decode_backend=(\w+)"),
    "log.prefill_attention": re.compile(r"Using hybrid attention backend .*\bprefill_backend=(\w+)"),
    "log.kv_dtype": re.compile(
        r"(?:KV Cache (?:is allocated|VA upper bound)\. dtype|Using KV cache dtype): (?:torch\.)?(\w+)"
    ),
    "log.decode_graph": re.compile(
        r"Capture target (?:decode|verify) CUDA graph begin\. backend=(\w+)|Capture (cuda graph) begin"
    ),
    "log.largest_graph": re.compile(
        r"Capture (?:cuda graph bs |target (?:decode|verify) CUDA graph begin\..*\bbs=)\[(?:\d+, )*(\d+)\]"
    ),
    "log.model_class": re.compile(r"Load weight end\..*\btype=(\w+)"),
    "log.prefill_graph": re.compile(r"Capture target prefill CUDA graph begin\. backend=(\w+)"),
    "log.largest_prefill_graph": re.compile(
        r"Capture target prefill CUDA graph begin\..*\bnum_tokens=\[(?:\d+, )*(\d+)\]"
    ),
    "log.tree_cache": re.compile(r"Tree cache initialized: .*\bimpl=(\w+)"),
    "log.hierarchical": re.compile(r"Tree cache initialized: .*\b(?:hierarchical|hicache_attached)=(\w+)"),
    "log.deep_gemm": re.compile(r"Try DeepGEMM JIT Compiling for <(\w+)>"),
    "log.moe_config": re.compile(r"Using (default) MoE kernel config|Using MoE kernel config from (.+?)\.(?:\s|$)"),
    "log.cuda_graph_s": re.compile(
        r"Capture (?:target (?:decode|verify) CUDA|cuda) graph end\. (?:Time elapsed: |elapsed=)([\d.]+) s"
    ),
}
"""What the log tells of what came of the arguments; of several mentions the last counts.

Source of the wordings: SGLang 0.5.17 (a log of an H200, mem_cache/registry.py, fused_moe_triton_config.py), older logs,
and the wheels: the cache's type from 0.5.3 on, `hicache_attached` and the upper bound of a cache from 0.5.18 on, the
sizes of graphs from 0.4.7 to 0.5.21, mixed attention back ends from 0.4.10 on, DeepGEMM's kernels from 0.4.6 on."""
SEVERAL = frozenset({"log.kv_dtype", "log.moe_config", "log.deep_gemm"})
"""Told by each pool, kind of layer and kernel: all that were mentioned, as a list where they differ."""
SECOND_THOUGHT = re.compile(
    r"fall(?:ing|s)?[ -]?back|\bdisabl(?:ed|ing)\b|^Disable |\bignor(?:ed|es|ing)\b|"
    r"not (?:yet )?(?:supported|available|compatible)|incompatible|unsupported|has no effect|does not support|"
    r"\bis (?:re)?set to\b|\bis adjusted\b|\badjusted to\b|\boverrid(?:e|ing|den)\b|\bforc(?:ed|ing)\b|"
    r"automatically (?:set|enabled|disabled)|\bturn(?:ed|ing)? off\b|\bis deprecated\b",
    re.IGNORECASE,
)
CHATTER = re.compile(
    r"Endpoint '|packages/transformers/|transformers version|FutureWarning|FastAPIDeprecationWarning|"
    r"Ignore import error|torch_dtype|chat template|multimodal features",
    re.IGNORECASE,
)
"""Lines with such words that say nothing of what was asked."""
LONGEST = 600


def facts(text: str) -> dict[str, Any]:
    """What only the log tells of the configuration."""
    found: dict[str, Any] = {}
    for body in _bodies(text):
        for key, pattern in FACTS.items():
            if match := pattern.search(body):
                found[key] = told.noted(found.get(key) if key in SEVERAL else None, match)
    return found


def fallbacks(text: str) -> list[str]:
    """Lines in which the engine says that it does something else than asked, each once, without stamps."""
    found: dict[str, None] = {}
    for body in _bodies(text):
        if SECOND_THOUGHT.search(body) and not CHATTER.search(body) and not body.startswith("server_args="):
            found.setdefault(body[:LONGEST])
    return list(found)


def _bodies(text: str) -> list[str]:
    """What stamped lines say, and warnings that Python prints without a stamp; no batches."""
    bodies = []
    for line in text.splitlines():
        match = LINE.search(line)
        body = match["body"].strip() if match else line.strip() if "Warning: " in line else ""
        if body and not BATCH.match(body):
            bodies.append(body)
    return bodies
