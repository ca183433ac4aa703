"""JSON objects of a file, with typed fields and the place each stands at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from assay.errors import UsageError
from assay.load.workloads.files import MAX_S, MAX_TOKENS, HashedFile, malformed, shown

VALIDATE = "check the file with a JSON validator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One JSON object of a file, and where it stands."""

    path: str
    place: str
    """E.g. "line 3", "entry 17", "line 3, turns[1]"."""
    values: dict[str, Any]
    example: str
    """A good one, for the hint."""

    def fail(self, found: str, expected: str) -> NoReturn:
        """Refuse the row.

        Raises:
            UsageError: always.
        """
        raise malformed(self.path, self.place, found, expected, self.example)

    def has(self, *keys: str) -> bool:
        """Whether any of these keys has a value."""
        return any(self.values.get(key) is not None for key in keys)

    def value(self, *keys: str) -> Any:
        """The value of the first of these keys that has one."""
        if not self.has(*keys):
            self.fail(f"the keys {', '.join(map(shown, self.values)) or '(none)'}", f"a value for {_named(keys)}")
        return next(self.values[key] for key in keys if self.values.get(key) is not None)

    def text(self, *keys: str) -> str:
        """A text; half of a surrogate pair, which cannot be sent, becomes a question mark."""
        value = self.value(*keys)
        if not isinstance(value, str):
            self.fail(f"{shown(value)} as {_named(keys)}", "a text")
        return value.encode("utf-8", "replace").decode("utf-8")

    def tokens(self, *keys: str, low: int = 1) -> int:
        """A number of tokens."""
        value = self.value(*keys)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= MAX_TOKENS:
            self.fail(f"{shown(value)} as {_named(keys)}", f"a whole number from {low} to {MAX_TOKENS:,}")
        return value

    def seconds(self, key: str, *, unit: float = 1.0) -> float:
        """An instant or a duration, 0 or more, which the file gives in units of `unit` seconds."""
        value = self.value(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MAX_S:
            self.fail(f"{shown(value)} as {shown(key)}", "a number, 0 or more")
        return float(value) * unit

    def items(self, key: str) -> list[Any]:
        """A list."""
        value = self.value(key)
        if not isinstance(value, list):
            self.fail(f"{shown(value)} as {shown(key)}", "a list")
        return value

    def inner(self, key: str) -> list[Row]:
        """A list of objects, each as a row of its own."""
        return [
            _row(self.path, f"{self.place}, {key}[{at}]", item, self.example) for at, item in enumerate(self.items(key))
        ]

    def instant_s(self) -> float | None:
        """`at_s` in seconds, or `timestamp` in milliseconds (as Mooncake and AIPerf have it); None: it has neither."""
        if self.has("at_s"):
            return self.seconds("at_s")
        return self.seconds("timestamp", unit=1e-3) if self.has("timestamp") else None


def lines_as_rows(file: HashedFile, example: str) -> Iterator[Row]:
    """The objects of a JSONL file.

    Raises:
        UsageError: a line is not a JSON object.
    """
    for number, text in file.lines():
        yield _row(file.path, f"line {number}", parse_json(file.path, text, number), example)


def entries_as_rows(file: HashedFile, example: str) -> Iterator[Row]:
    """The objects of a JSON list, or of a JSONL file.

    Raises:
        UsageError: it is neither.
    """
    content = file.content()
    if content.lstrip()[:1] == "[":
        for number, value in enumerate(parse_json(file.path, content), 1):
            yield _row(file.path, f"entry {number}", value, example)
        return
    for number, text in enumerate(content.split("\n"), 1):
        if text.strip():
            yield _row(file.path, f"line {number}", parse_json(file.path, text, number), example)


def check_all_or_none(path: str, instants_s: Sequence[float | None]) -> None:
    """Refuse a file of which some requests have an instant and some have none.

    Raises:
        UsageError: this is one.
    """
    num_without = sum(at is None for at in instants_s)
    if 0 < num_without < len(instants_s):
        raise UsageError(
            f"{path}: found {num_without} of {len(instants_s)} requests without an instant, expected all or none",
            hint="give each row `at_s` (seconds) or `timestamp` (milliseconds), or none of them",
        )


def parse_json(path: str, text: str, first_line: int = 1) -> Any:
    """A JSON text that begins on the given line of a file.

    Raises:
        UsageError: it is not JSON (which has no NaN), or nested beyond reason.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {first_line + error.lineno - 1}, column {error.colno}"
        found = shown(error.doc[error.pos : error.pos + 20]) if error.pos < len(error.doc) else "the end of the text"
        raise UsageError(f"{path}, {place}: found {found}, expected JSON ({error.msg})", hint=VALIDATE) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path}, line {first_line}: found JSON that cannot be read ({error}), expected plain values", hint=VALIDATE
        ) from error


def _row(path: str, place: str, value: Any, example: str) -> Row:
    if not isinstance(value, dict):
        raise malformed(path, place, shown(value), "a JSON object", example)
    return Row(path=path, place=place, values=value, example=example)


def _named(keys: Sequence[str]) -> str:
    return " or ".join(map(shown, keys))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
