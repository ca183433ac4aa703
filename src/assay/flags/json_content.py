"""What is inside of a flag whose value is JSON: the object that it becomes, whole or in parts, and its entries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.flags.knowledge import Knowledge
from assay.flags.object_history import Objects
from assay.flags.spec import FlagSpec
from assay.flags.values import is_open
from assay.records.base import FlagValue
from assay.records.doctor import GivenFlag

WHOLE = frozenset({"none", "null", "true", "false", "{}", "[]"})
DEEPEST = 8
"""Classes inside of classes; no engine nests half as deep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A flag with something inside."""

    flag: GivenFlag
    spec: FlagSpec
    content: Mapping[str, Any] | None
    """None: it is no object that can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A key with its value, in an object of a known class."""

    path: str
    """Of the object, with a dot behind it; empty at the top."""
    key: str
    of: str
    """The object's class."""
    value: Any = None


def as_given(name: str, value: FlagValue) -> GivenFlag:
    """A flag of a configuration as a command gives it to a flag that takes JSON; true and false as JSON writes them."""
    return GivenFlag(name=name, values=[str(value).lower() if isinstance(value, bool) else str(value)])


def is_json(flag: GivenFlag, knowledge: Knowledge) -> bool:
    """Whether there may be something inside a flag: it holds JSON, or a key of one."""
    found = knowledge.resolve(flag.name)
    return found.spec is not None and (found.key is not None or any(one.lstrip()[:1] == "{" for one in flag.values))


def given_objects(flags: Sequence[GivenFlag], knowledge: Knowledge, objects: Objects | None) -> Iterator[Given]:
    """The flags that take JSON and are given something that has an inside."""
    for flag in flags:
        found = knowledge.resolve(flag.name)
        spec = found.spec
        if spec is None or (spec.kind != "json" and spec.name not in (objects.flags if objects else ())):
            continue
        if found.key is not None:
            yield Given(flag=flag, spec=spec, content=_dotted(flag, found.key))
        elif any(not is_open(value) and not _is_whole(value) for value in flag.values):
            yield Given(flag=flag, spec=spec, content=_object(flag.values[-1]))


def entries(content: Mapping[str, Any], of: str, objects: Objects, path: str = "") -> Iterator[Entry]:
    """Every entry of an object and of the objects in it whose class is known, under the key that the class has."""
    found = objects.classes.get(of)
    if found is None or path.count(".") > DEEPEST:
        return
    for key, value in content.items():
        plain = key.replace("-", "_")
        yield Entry(path=path, key=plain if found.dashes and plain in found.keys else key, of=of, value=value)
        inside = found.keys.get(plain if found.dashes else key)
        if inside and isinstance(value, dict):
            yield from entries(value, inside, objects, f"{path}{key}.")


def has_form(flag: GivenFlag) -> bool:
    """Whether a value looks like JSON."""
    return not flag.values or flag.values[0].lstrip().startswith(("{", "["))


def _dotted(flag: GivenFlag, key: str) -> Mapping[str, Any] | None:
    """`--flag.a.b value` as the object that it becomes; None for `-O3`."""
    if "." not in flag.name:
        return None
    content = None if key.endswith("+") or not flag.values else _parsed(flag.values[-1])
    for name in reversed(key.removesuffix("+").split(".")):
        content = {name: content}
    return content if isinstance(content, dict) else None


def _parsed(value: str) -> Any:
    """A part's value as vLLM takes it: JSON, else text."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _object(value: str) -> Mapping[str, Any] | None:
    content = _parsed(value)
    return content if isinstance(content, dict) else None


def _is_whole(value: str) -> bool:
    """Whether there is nothing inside."""
    plain = "".join(value.split()).lower()
    return plain in WHOLE or plain.replace(".", "", 1).lstrip("+-").isdigit()
