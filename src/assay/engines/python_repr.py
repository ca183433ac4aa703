"""Configurations as Python prints them into a log, read without evaluating anything.

`a=1, b=Config(c=None, d=[1, 2]), e={'f': <Mode.FULL: 2>}` becomes `{"a": 1, "b.d": "[1, 2]", "e.f": "FULL"}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

OPENING, CLOSING = "([{<", ")]}>"
MOST_CHARACTERS = 200_000
DEEPEST = 6
_CALL = re.compile(r"^[A-Za-z_][\w.]*\((.*)\)$", re.DOTALL)
_ENUM = re.compile(r"^<[\w.]*?\.?(\w+): .*>$", re.DOTALL)
_PAIR = re.compile(r"""^\s*(?:(['"])(?P<quoted>[^'"]+)\1\s*:|(?P<bare>[A-Za-z_]\w*)\s*=)\s*(?P<value>.*)$""", re.DOTALL)
_NOTHING = frozenset({"None", "null", "", "[]", "()", "{}"})


def pairs(text: str, prefix: str = "", depth: int = 0, *, between: str = ",") -> dict[str, Any]:
    """Values under dotted names; what is nothing (None, empty) is left out. Never raises.

    Args:
        text: as printed.
        prefix: of the names.
        depth: objects that it is in.
        between: what parts the outermost pairs: a blank in what pydantic makes of a model as text.
    """
    inner = text.strip()[:MOST_CHARACTERS]
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1]
    found: dict[str, Any] = {}
    for part in _parts(inner, between):
        match = _PAIR.match(part)
        if match is None:
            continue
        name = match["quoted"] or match["bare"]
        key = f"{prefix}.{name}" if prefix else name
        found |= _value(key, match["value"].strip(), depth)
    return found


def _value(key: str, text: str, depth: int) -> dict[str, Any]:
    if text in _NOTHING:
        return {}
    call = _CALL.match(text)
    if depth < DEEPEST and (call or text.startswith("{")):
        return pairs(call[1] if call else text, key, depth + 1)
    if enum := _ENUM.match(text):
        return {key: enum[1]}
    return {key: _scalar(text)}


def _scalar(text: str) -> Any:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if number == number and abs(number) != float("inf") else text  # noqa: PLR0124 - NaN
    return text


def _parts(text: str, between: str) -> Iterator[str]:
    """Between commas (or blanks) that are in no brackets and no quotation."""
    depth, start, quote = 0, 0, ""
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote and text[at - 1] != "\\" else quote
        elif character in "'\"":
            quote = character
        elif character in OPENING:
            depth += 1
        elif character in CLOSING:
            depth -= 1
        elif character == between and depth <= 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]
