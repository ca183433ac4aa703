"""A file as JSON objects: one object, a list of them, or one a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.formats.fields import Fields

NOT_JSON = "give the JSON or JSONL file that the tool writes, not its printed table"


def read_documents(path: Path) -> list[Fields]:
    """The objects of a file, at least one.

    Raises:
        UsageError: it cannot be read, is no JSON, or holds no objects.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot read it: {error.strerror}", hint="name a result file") from error
    return parse(raw, str(path))


def parse(raw: bytes, file: str) -> list[Fields]:
    """The objects in bytes of JSON or JSON lines, at least one; `file` is their name in errors.

    Raises:
        UsageError: they are no JSON, or hold no objects.
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{file}: this is not UTF-8 text: {error.reason} at byte {error.start}"
        raise UsageError(message, hint=NOT_JSON) from error
    if not text.strip():
        raise UsageError(f"{file}: the file is empty", hint="was the run cut off before it was saved?")
    whole, problem = _loads(text)
    if problem:
        return _lines(text, file, problem)
    if isinstance(whole, list):
        return [_object(item, file, f"[{place}].") for place, item in enumerate(_not_empty(whole, file))]
    return [_object(whole, file, "")]


def _lines(text: str, file: str, whole_problem: str) -> list[Fields]:
    """One object a line. A newline alone ends it: texts inside may hold other line separators unescaped."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    found: list[Fields] = []
    for number, line in lines:
        value, problem = _loads(line)
        if problem and (len(lines) == 1 or not found):
            raise UsageError(f"{file}: this is not JSON: {whole_problem}", hint=NOT_JSON)
        if problem:
            hint = "was the run cut off while it wrote? remove that line to read the others"
            raise UsageError(f"{file}: line {number} is not JSON: {problem}", hint=hint)
        found.append(_object(value, file, f"line {number}: "))
    return found


def _loads(text: str) -> tuple[Any, str | None]:
    """The value, or what is wrong with the text."""
    try:
        return json.loads(text), None
    except json.JSONDecodeError as error:
        return None, f"{error.msg} at line {error.lineno}, column {error.colno}"
    except RecursionError:
        return None, "it is nested too deeply"
    except ValueError as error:  # an integer with thousands of digits
        return None, str(error)


def _not_empty(values: list[Any], file: str) -> list[Any]:
    if not values:
        raise UsageError(f"{file}: it holds an empty list", hint="was the run cut off before it was saved?")
    return values


def _object(value: Any, file: str, prefix: str) -> Fields:
    if not isinstance(value, dict):
        raise Fields({}, file).wrong(prefix.rstrip(".: ") or "the whole file", "a JSON object", value)
    return Fields(value, file, prefix)
