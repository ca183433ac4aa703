"""`assay.toml`: the campaign's question, read with errors that name the line and the key that was meant."""

from __future__ import annotations

import difflib
import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from assay.errors import UsageError
from assay.records.spec import CampaignSpec
from assay.store.atomic import atomic_write
from assay.store.canonical import spec_hash
from assay.store.disk import FORBIDDEN, HINT_UNREADABLE, disk_errors
from assay.store.redact import redact
from assay.store.spec_declared import filled
from assay.store.spec_text import spec_text

__all__ = ["read_spec", "spec_hash", "write_spec"]

Key = tuple[str | int, ...]


WANTED = {
    "url": 'an address such as "http://127.0.0.1:8000": no user, no question mark, no fragment',
    "api_key_env": 'the name of an environment variable, such as "TEAM_API_KEY", and not the key itself',
    "engine_version": 'a version, such as "0.5.9"',
    "image": 'a container image, such as "lmsysorg/sglang:v0.5.9"',
    "host": 'a name of ~/.ssh/config or an address, such as "me@gpu-box", without blanks',
    "gpus": '"all", or the numbers of GPUs, such as "0,1"',
    "name": 'small letters, digits and hyphens, such as "c64"',
}
"""What a field that has a pattern wants, in words."""
NO_TOML = (tomllib.TOMLDecodeError, RecursionError)
"""What `tomllib` raises: brackets in thousands exhaust its stack."""


def read_spec(path: Path, *, declared: CampaignSpec | None = None) -> CampaignSpec:
    """Read a spec; every problem in it is named at once.

    Args:
        path: the file.
        declared: of a campaign that exists, what its record says: it stands for what the file leaves out.

    Raises:
        UsageError: there is no such file, it is not TOML, or a key or value is wrong.
    """
    text = _text(path)
    try:
        data = tomllib.loads(text)
    except NO_TOML as error:
        raise UsageError(f"{path}: this is not TOML: {error}", hint="strings want quotes; lists are [1, 2]") from error
    problems = [f"{_place(path, text, key)}: {problem}" for key, problem in _non_finite((), data)]
    if not problems:
        try:
            # Strict, and by way of JSON: "8" is no number and 1 no true, but a list still makes a tuple.
            whole = data if declared is None else filled(data, declared)
            spec = CampaignSpec.model_validate_json(json.dumps(whole, default=_foreign), strict=True)
        except ValidationError as error:
            problems = _problems(error, path, text, data)
        else:
            impossible = {} if declared is not None else spec.contradictions()
            if not impossible:
                return spec
            problems = [f"{_place(path, text, key)}: {problem}" for key, problem in impossible.items()]
    raise UsageError("\n".join(problems), hint=f"correct {path.name}; `assay init` writes one with every key explained")


def write_spec(path: Path, spec: CampaignSpec, comments: Mapping[str, str] | None = None) -> None:
    """Write a spec as a commented file that teaches: each key with what it means and its default.

    Args:
        path: where; an existing file is never overwritten.
        spec: the values.
        comments: more to say, by dotted key ("target.flags"), printed above the key.

    Raises:
        UsageError: there is a file already.
        RecordError: it cannot be written.
    """
    if path.exists():
        raise UsageError(f"{path} exists already", hint="edit it, remove it, or choose another folder")
    with disk_errors(path, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, spec_text(spec, comments or {}).encode())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}: not UTF-8 text: {error.reason} at byte {error.start}", hint="save it as UTF-8"
        ) from error
    except OSError as error:
        hint = HINT_UNREADABLE if error.errno in FORBIDDEN else "`assay init` writes one"
        raise UsageError(f"{path}: cannot read it: {error.strerror}", hint=hint) from error


def _problems(error: ValidationError, path: Path, text: str, data: dict[str, Any]) -> list[str]:
    """One line for each wrong key; the branches of a union (a flag's value) fail together and are said once."""
    found: dict[Key, str] = {}
    for detail in error.errors():
        key = _existing(detail["loc"], data)
        found.setdefault(key, _said(key, detail["type"], detail["msg"].removeprefix("Value error, "), _at(data, key)))
    return [f"{_place(path, text, key)}: {problem}" for key, problem in found.items()]


def _said(key: Key, kind: str, message: str, value: Any) -> str:
    if kind == "extra_forbidden":
        known = _known_keys(key[:-1])
        near = difflib.get_close_matches(str(key[-1]), known, n=1, cutoff=0.5)
        return "unknown key; " + (f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}")
    if key[:2] == ("target", "flags") and len(key) > 2:  # noqa: PLR2004 - the key below the table
        return f"{value!r}: a flag's value is true, false, a number or a string"
    if kind == "string_pattern_mismatch":
        shown = "this" if key[-1] == "api_key_env" else repr(redact(value))  # who pastes the key itself is not shown it
        return f"{shown}: want {WANTED[str(key[-1])]}"
    return message if isinstance(value, dict) else f"{value!r}: {message[:1].lower()}{message[1:]}"


def _known_keys(table: Key) -> list[str]:
    model: type[BaseModel] = CampaignSpec
    for name in table:
        annotation = _without_none(model.model_fields[str(name)].annotation)
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        model = annotation
    return list(model.model_fields)


def _without_none(annotation: Any) -> Any:
    """The type of a table that may be absent."""
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 and type(None) in get_args(annotation) else annotation


def _existing(location: Key, data: Any) -> Key:
    """The part of a pydantic location that is in the file: the rest names types, not keys."""
    key: list[str | int] = []
    for step in location:
        is_item = isinstance(data, list) and isinstance(step, int) and step < len(data)  # pydantic counts missing ones
        present = step in data if isinstance(data, dict) else is_item
        if not present:
            break
        key.append(step)
        data = data[step]
    return tuple(key)


def _at(data: Any, key: Key) -> Any:
    for step in key:
        data = data[step]
    return data


def _non_finite(key: Key, value: Any) -> Iterator[tuple[Key, str]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield from _non_finite((*key, step), item)
    if isinstance(value, float) and not math.isfinite(value):
        yield key, f"{value}: want a finite number"


def _foreign(value: object) -> list[str]:
    """TOML's dates and times: nothing in a spec is one, so they go on as something that fits nowhere."""
    return [str(value)]


def _place(path: Path, text: str, key: Key) -> str:
    """`assay.toml:12: workload.windows`; without the line where the text hides it (inline tables)."""
    dotted = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in key).lstrip(".")
    names = tuple(step for step in key if isinstance(step, str))
    line = next((number for number, found in _keys_by_line(text) if found == names), None)
    return ": ".join([f"{path}:{line}" if line else str(path), *([dotted] if dotted else [])])


def _keys_by_line(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Each line that sets a key or opens a table, with the whole key; TOML's own parser reads the names."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("["):
            table = _parsed_key(line) or table
            yield number, table
        elif "=" in line and (name := _parsed_key(f"{line.partition('=')[0]} = 0")):
            yield number, (*table, *name)


def _parsed_key(line: str) -> tuple[str, ...]:
    try:
        value: Any = tomllib.loads(line)
    except NO_TOML:
        return ()
    names = []
    while isinstance(value, dict) and value:
        name, value = next(iter(value.items()))
        names.append(name)
    return tuple(names)
