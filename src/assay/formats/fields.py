"""A foreign JSON object, field by field: what is missing is None, a wrong type is an error that says where.

Unknown keys are never looked at; keys come and go with the versions of a tool.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.errors import UsageError

LARGEST = 1e20
"""A number beyond this is no time, count or rate (nanoseconds since the epoch are 2e18); it would overflow sums."""
LONGEST = 200
"""Characters kept of a text."""
HINT = "was the file edited, or is it of another tool? `--format` names the format that is meant"


def clean(text: str) -> str:
    """A foreign text as it can be printed and stored: no control codes, no half surrogates, not endless."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[:LONGEST])


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object, and where it stands."""

    data: Mapping[str, Any]
    file: str
    prefix: str = ""
    """What goes before a key to name its place: "benchmarks[0].metrics."."""

    def __contains__(self, key: str) -> bool:
        return self.data.get(key) is not None

    def number(self, key: str) -> float | None:
        """A finite number; None when missing, null or NaN (a mean over nothing).

        Raises:
            UsageError: it is something else, as in every method here.
        """
        value = self.data.get(key)
        return None if value is None or value != value else self._number(key, value)  # noqa: PLR0124 - NaN

    def count(self, key: str) -> int | None:
        """A whole number of things."""
        value = self.number(key)
        if value is not None and (value < 0 or value != int(value)):
            raise self.wrong(key, "a count", self.data[key])
        return None if value is None else int(value)

    def text(self, key: str) -> str | None:
        """A text, cleaned; None when it is empty."""
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.wrong(key, "a text", value)
        return clean(value) or None

    def child(self, key: str) -> Fields | None:
        """An object inside."""
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(key, "an object", value)
        return Fields(value, self.file, f"{self.prefix}{key}.")

    def inside(self, *keys: str) -> Fields:
        """An object several levels down; an empty one when any level is missing."""
        found: Fields = self
        for key in keys:
            found = found.child(key) or Fields({}, found.file, f"{found.prefix}{key}.")
        return found

    def glance(self, *keys: str) -> Fields:
        """As `inside`, for settings that are only shown: what is no object is passed over."""
        found: Fields = self
        for key in keys:
            value = found.data.get(key)
            found = Fields(value if isinstance(value, dict) else {}, found.file, f"{found.prefix}{key}.")
        return found

    def children(self, key: str) -> list[Fields] | None:
        """A list of objects."""
        found = []
        for place, value in enumerate(self._list(key) or []):
            if not isinstance(value, dict):
                raise self.wrong(f"{key}[{place}]", "an object", value)
            found.append(Fields(value, self.file, f"{self.prefix}{key}[{place}]."))
        return found if key in self else None

    def numbers(self, key: str) -> list[float] | None:
        """A list of finite numbers."""
        values = self._list(key)
        return None if values is None else self._numbers(key, values)

    def number_lists(self, key: str) -> list[list[float]] | None:
        """A list of lists of finite numbers."""
        values = self._list(key)
        if values is None:
            return None
        for place, value in enumerate(values):
            if not isinstance(value, list):
                raise self.wrong(f"{key}[{place}]", "a list of numbers", value)
        return [self._numbers(f"{key}[{place}]", value) for place, value in enumerate(values)]

    def texts(self, key: str) -> list[str] | None:
        """A list of texts, cleaned; null is empty."""
        values = self._list(key)
        if values is None:
            return None
        for place, value in enumerate(values):
            if value is not None and not isinstance(value, str):
                raise self.wrong(f"{key}[{place}]", "a text", value)
        return [clean(value or "") for value in values]

    def words(self, **names: str) -> dict[str, str | int | float]:
        """Settings by our names, from keys of the file; what is missing or no plain value is left out."""
        found: dict[str, str | int | float] = {}
        for name, key in names.items():
            value = self.data.get(key)
            if isinstance(value, str):
                found[name] = clean(value)
            elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST:
                found[name] = value
            elif isinstance(value, float) and value == float("inf"):
                found[name] = "inf"
        return found

    def label(self, *keys: str) -> str | None:
        """The first of these keys that holds a plain value, as text: for names and versions, which anybody may set."""
        found = (self.words(value=key).get("value") for key in keys)
        return next((str(value) for value in found if value not in {None, ""}), None)

    def wrong(self, key: str, wanted: str, found: object) -> UsageError:
        """The error that names file, key, what was wanted and what was found."""
        message = f"{self.file}: {self.prefix}{key}: {wanted} is wanted here, found {reprlib.repr(found)}"
        return UsageError(message, hint=HINT)

    def _list(self, key: str) -> list[Any] | None:
        value = self.data.get(key)
        if value is not None and not isinstance(value, list):
            raise self.wrong(key, "a list", value)
        return value

    def _number(self, key: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, "a number", value)
        if not abs(value) <= LARGEST:
            raise self.wrong(key, f"a number up to {LARGEST:.0e}", value)
        return float(value)

    def _numbers(self, key: str, values: list[Any]) -> list[float]:
        if all(type(value) is float and -LARGEST <= value <= LARGEST for value in values):
            return values
        return [self._number(f"{key}[{place}]", value) for place, value in enumerate(values)]
