"""Arguments that a line tells: names and values of options, in which no failure is stated, at whatever level."""

from __future__ import annotations

import re

HAS = ("Dumping ", "Args(", "Config(", "SchedulerOutput(", "Namespace(")
"""One of these is in every line that tells arguments."""
DUMP = re.compile(
    r"\bDumping (?:input data|scheduler (?:output|stats))\b.{0,80}?(?::|\bwith config: )"
    r"|\b(?:\w{0,30}(?:Engine|Server|Llm|LLM|Torch)Args|VllmConfig|ModelConfig|SchedulerOutput|Namespace)\("
)
"""From here on a line tells arguments: up to the bracket that closes them, or to its end."""
BRACKET = re.compile(r"[()]")


def without_arguments(body: str) -> str:
    """What a line says beside the first arguments that it tells."""
    found = DUMP.search(body) if any(each in body for each in HAS) else None
    if found is None:
        return body
    depth = 1
    for mark in BRACKET.finditer(body, found.end()):
        depth += 1 if mark.group() == "(" else -1
        if depth == 0 and found.group().endswith("("):
            is_empty = mark.start() == found.end()  # a call that is named, as in what Python says of its arguments
            return body if is_empty else f"{body[: found.end()]}...{body[mark.start() :]}"
    return f"{body[: found.end()]}..."
