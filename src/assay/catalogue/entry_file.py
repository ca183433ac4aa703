"""One catalogue entry out of its TOML file: what is common to all engines, and what each engine calls it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import ValidationError

from assay.catalogue.expressions import expressions_of
from assay.errors import UsageError
from assay.plan.expression import ExpressionError, parse
from assay.plan.proof import asked_of_the_arm
from assay.records.hypothesis import Optimization

Entry = list[Optimization]
"""One optimization as its variants: spellings of newer and older builds, in order of preference."""

OF_AN_ENGINE = (
    "flags", "remove_flags", "env", "versions", "artifact", "verify", "applies_when", "predicted", "numerics",
    "needs_work", "expectation", "risks", "reported", "regime", "regime_when", "excludes", "requires",
)  # fmt: skip
"""What a table [engines.<name>], or one of its variants, may hold; `variants` besides."""
ADDED = ("risks", "reported")
"""Lists of an engine's table that come after those of the entry, in place of replacing them."""
NOT_OF_AN_ENTRY = frozenset({"engine", "flags", "remove_flags", "env", "versions"})
"""Fields of an optimization that only an engine's table may give."""
OF_AN_ENTRY = (*(key for key in Optimization.model_fields if key not in NOT_OF_AN_ENTRY), "engines", "override")
WRAPPED = (
    "title", "mechanism", "rationale", "risk", "expectation", "applies_when", "regime", "regime_when", "needs_work",
)  # fmt: skip
"""Texts whose line ends in the file mean nothing."""
HINT = "docs/catalogue-entry.md shows a whole entry"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFile:
    """A whole file."""

    path: Path
    id: str
    override: bool
    """It may replace an entry of the same id from an earlier folder."""
    engines: Mapping[str, Entry]


def read_entry(path: Path) -> EntryFile:
    """Read one file and check everything in it that can be checked without an engine.

    Raises:
        UsageError: it is broken; file and key are named.
    """
    content = _content(path)
    override = content.pop("override", False) is True
    tables = content.pop("engines", None)
    if not isinstance(tables, dict) or not tables or not all(isinstance(one, dict) for one in tables.values()):
        raise UsageError(f"{path} has no [engines.<name>] table", hint=HINT)
    engines = {name: _variants(path, content, name, table) for name, table in tables.items()}
    return EntryFile(path=path, id=str(content.get("id")), override=override, engines=engines)


def _content(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint=HINT) from error
    _refuse_unknown(path, "", content, OF_AN_ENTRY)
    if key := next(_non_finite("", content), None):
        raise UsageError(f"{path}: {key} is no finite number", hint=HINT)
    return content


def _non_finite(key: str, value: Any) -> Iterator[str]:
    """Keys of infinities and NaN: no number of an entry may be one, and the record takes none."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield from _non_finite(f"{key}.{step}".lstrip("."), item)
    if isinstance(value, float) and not isfinite(value):
        yield key


def _refuse_unknown(path: Path, prefix: str, table: dict[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            told = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(known)}"
            raise UsageError(f"{path}: {prefix}{key} is no key of a catalogue entry", hint=told)


def _variants(path: Path, content: dict[str, Any], engine: str, table: dict[str, Any]) -> Entry:
    own, place = dict(table), f"engines.{engine}."
    alternatives = own.pop("variants", [{}])
    if not isinstance(alternatives, list) or not alternatives or not all(isinstance(one, dict) for one in alternatives):
        raise UsageError(f"{path}: {place}variants: want [[{place}variants]] tables", hint=HINT)
    for one in (own, *alternatives):
        _refuse_unknown(path, place, one, OF_AN_ENGINE)
    return [_optimization(path, _merged({**content, "engine": engine}, own, one)) for one in alternatives]


def _merged(*tables: dict[str, Any]) -> dict[str, Any]:
    """Later tables win; lists of risks and claims grow."""
    merged: dict[str, Any] = {}
    for table in tables:
        grown = {key: [*merged[key], *table[key]] for key in ADDED if _both_lists(merged.get(key), table.get(key))}
        merged |= {**table, **grown}
    return merged


def _both_lists(first: Any, second: Any) -> bool:
    return isinstance(first, list) and isinstance(second, list)


def _optimization(path: Path, fields: dict[str, Any]) -> Optimization:
    texts: dict[str, Any] = {key: " ".join(fields[key].split()) for key in WRAPPED if isinstance(fields.get(key), str)}
    if isinstance(dial := fields.get("dial"), dict) and isinstance(dial.get("estimate"), str):
        texts["dial"] = {**dial, "estimate": " ".join(dial["estimate"].split())}
    try:
        optimization = Optimization.model_validate({**fields, **texts})
    except ValidationError as error:
        raise _refused(path, error) from error
    _check_expressions(path, optimization)
    _check_proofs(path, optimization)
    _check_versions(path, optimization)
    low, high = optimization.predicted
    if not low <= high:
        raise UsageError(f"{path}: predicted: {low} is above {high}", hint="[low, high]: [-0.05, 0.1] is -5% to +10%")
    if not (optimization.risk or optimization.risks):
        raise UsageError(
            f"{path}: risk: missing", hint="say what can go wrong: `risk` in prose, or [[risks]] one by one"
        )
    if not _changes_something(optimization):
        raise UsageError(
            f"{path}: {optimization.id} changes nothing under {optimization.engine}",
            hint="give flags, remove_flags, env, artifact or dial; or needs_work, which says what has to be made first",
        )
    return optimization


def _refused(path: Path, error: ValidationError) -> UsageError:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    found = "" if first["type"] == "missing" else f" (found {first.get('input')!r})"
    return UsageError(f"{path}: {key}: {first['msg']}{found}", hint=HINT)


def _changes_something(optimization: Optimization) -> bool:
    given = (optimization.flags, optimization.remove_flags, optimization.env, optimization.artifact, optimization.dial)
    return any(given) or bool(optimization.needs_work)


def _check_versions(path: Path, optimization: Optimization) -> None:
    place, hint = f"{path}: engines.{optimization.engine}.versions", 'as pip writes them: ">=0.5.4,<0.5.14"'
    try:
        allowed = SpecifierSet(optimization.versions)
    except InvalidSpecifier as error:
        raise UsageError(f"{place}: {optimization.versions!r} is no version specifier", hint=hint) from error
    if allowed.is_unsatisfiable():
        raise UsageError(f"{place}: no version lies in {optimization.versions!r}", hint=hint)


def _check_proofs(path: Path, optimization: Optimization) -> None:
    """Refuse a `verify` that cannot be read, and one that asks for a flag or variable that the entry does not set."""
    try:
        asked = asked_of_the_arm(optimization.verify)
    except ValueError as error:
        raise UsageError(f"{path}: verify: {error}", hint=HINT) from error
    given = {*optimization.flags, *(f"${name}" for name in optimization.env)}
    given |= {knob.flag for knob in optimization.dial.knobs} if optimization.dial else set()
    if foreign := sorted(asked - given):
        raise UsageError(f"{path}: verify: the entry does not set {', '.join(foreign)}", hint=HINT)


def _check_expressions(path: Path, optimization: Optimization) -> None:
    """Refuse what cannot be parsed, before anything is planned on it."""
    for one in expressions_of(optimization):
        try:
            parse(one.text)
        except ExpressionError as error:
            raise UsageError(f"{path}: {one.key}: {error.message}", hint=error.hint) from error
