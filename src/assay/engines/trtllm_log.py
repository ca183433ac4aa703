"""The shapes of a TensorRT-LLM log: the facts it tells, and where it changes its mind.

Its Python says `[01/02/2026-03:04:05] [TRT-LLM] [W] ...`, newer versions with the subsystem after the level; its C++
`[TensorRT-LLM][WARNING] ...`.
"""

from __future__ import annotations

import re
from typing import Any

from assay.engines import told

LINE = re.compile(r"\[(?:TRT-LLM|TensorRT-LLM)\] ?\[(?P<level>I|W|E|INFO|WARNING|ERROR)\] (?:\[\w+ *\] )?(?P<body>.*)$")
WARNINGS = frozenset({"W", "E", "WARNING", "ERROR"})
READY = re.compile(r"Application startup complete|Uvicorn running on ")
"""uvicorn's words: `trtllm-serve` has none of its own."""
FACTS = {
    "log.kv_cache_tokens": re.compile(r"for max tokens in paged KV cache \((\d+)\)"),
    "log.kv_cache_gib": re.compile(r"Allocated ([\d.]+) GiB for max tokens in paged KV cache"),
    "log.max_seq_len": re.compile(r"\bmax_seq_len=(\d+), max_num_requests="),
    "log.max_num_requests": re.compile(r"\bmax_num_requests=(\d+), max_num_tokens="),
    "log.max_num_tokens": re.compile(r"\bmax_num_requests=\d+, max_num_tokens=(\d+)"),
    "log.tokens_per_block": re.compile(r"Number of tokens per block: (\d+)"),
    "log.backend": re.compile(r"Using LLM with (\w+) backend"),
}
"""What only the log tells; of several mentions the largest: a cache of a few tokens is made first to measure.

The limits stand in one line, `max_seq_len=4097, max_num_requests=64, max_num_tokens=8192`; defaults of the same names
stand in others. Source: TensorRT-LLM, _torch/pyexecutor/_util.py, `create_py_executor_instance`."""
SECOND_THOUGHT = re.compile(
    r"fall(?:ing|s)? ?back|\bdisabl(?:ed|ing)\b|\bignor(?:ed|es|ing)\b|not (?:yet )?supported|unsupported|"
    r"has no effect|does not support|overrid(?:e|ing|den)|\bforc(?:ed|ing)\b|\bclamped to\b|"
    r"\bset(?:ting)? .* to\b|will be (?:set|reduced)",
    re.IGNORECASE,
)
CHATTER = re.compile(r"Implicitly setting|Logger level|Using default gpus_per_node|timing cache")
LONGEST = 600


def facts(text: str) -> dict[str, Any]:
    """What the log tells of the configuration."""
    found: dict[str, Any] = {}
    for line in text.splitlines():
        for key, pattern in FACTS.items():
            if match := pattern.search(line):
                value = told.scalar(match[1])
                before = found.get(key)
                found[key] = max(before, value) if isinstance(before, int | float) else value
    return found


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
