"""Whether flags are in force, by vLLM's own word: the configuration it reports, and what its warnings are about.

A flag is accused only where the server contradicts it. What it does not report proves nothing, and values that leave
the choice to the engine ("auto") cannot be contradicted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from assay.engines.same_value import Spelling
from assay.engines.told import flatten, json_object, shown
from assay.records.base import Flags, FlagValue

CONFIG_NAMES = {
    "kv_cache_dtype": "cache_dtype", "attention_backend": "attention_config.backend",
    "scheduling_policy": "scheduler_config.policy", "max_seq_len": "max_model_len",
    "device_memory_utilization": "gpu_memory_utilization", "max_model_len": "model_config.max_model_len",
}  # fmt: skip
"""Arguments whose place in the configuration has another name."""
NOT_COMPARED = frozenset({"tokenizer", "revision", "hf_token", "served_model_name", "load_format", "seed", "config"})
"""Paths and names that the engine resolves, or that say nothing of speed."""
SECTIONS = ("", "engine.")
"""Where a dotted name is looked for: `/server_info`, else the log's configuration."""
ECHOES = ("args.", "log.")
"""Arguments echo what was asked; the log's facts have names of their own."""
SAME = (
    {"none", "0"}, {"piecewise", "1"}, {"full", "2"}, {"full_decode_only", "[2, 0]", "(2, 0)"},
    {"full_and_piecewise", "[2, 1]", "(2, 1)"}, {"stock_torch_compile", "1"}, {"dynamo_trace_once", "2"},
    {"vllm_compile", "3"}, {"half", "float16"}, {"float", "float32"},
    {"fp8", "fp8_e4m3", "fp8_ds_mla"},
)  # fmt: skip
"""Spellings of one value: names of enumerations and their numbers, short names of types.

`fp8_ds_mla` is what becomes of FP8 for DeepSeek's sparse attention: E4M3 in a layout of its own. Source: vLLM,
model_executor/models/config.py and attention layers of DeepSeek V3.2 and V4."""
CHOSEN_BY_ENGINE = frozenset({"auto", "none", "", "null"})
SUBJECTS = {
    "--async-scheduling": r"async(?:hronous)?[- _]scheduling",
    "--enable-chunked-prefill": r"chunked[- _]prefill",
    "--enable-prefix-caching": r"prefix[- _]cach",
    "--enable-expert-parallel": r"expert[- _]parallel",
    "--enable-dbo": r"\bDBO\b|dual[- _]batch",
    "--kv-cache-dtype": r"kv[-_ ]cache[-_ ](?:dtype|quant)",
    "--cpu-offload-gb": r"cpu[-_ ]offload",
    "--speculative-config": r"speculative decoding|spec(?:ulative)? decode",
    "--attention-backend": r"attention[-_ ]?backend",
    "--enable-eplb": r"\bEPLB\b",
    "--compilation-config": r"torch\.compile\b",
    "--compilation-config.mode": r"torch\.compile\b",
    "--compilation-config.cudagraph_mode": r"cuda ?graph",
    "--optimization-level": r"torch\.compile\b",
    "--quantization": r"--quantization\b|quantization (?:method|config)",
    "--tensor-parallel-size": r"--tensor-parallel-size\b",
    "--api-server-count": r"--api-server-count\b",
}
"""How warnings call what a flag is about, where that is not the flag's own name, or its name's words say too little."""
REASON = re.compile(
    r"\b(?:requires?|needs?|to enable|you can|because|due to|since|when|based on|"
    r"not (?:yet )?supported (?:with|by|for|on|in|when)|(?:not (?:yet )?|in)compatible with)\b",
    re.IGNORECASE,
)
"""What follows is the condition that is missing, or advice: not what was given up."""
LEADING_REASON = re.compile(
    r"^(?:(?:since|because|due to|when|as)\b[^,]*|[^,;]*\b(?:set|enabled|given|specified|requested)),", re.IGNORECASE
)
"""A line that begins with its reason (also: what is set), and then says what is given up."""
SPELLING = Spelling("vllm", SAME)


def contradiction(flags: Flags, effective: dict[str, Any], fallbacks: list[str]) -> str | None:
    """The first flag that the server's own word contradicts, with that word; None when there is none."""
    for name, value in flags.items():
        said = _warned_about(name, value, fallbacks)
        for path, asked in _asked(name, value):
            said = said or _differs(path, asked, effective)
        if said is not None:
            return f"{name} {shown(value)} is not in force: {said}"
    return None


def _asked(name: str, value: FlagValue) -> Iterator[tuple[str, Any]]:
    """What a flag asks for, by its place in the configuration: every key of a JSON value by itself."""
    field, dot, key = name.lstrip("-").partition(".")
    field = field.replace("-", "_")
    if field.startswith("no_") and isinstance(value, bool):
        field, value = field[3:], not value
    if field in NOT_COMPARED:
        return
    content = json_object(value)
    if content is not None:
        yield from flatten(content, f"{field}.{key}" if dot else field).items()
    else:
        yield (f"{field}.{key}" if dot else CONFIG_NAMES.get(field, field)), value


def _differs(path: str, asked: Any, effective: Mapping[str, Any]) -> str | None:
    if str(asked).lower() in CHOSEN_BY_ENGINE or isinstance(asked, list | dict):
        return None
    places = _places(path, effective)
    if not places or any(_same(effective[key], asked) for key in places):
        return None
    return f"the server reports {places[0]} = {str(effective[places[0]]).lower()}"


def _places(path: str, effective: Mapping[str, Any]) -> list[str]:
    """Keys that tell of it: the path itself, else those that end in it."""
    exact = [prefix + path for prefix in SECTIONS if prefix + path in effective]
    return exact[:1] or [key for key in effective if key.endswith(f".{path}") and not key.startswith(ECHOES)]


def _same(reported: Any, asked: Any) -> bool:
    if SPELLING.same(reported, asked):
        return True
    # a class by its module: vllm.v1.attention.backends.flash_attn.FlashAttentionBackend
    return SPELLING.plain(asked) in SPELLING.plain(reported).split(".")


def _warned_about(name: str, value: FlagValue, fallbacks: list[str]) -> str | None:
    """A second thought about the flag's subject; a flag that turns something off is not contradicted by its absence."""
    if value is False or name.startswith("--no-"):
        return None
    words = "[-_ ]".join(re.split("[-_]", name.rpartition(".")[2].strip("-")))
    subject = SUBJECTS.get(name) or rf"(?<![\w-])(?:--)?{words}(?![\w-])"
    return next((line for line in fallbacks if re.search(subject, _given_up(line), re.IGNORECASE)), None)


def _given_up(line: str) -> str:
    """The part of a warning that names what is not done."""
    return REASON.split(LEADING_REASON.sub("", line))[0]
