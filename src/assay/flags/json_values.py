"""Whether a value fits a key of a JSON flag's object, as pydantic takes values that are not of the type itself.

Source: pydantic's conversion table (docs.pydantic.dev, concepts/conversion_table), lax mode: a number may be written as
text, true is 1, and a text is no list. What engines take for nothing (`null`) is never judged.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from assay.flags.values import as_number, is_open, shown

_BOOLEANS = frozenset({"0", "1", "true", "false", "yes", "no", "on", "off", "y", "n", "t", "f"})
_TITLES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "list": "a list",
    "object": "an object",
}
_BOUNDS: Mapping[str, tuple[str, Callable[[float, float], bool]]] = {
    "ge": ("at least", operator.ge),
    "gt": ("more than", operator.gt),
    "le": ("at most", operator.le),
    "lt": ("less than", operator.lt),
}
_WHOLE = re.compile(r"\s*[+-]?\d+(?:_\d+)*(?:\.0+)?\s*", re.ASCII)
"""A whole number as text: `1_000` and `8.0` are, `1e5` is none (tried with pydantic 2.14)."""
_END_OF_INTS = 2.0**63
"""Of a float that is taken for a whole number; larger ones are refused (tried likewise)."""
_LONGEST_QUOTED = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Takes:
    """What one key may hold."""

    types: tuple[str, ...] = ()
    choices: tuple[Any, ...] = ()
    loose: bool = False
    """Choices are taken in any case of letters, and with `-` for `_`."""
    bounds: tuple[tuple[str, float], ...] = ()
    items: Takes | None = None
    """What each entry of a list may be; None: not known."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self | None:
        """Out of a history's entry; None: nothing is known."""
        types, choices = tuple(row.get("types", ())), tuple(row.get("choices", ()))
        if not types and not choices:
            return None
        bounds = tuple((name, row[name]) for name in _BOUNDS if name in row)
        return cls(
            types=types,
            choices=choices,
            loose=bool(row.get("loose")),
            bounds=bounds,
            items=cls.of(row.get("items", {})),
        )

    def problem(self, value: Any) -> str | None:
        """Why a value is none; None where it fits, or where something else fills it in."""
        if value is None or (isinstance(value, str) and is_open(value)) or self._is_choice(value):
            return None
        if not any(_is_a(kind, value) for kind in self.types):
            return f"takes {self._title()}, not {_quoted(value)}"
        if isinstance(value, list) and self.items is not None:
            wrong = next((said for one in value if one is not None and (said := self.items.problem(one))), None)
            return f"holds an entry that is none: it {wrong}" if wrong else None
        number = as_number(value) if isinstance(value, str) else value
        if not isinstance(number, int | float):
            return None
        broken = [f"{_BOUNDS[name][0]} {bound:g}" for name, bound in self.bounds if not _BOUNDS[name][1](number, bound)]
        return f"takes {broken[0]}, not {_quoted(value)}" if broken else None

    def near(self, value: Any) -> str | None:
        """The choice that was probably meant."""
        texts = {_plain(one) if self.loose else str(one): str(one) for one in self.choices if isinstance(one, str)}
        given = _plain(value) if self.loose else str(value)
        found = difflib.get_close_matches(given, texts, n=1, cutoff=0.6) if isinstance(value, str) else []
        return texts[found[0]] if found else None

    def _is_choice(self, value: Any) -> bool:
        if not isinstance(value, str | int | float):
            return False
        plain = {_plain(one) for one in self.choices if isinstance(one, str)} if self.loose else set()
        return value in self.choices or _plain(value) in plain

    def _title(self) -> str:
        said = [_TITLES.get(kind, kind) for kind in self.types]
        told = f"one of {shown(tuple(map(str, self.choices)))}" if self.choices else ""
        return " or ".join([*said, *([told] if told else [])])


def _is_a(kind: str, value: Any) -> bool:
    match kind, value:
        case ("int", bool()) | ("float", bool() | int() | float()) | ("int", int()):
            return True
        case "int", float():
            return value.is_integer() and -_END_OF_INTS <= value < _END_OF_INTS
        case "int", str():
            return bool(_WHOLE.fullmatch(value))
        case "float", str():
            return _is_number(value)
        case "bool", bool() | int() | float():
            return value in {0, 1}
        case "bool", str():
            return value.lower() in _BOOLEANS
        case ("str", str()) | ("list", list()) | ("object", dict()):
            return True
    return kind not in _TITLES


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii()


def _plain(value: Any) -> str:
    return str(value).lower().replace("-", "_")


def _quoted(value: Any) -> str:
    """A value for people; of what holds others only that it does: these may be secrets."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _LONGEST_QUOTED else f"{text[:_LONGEST_QUOTED]}..."
