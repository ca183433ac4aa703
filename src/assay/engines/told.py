"""What servers tell, made flat: nested JSON under dotted keys, Prometheus text as numbers by name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

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


def total(samples: Mapping[str, float], metric: str) -> float | None:
    """A metric summed over its labels; None where there is none of that name."""
    values = [value for name, value in samples.items() if name.partition("{")[0] == metric]
    return sum(values) if values else None


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
