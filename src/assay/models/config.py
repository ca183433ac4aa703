"""One config.json, key by key: a wrong value is an error that names key and file, an assumption is written down."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator
from typing import Any

from assay.errors import UsageError

LARGEST = 10**9
"""No width, vocabulary or count of a language model is larger; beyond it sums would mean nothing."""
MOST_LAYERS = 512


class Config:
    """A JSON object with typed access; `assumed` is shared with the objects inside."""

    def __init__(self, data: dict[str, Any], file: str, *, prefix: str = "", assumed: list[str] | None = None) -> None:
        self.data = data
        self.file = file
        self.prefix = prefix
        self.assumed: list[str] = [] if assumed is None else assumed
        self.used: set[str] = set()
        """Keys that were asked for; the others can be named when the architecture is not known."""

    def __contains__(self, key: str) -> bool:
        return self.data.get(key) is not None

    def first(self, *keys: str) -> str | None:
        """The first of these keys that has a value."""
        self.used.update(keys)
        return next((key for key in keys if key in self), None)

    def whole(self, *keys: str, least: int = 1, most: int = LARGEST) -> int | None:
        """A whole number under the first of these keys that has a value; None when none has.

        Raises:
            UsageError: it is something else, as in every method here.
        """
        key = self.first(*keys)
        if key is None:
            return None
        value = self.data[key]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(key, f"a whole number from {least} to {most}")
        return value

    def need(self, *keys: str, most: int = LARGEST) -> int:
        """As `whole`, for what cannot be assumed."""
        value = self.whole(*keys, most=most)
        if value is None:
            others = f" (nor {', '.join(keys[1:])})" if len(keys) > 1 else ""
            raise UsageError(
                f"{self.file} has no {self.prefix}{keys[0]}{others}, and it cannot be assumed",
                hint="is this the config.json of a decoder language model? add the key from the model's card",
            )
        return value

    def flag(self, *keys: str) -> bool | None:
        """True or false; None when no key has a value."""
        key = self.first(*keys)
        if key is None:
            return None
        if not isinstance(self.data[key], bool):
            raise self.wrong(key, "true or false")
        return bool(self.data[key])

    def text(self, *keys: str) -> str | None:
        """A text; None when no key has a value."""
        key = self.first(*keys)
        if key is None:
            return None
        if not isinstance(self.data[key], str):
            raise self.wrong(key, "a text")
        return str(self.data[key])

    def number(self, *keys: str) -> float | None:
        """A finite number that is not negative; None when no key has a value."""
        key = self.first(*keys)
        if key is None:
            return None
        value = self.data[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST:
            raise self.wrong(key, "a number that is not negative")
        return float(value) if math.isfinite(value) else None

    def listed(self, key: str) -> list[Any] | None:
        """A list; None when the key has no value."""
        self.used.add(key)
        if key not in self:
            return None
        if not isinstance(self.data[key], list):
            raise self.wrong(key, "a list")
        return list(self.data[key])

    def wholes(self, key: str) -> list[int] | None:
        """A list of whole numbers."""
        values = self.listed(key)
        if values is not None and not all(isinstance(value, int) and abs(value) <= LARGEST for value in values):
            raise self.wrong(key, "a list of whole numbers")
        return values

    def words(self, key: str) -> list[str] | None:
        """A list of texts."""
        values = self.listed(key)
        if values is not None and not all(isinstance(value, str) for value in values):
            raise self.wrong(key, "a list of texts")
        return values

    def child(self, key: str) -> Config | None:
        """An object inside; None when the key has no value."""
        if key not in self:
            return None
        if not isinstance(self.data[key], dict):
            raise self.wrong(key, "an object")
        return Config(self.data[key], self.file, prefix=f"{self.prefix}{key}.", assumed=self.assumed)

    def children(self, key: str) -> Iterator[Config]:
        """The objects inside an object, in order."""
        outer = self.child(key)
        for name in outer.data if outer else ():
            inner = outer.child(name) if outer else None
            if inner is not None:
                yield inner

    def wrong(self, key: str, wanted: str) -> UsageError:
        """What is raised about a value of the wrong sort."""
        return UsageError(
            f"{self.file}: {self.prefix}{key}: want {wanted}, found {shortly(self.data.get(key))}",
            hint="was the file edited or cut? fetch the model's config.json again",
        )

    def assume(self, sentence: str) -> None:
        """Write down, once, what the file did not say."""
        if sentence not in self.assumed:
            self.assumed.append(sentence)


def shortly(value: Any) -> str:
    """A foreign value as it can be printed: short, and no digits by the thousand."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST**3:
        return f"a number of {value.bit_length()} bits"
    return printable(reprlib.repr(value))


def printable(text: str, longest: int = 400) -> str:
    """A foreign text as it can be shown and stored: no control codes, no half surrogates, not endless."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[:longest])
