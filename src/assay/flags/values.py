"""Whether a value is one that a flag takes, and what it is as a number."""

from __future__ import annotations

import json
import math
import re

from assay.flags.spec import FlagSpec, Scalar
from assay.records import sizes

_INTEGER = re.compile(r"^[+-]?\d{1,18}$")
_OBJECTS = ("-overrides", "-override-args", "-config", "-kwargs")
"""How names end of flags that take an object, or the name of one."""
_WORDS_FOR_NONE = frozenset({"none", "null", ""})
_MAX_SHOWN = 12
"""Choices that one line can hold."""


def misuse(spec: FlagSpec, values: list[str], engine: str, *, joined: bool = False) -> str | None:
    """Why the flag cannot take these words; None when it can.

    What a shell would fill in (`$PORT`, `{{ .port }}`) fits everything.

    Args:
        spec: the flag.
        values: the words.
        engine: whose it is: engines write large numbers each in its own way.
        joined: `--flag=value`.
    """
    if spec.is_switch:
        how = f"not {'=' if joined else ''}{values[0]}" if values else ""
        return f"takes no value, {how}" if values else None
    if not values:
        return None if spec.optional or spec.many else "needs a value"
    given = [value for value in values if not is_open(value)]
    for value in given:
        if problem := _wrong(spec, value, engine):
            return problem
    return None


def as_number(text: str) -> float | int | None:
    """A value as a number, if it is one."""
    if _INTEGER.match(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def same(value: str, default: Scalar | None) -> bool:
    """Whether a written value says the default: `0.90` is 0.9, `none` is nothing."""
    if default is None:
        return value.lower() in _WORDS_FOR_NONE
    if isinstance(default, bool):
        return value.lower() == str(default).lower()
    if isinstance(default, int | float):
        number = as_number(value)
        return number is not None and number == default
    return value == default


def shown(choices: tuple[str, ...]) -> str:
    """Choices for people; of many, the first ones."""
    if len(choices) <= _MAX_SHOWN:
        return ", ".join(choices)
    return f"{', '.join(choices[:_MAX_SHOWN])} and {len(choices) - _MAX_SHOWN} more"


def is_open(value: str) -> bool:
    """Whether something else fills it in: a shell, a template, a reader."""
    return any(mark in value for mark in ("$", "`", "{{")) or value.startswith("<")


def in_force(spec: FlagSpec, value: str, engine: str) -> Scalar:
    """What a value means: numbers as numbers, `16k` of a flag that takes sizes too."""
    number = sizes.whole(value, engine) if spec.kind == "size" else as_number(value)
    return value if number is None else number


def _wrong(spec: FlagSpec, value: str, engine: str) -> str | None:
    if value.lower() in spec.words:
        return None
    if spec.choices:
        return None if _is_choice(spec, value) else f"takes one of {shown(spec.choices)}, not {value}"
    if spec.kind == "int" and not _INTEGER.match(value.replace("_", "")) and not _absent(spec, value):
        return f"takes a whole number, not {value}"
    if spec.kind == "float" and as_number(value) is None and not _absent(spec, value):
        return f"takes a number, not {value}"
    if spec.kind == "size" and sizes.whole(value, engine) is None and not _absent(spec, value):
        return f"takes a whole number such as 8192 or 8k, not {value}"
    return _not_json(value) if spec.kind == "json" or _is_object(spec, value) else None


def _is_object(spec: FlagSpec, value: str) -> bool:
    """Whether a flag that is recorded as text is handed an object: engines parse these themselves."""
    return spec.kind == "str" and spec.name.endswith(_OBJECTS) and value.lstrip().startswith("{")


def _is_choice(spec: FlagSpec, value: str) -> bool:
    if value in spec.choices or (spec.loose and value.lower().replace("-", "_") in spec.choices):
        return True
    numbers = {as_number(choice) for choice in spec.choices} - {None}
    return as_number(value) in numbers or _absent(spec, value)


def _absent(spec: FlagSpec, value: str) -> bool:
    """Engines whose flag may be nothing read `None` as that."""
    return spec.default_known and spec.default is None and value.lower() in _WORDS_FOR_NONE


def _not_json(value: str) -> str | None:
    if not any(mark in value for mark in '{}[]"'):  # a number, or a name that stands for a whole configuration
        return None
    try:
        json.loads(value)
    except RecursionError:
        return "takes JSON, and this is nested too deeply to be read"
    except ValueError as error:
        return f"takes JSON, and this is none: {str(error)[:80]}"
    return None
