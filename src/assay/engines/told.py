"""What servers tell, made flat and plain: nested JSON under dotted keys, Prometheus text as numbers by name."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """`{"a": {"b": 1}}` as `{"a.b": 1}`; lists stay values."""
    if not isinstance(value, dict):
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, item in value.items():
        flat |= flatten(item, f"{prefix}.{key}" if prefix else str(key))
    return flat


def counters(text: str) -> dict[str, float]:
    """Prometheus text: each sample under its name and labels as the server spells them.

    Left out: what is no number (NaN and infinity are none), and when a counter was made (`_created`).
    """
    return {name: value for name, value in _samples(text) if not name.partition("{")[0].endswith("_created")}


def labels(text: str, metric: str) -> dict[str, str]:
    """The labels of a metric that only carries facts (`..._info`); of several series the first."""
    for name, _ in _samples(text):
        if name.partition("{")[0] == metric:
            return {key: value.replace('\\"', '"') for key, value in _LABEL.findall(name)}
    return {}


def scalar(text: str) -> int | float | str:
    """What a log's word says: `4,096` and `0.92` are numbers."""
    plain = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
    for kind in (int, float):
        try:
            return kind(plain)
        except ValueError:
            continue
    return text


def noted(before: Any, match: re.Match[str]) -> Any:
    """What a line tells (its first group that is there), beside what was noted before: a list where they differ.

    `True` and `False` are no texts.

    Args:
        before: None where only the last mention counts.
        match: of the line.
    """
    text = next(group for group in match.groups() if group is not None)
    value = text == "True" if text in ("True", "False") else scalar(text)
    known = before if isinstance(before, list) else [] if before is None else [before]
    if value in known:
        return before
    return [*known, value] if known else value


def json_object(value: object) -> dict[str, Any] | None:
    """A flag's value that is a JSON object, read; None for every other one."""
    try:
        content = json.loads(value) if isinstance(value, str) and value.lstrip().startswith("{") else None
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def shown(value: object) -> str:
    """A value as a command line has it: `true`, `8`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _samples(text: str) -> list[tuple[str, float]]:
    found = []
    for line in text.splitlines():
        name, _, word = line.strip().rpartition(" ")
        if not name or name.startswith("#"):
            continue
        try:
            value = float(word)
        except ValueError:
            continue
        if math.isfinite(value):
            found.append((name.strip(), value))
    return found
