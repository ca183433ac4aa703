"""Whether flags are in force, by the server's own word: what it reports, and what its warnings are about.

A flag is accused only where the server contradicts it. Values that leave the choice to the server ("auto", 0 threads)
cannot be contradicted.
"""

from __future__ import annotations

import re
from typing import Any

from assay.records.base import Flags, FlagValue

SPELLINGS = {
    "-t": "--threads", "-np": "--parallel", "-c": "--ctx-size", "-b": "--batch-size", "-ub": "--ubatch-size",
    "-ngl": "--gpu-layers", "--n-gpu-layers": "--gpu-layers", "-fa": "--flash-attn", "-sm": "--split-mode",
    "-lm": "--load-mode", "-ctk": "--cache-type-k", "-ctv": "--cache-type-v", "-C": "--cpu-mask", "-Cr": "--cpu-range",
    "-kvu": "--kv-unified", "-no-kvu": "--no-kv-unified", "-cram": "--cache-ram",
}  # fmt: skip
"""Short spellings of the flags below."""
REPORTED = {
    "--threads": "log.n_threads",
    "--parallel": "total_slots",
    "--cache-type-k": "log.kv_type_k",
    "--cache-type-v": "log.kv_type_v",
}
"""Flags whose value the server repeats."""
FLASH_ATTENTION = {"on": "enabled", "off": "disabled"}
SUBJECTS = {
    "--mlock": r"mlock",
    "--prio": r"(?:process|thread) priority",
    "--prio-batch": r"thread priority",
    "--cpu-mask": r"affinity|CPU mask",
    "--cpu-range": r"affinity|CPU mask",
    "--cpu-strict": r"affinity",
    "--ctx-size": r"slot context",
    "--batch-size": r"\bn_batch\b(?! \()",
    "--ubatch-size": r"setting n_ubatch\b",
    "--cache-type-k": r"\bK cache",
    "--cache-type-v": r"\bV cache",
    "--flash-attn": r"flash[-_ ]att",
}
"""How warnings call what a flag is about, where that is not the flag's own name."""
REASON = re.compile(r"\b(?:requires?|needs?)\b")
"""What follows is the condition that is missing, not what was given up."""
CHOSEN_BY_SERVER = frozenset({"auto", "all", ""})
SHORTEST_WORD = 4
"""Shorter values ("on", "row") occur in lines that are about something else."""


def contradiction(flags: Flags, effective: dict[str, Any], fallbacks: list[str]) -> str | None:
    """The first flag that the server's own word contradicts, with that word; None when there is none."""
    for spelling, value in flags.items():
        name = SPELLINGS.get(spelling, spelling)
        said = _warned_about(name, value, fallbacks) or _reported_otherwise(name, value, effective)
        if said is not None:
            return f"{spelling} {_shown(value)} is not in force: {said}"
    return None


def _reported_otherwise(name: str, value: FlagValue, effective: dict[str, Any]) -> str | None:
    if name == "--ctx-size":
        return _context(value, effective)
    if name == "--spec-type":
        return _speculation(value, effective)
    if name in {"--kv-unified", "--no-kv-unified"} and isinstance(value, bool):
        return _differs("log.kv_unified", str(value == (name == "--kv-unified")).lower(), effective)
    if name == "--flash-attn" and value in FLASH_ATTENTION:
        return _differs("log.flash_attention", FLASH_ATTENTION[str(value)], effective)
    if name in REPORTED and not _left_to_server(value):
        return _differs(REPORTED[name], value, effective)
    return None


def _differs(key: str, value: FlagValue, effective: dict[str, Any]) -> str | None:
    reported = effective.get(key)
    return None if reported is None or str(reported) == str(value) else f"the server reports {key} = {reported}"


def _context(value: FlagValue, effective: dict[str, Any]) -> str | None:
    """Slots share the context (unified) or divide it; the server rounds up, so only less than asked counts."""
    got, slots = effective.get("log.n_ctx_slot"), effective.get("total_slots")
    if _left_to_server(value) or not isinstance(got, int) or not isinstance(slots, int) or isinstance(value, str):
        return None
    asked = int(value) if effective.get("log.kv_unified") == "true" else int(value) // max(slots, 1)
    return f"each slot has {got} tokens of context, {asked} were asked for" if got < asked else None


def _speculation(value: FlagValue, effective: dict[str, Any]) -> str | None:
    """`/slots` tells it; `/props` says "none" even while drafts are being accepted."""
    speculates = effective.get("slots.speculative")
    wanted = any(kind.strip() not in {"none", ""} for kind in str(value).split(","))
    if not isinstance(speculates, bool) or speculates == wanted:
        return None
    return f"the server reports slots.speculative = {str(speculates).lower()}"


def _left_to_server(value: FlagValue) -> bool:
    if isinstance(value, str):
        return value.lower() in CHOSEN_BY_SERVER or (value.lstrip("-").isdigit() and int(value) <= 0)
    return not isinstance(value, bool) and value <= 0


def _warned_about(name: str, value: FlagValue, fallbacks: list[str]) -> str | None:
    subject = SUBJECTS.get(name) or r"(?<![\w-])(?:--)?" + re.sub("[-_]", "[-_ ]", name.strip("-")) + r"(?![\w-])"
    if isinstance(value, str) and len(value) >= SHORTEST_WORD and re.fullmatch(r"[A-Za-z][\w+-]*", value):
        subject += "|" + "|".join(rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in value.split("+"))
    return next((line for line in fallbacks if re.search(subject, REASON.split(line)[0], re.IGNORECASE)), None)


def _shown(value: FlagValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
