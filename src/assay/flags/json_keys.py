"""Flags whose value is a JSON object: its keys, where the fields of the engine's classes are known; else nothing.

vLLM makes each such object a dataclass that takes no other key (`config/utils.py`), named after the flag:
`--kv-transfer-config` is a `KVTransferConfig`. Their fields are read from the source of an installed vLLM, and recorded
of one version.
"""

from __future__ import annotations

import ast
import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from assay.flags import versions
from assay.flags.history import DATA
from assay.flags.knowledge import Knowledge
from assay.flags.spec import FlagSpec
from assay.flags.values import is_open
from assay.records.doctor import Evidence, Finding, GivenFlag, Launch, Undecided

INSIDE = "keys and values inside were not checked"
VALUES = "values inside were not checked"
PLAIN = "a word in place of JSON was not checked"
WHOLE = frozenset({"none", "null", "true", "false", "{}", "[]"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The keys that objects take, by the name of their class in lower case."""

    of: Mapping[str, frozenset[str]]
    source: str


def recorded(engine: str, version: str) -> Fields | None:
    """What is recorded of this release; None where nothing is."""
    of = _records(engine).get(versions.release(version))
    return Fields(of=of, source=f"{engine} {version} wheel, config: fields of the dataclasses") if of else None


def of_package(package: Path) -> Fields | None:
    """The fields of the classes that refuse every other key, in the source of an installed vLLM."""
    found: dict[str, frozenset[str]] = {}
    for path in sorted((package / "config").glob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, SyntaxError):
            continue
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        found |= {node.name.lower(): _fields(node) for node in classes if _is_closed(node)}
    return Fields(of=found, source=f"{package / 'config'}: fields of the dataclasses") if found else None


def wrong_keys(launch: Launch, knowledge: Knowledge, fields: Fields | None) -> list[Finding]:
    """Keys that the engine's class does not have: it stops on them."""
    return [
        _wrong(flag, key, known, fields.source)
        for flag, spec, keys in _objects(launch, knowledge)
        if fields is not None and (known := fields.of.get(_class_of(spec)))
        for key in keys
        if key not in known
    ]


def unchecked(launch: Launch, knowledge: Knowledge, fields: Fields | None) -> list[Undecided]:
    """Flags with a value of which not all is known to be right."""
    told: dict[str, Undecided] = {}
    for flag, spec, keys in _objects(launch, knowledge):
        are_known = fields is not None and _class_of(spec) in fields.of
        reason = (VALUES if are_known else INSIDE) if keys or _has_form(flag) else PLAIN
        told.setdefault(flag.name, Undecided(rule="json-keys", flags=[flag.name], reason=reason))
    return list(told.values())


def _objects(launch: Launch, knowledge: Knowledge) -> Iterator[tuple[GivenFlag, FlagSpec, list[str]]]:
    """Flags with something inside, and the keys at the top of it."""
    for flag in launch.flags:
        found = knowledge.resolve(flag.name)
        if found.spec is None or found.spec.kind != "json":
            continue
        if found.key is not None:
            name = found.key.lstrip(".").partition(".")[0].rstrip("+").replace("-", "_")
            yield flag, found.spec, [name] if name.isidentifier() else []
        elif any(not is_open(value) and not _is_whole(value) for value in flag.values):
            yield flag, found.spec, _keys(flag.values[-1])


def _keys(value: str) -> list[str]:
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        return []
    return list(content) if isinstance(content, dict) else []


def _has_form(flag: GivenFlag) -> bool:
    return not flag.values or flag.values[0].lstrip().startswith(("{", "["))


def _is_whole(value: str) -> bool:
    """Whether there is nothing inside."""
    plain = "".join(value.split()).lower()
    return plain in WHOLE or plain.replace(".", "", 1).lstrip("+-").isdigit()


def _wrong(flag: GivenFlag, key: str, known: frozenset[str], source: str) -> Finding:
    near = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.6)
    return Finding(
        kind="bad-value",
        severity="error",
        flags=[flag.name],
        what=f"takes no key {key}{f'; nearest: {near[0]}' if near else ''}",
        evidence=[Evidence(source=source, basis="source")],
        remedy=f"write {near[0]} if that was meant" if near else "leave the key out",
    )


def _class_of(spec: FlagSpec) -> str:
    return spec.name.strip("-").replace("-", "")


def _is_closed(node: ast.ClassDef) -> bool:
    """Whether it is a class of vLLM's `@config`, which forbids other keys unless it is told otherwise."""
    marks = [ast.unparse(each) for each in node.decorator_list]
    return not node.bases and any(each.partition("(")[0] == "config" and "extra" not in each for each in marks)


def _fields(node: ast.ClassDef) -> frozenset[str]:
    given = [
        each for each in node.body if isinstance(each, ast.AnnAssign) and "ClassVar" not in ast.unparse(each.annotation)
    ]
    return frozenset(each.target.id for each in given if isinstance(each.target, ast.Name))


@cache
def _records(engine: str) -> Mapping[tuple[int, ...], Mapping[str, frozenset[str]]]:
    """By release."""
    path = DATA / f"{engine}_json_keys.json"
    if not path.exists():
        return {}
    content = json.loads(path.read_text(encoding="utf-8"))
    return {
        versions.release(version): {name: frozenset(keys) for name, keys in classes.items()}
        for version, classes in content.items()
    }
