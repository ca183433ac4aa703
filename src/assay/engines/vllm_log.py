"""The shapes of a vLLM log: what a line says without its stamp, which facts it tells, where vLLM changes its mind.

A line is `(EngineCore pid=959) WARNING 11-30 14:18:43 [vllm.py:1703] Enforce eager set, ...`; the process in front is
missing before 0.11.
"""

from __future__ import annotations

import re
from typing import Any

from assay.engines import told
from assay.engines.python_repr import pairs

LINE = re.compile(
    r"^(?:\([^()]*pid=\d+\) )*(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) [\d-]+ [\d:.]+ \[[\w./]+:\d+\] (?P<body>.*)$"
)
CONFIGURATION = re.compile(r"Initializing a (?:V\d )?LLM engine \(v?[^)]*\) with config: (.*)$")
ARGUMENTS = re.compile(r"non-default args: (\{.*\})$")
FACTS = {
    "log.attention_backend": re.compile(
        r"Using (?:AttentionBackendEnum\.)?((?:(?! MoE| MLA prefill| Mamba)[\w ])+?) (?:attention )?backend"
        r"(?: out of| on V1|\.$| \(selected)"
    ),
    "log.moe_backend": re.compile(r"Using '?([\w ]+?)'? (?:\w+ )?MoE backend(?: out of|\.$)"),
    "log.moe_experts": re.compile(r"Using (\w+Experts\w*) MoE backend$"),
    "log.flash_attention": re.compile(r"Using FlashAttention version (\d)"),
    "log.all2all": re.compile(r"Using (\w+) all2all manager"),
    "log.all_reduce": re.compile(r"Using \[([^\]]*)\] all-reduce backends .* for group 'tp"),
    "log.sampler": re.compile(r"Using (FlashInfer) for top-p|FlashInfer top-p/top-k sampling (disabled|unavailable)"),
    "log.numa_nodes": re.compile(r"Binding .* to NUMA nodes (\S+)"),
    "log.breakable_graph": re.compile(r"\b(VLLM_USE_BREAKABLE_CUDAGRAPH) is set\b"),
    "log.kv_cache_tokens": re.compile(r"(?:GPU|CPU|XPU|TPU) KV cache size: ([\d,]+) tokens"),
    "log.kv_cache_requests": re.compile(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x"),
    "log.kv_cache_gib": re.compile(r"Available KV cache memory: ([\d.]+) GiB"),
    "log.weights_gib": re.compile(r"Model loading took ([\d.]+) GiB"),
    "log.cuda_graphs_gib": re.compile(r"Graph capturing finished in .* took (-?[\d.]+) GiB"),
    "log.max_model_len": re.compile(r"Using max model len (\d+)"),
    "log.async_scheduling": re.compile(r"Asynchronous scheduling is (enabled|disabled)"),
    "log.cpu_cores": re.compile(r"local_rank=0, core ids=\[([\d, ]*)\]"),
    "log.moe_config": re.compile(r"Using (default) MoE config|Using configuration from (.+) for MoE layer"),
}
"""What only the log tells; of several mentions the last counts.

Source of the wordings: vLLM 0.26.0 (platforms/cuda.py, fused_moe/oracle, topk_topp_sampler.py, cuda_communicator.py,
numa_utils.py), and logs of 0.11 to 0.33."""
SEVERAL = frozenset({"log.attention_backend", "log.moe_backend", "log.moe_experts", "log.moe_config"})
"""Told by each kind of layer, and by a draft model: all that were mentioned, as a list where they differ."""
SECOND_THOUGHT = re.compile(
    r"fall(?:ing|s)? ?back|fallback|not (?:yet )?(?:supported|available|installed|compatible)|unsupported|"
    r"(?:has|have|had) no effect|ignor(?:ed|es|ing)|disabl(?:ed|ing)|overrid(?:e|ing|den)|overwrit(?:e|ing|ten)|"
    r"\bforc(?:ed|ing)\b|; using | instead\b|\bwill not\b|cannot be used|\bresett?(?:ing)?\b|(?:re|in)creas(?:ed|ing)|"
    r"reduc(?:ed|ing)|\brequires?\b",
    re.IGNORECASE,
)
OF_INTEREST = re.compile(
    r"^Cannot use |fall(?:ing|s)? ?back|fallback|disabl(?:ed|ing)|has no effect|will be ignored", re.IGNORECASE
)
"""In a line of information only these words are a change of mind."""
CHATTER = re.compile(
    r"SECURITY WARNING|ulimit|LD_PRELOAD|\[shutdown\]|LoRA adapters|chat template|usage stat|Scale-out endpoints|"
    r"profiler disabled for|Auto-prefetch is disabled|log requests"
)
"""Lines with such words that say nothing of what was asked."""
ADVICE = re.compile(r"\b(?:Consider|Please|Try)\b.*$")
"""What a user could do: "Consider increasing ..." increases nothing."""
LONGEST = 600
MOE_PLUGIN = "assay_moe"
MOE_PLUGIN_FACT = f"log.{MOE_PLUGIN}"
MOE_PLUGIN_SAYS = re.compile(rf"\b{MOE_PLUGIN}: (not in force|falling back|active|registered)\b")
MOE_PLUGIN_STATES = ("not in force", "falling back", "active", "registered")
"""Of what Assay's expert kernel says of its layers, the first that occurs counts: one layer without it is too many."""


def facts(text: str) -> dict[str, Any]:
    """What the log tells of the configuration: its facts, the arguments it took, the configuration it began with."""
    found: dict[str, Any] = {}
    for line in text.splitlines():
        if match := ARGUMENTS.search(line):
            found |= pairs(match[1], "args")
        elif (match := CONFIGURATION.search(line)) and not any(key.startswith("engine.") for key in found):
            found |= pairs(match[1], "engine")
        else:
            for key, pattern in FACTS.items():
                if match := pattern.search(line):
                    found[key] = told.noted(found.get(key) if key in SEVERAL else None, match)
    return found


def moe_plugin(text: str, *, asked: bool) -> dict[str, str]:
    """Whether Assay's expert kernel runs, as the fact `log.assay_moe`; "silent": asked for, and said nothing.

    "registered" alone means that no layer of experts was ever handed to it.
    """
    said = {match[1] for line in text.splitlines() if (match := MOE_PLUGIN_SAYS.search(line))}
    state = next((state for state in MOE_PLUGIN_STATES if state in said), "silent" if asked else None)
    return {MOE_PLUGIN_FACT: state} if state else {}


def fallbacks(text: str) -> list[str]:
    """Lines in which the engine says that it does something else than asked, each once, without stamps."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        match = LINE.match(line)
        if match is None or CHATTER.search(match["body"]):
            continue
        wanted = OF_INTEREST if match["level"] in {"INFO", "DEBUG"} else SECOND_THOUGHT
        if wanted.search(ADVICE.sub("", match["body"])):
            found.setdefault(match["body"].strip()[:LONGEST])
    return list(found)
