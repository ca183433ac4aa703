"""The shapes of a llama.cpp log: how severe a line is, what it says without its stamp, which facts it tells."""

from __future__ import annotations

import re
from typing import Any

STAMPED = re.compile(r"^\d+\.\d+\.\d+\.\d+ ([A-Z]) (.*)$", re.DOTALL)
UNSTAMPED_WARNING = re.compile(r"^\s*warn(?:ing)?\b", re.IGNORECASE)
REMARKS = frozenset("IWD")
"""Levels of lines that report no failure: information, warning, debugging."""
ADDRESS = re.compile(r"0x[0-9a-f]+")
FACTS = {
    "log.n_threads": re.compile(r"llama threadpool init, n_threads = (\d+)"),
    "log.n_slots": re.compile(r"n_slots = (\d+)"),
    "log.n_ctx_slot": re.compile(r"n_ctx_slot = (\d+)"),
    "log.kv_unified": re.compile(r"kv_unified\s+= '?(\w+)"),
    "log.build": re.compile(r"build_info: (\S+)"),
    # The rest is said at `--verbosity 4` and above, or by builds that talk more.
    "log.n_batch": re.compile(r"llama_context: n_batch\s+= (\d+)"),
    "log.n_ubatch": re.compile(r"llama_context: n_ubatch\s+= (\d+)"),
    "log.flash_attention": re.compile(r"Flash Attention (?:was auto, set to )?(enabled|disabled)"),
    "log.kv_type_k": re.compile(r"llama_kv_cache: size = .*, K \((\w+)\)"),
    "log.kv_type_v": re.compile(r"llama_kv_cache: size = .*, V \((\w+)\)"),
}
FALLBACK = re.compile(
    r"falling back|fall ?back to|not supported|unsupported|has no effect|ignor(?:ed|ing)|disabl(?:ed|ing)|requires|"
    r"failed to (?:mlock|lock|set|initialize)|not enough|capping|overriding|forcing|"
    r"setting \w+ = .* to avoid|only .* node|will not be used|no usable",
    re.IGNORECASE,
)
SECURITY_ADVICE = re.compile(r"no API key|CORS")


def level(line: str) -> str | None:
    """`I`, `W`, `E` or `D`; None for a line without a stamp."""
    found = STAMPED.match(line)
    return found.group(1) if found else None


def plain(line: str) -> str:
    """The line without time and level."""
    found = STAMPED.match(line)
    return (found.group(2) if found else line).strip()


def is_remark(line: str) -> bool:
    """Whether the line reports no failure, by its level or its first word."""
    return level(line) in REMARKS or UNSTAMPED_WARNING.match(line) is not None


def facts(text: str) -> dict[str, Any]:
    """What only the log tells of the configuration, under `log.`; the last mention counts."""
    found: dict[str, Any] = {}
    for key, pattern in FACTS.items():
        if values := pattern.findall(text):
            found[key] = int(values[-1]) if values[-1].isdigit() else values[-1]
    return found


def fallbacks(text: str) -> list[str]:
    """Lines in which the engine says that it does something else than asked, each once, without stamps."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if level(line) in {"I", "D"} or not FALLBACK.search(line) or SECURITY_ADVICE.search(line):
            continue
        found.setdefault(ADDRESS.sub("", plain(line)), plain(line))
    return list(found.values())
