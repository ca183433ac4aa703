"""Reading the catalogue: one TOML file an optimization."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay.errors import UsageError
from assay.plan.expression import ExpressionError, parse
from assay.records.hypothesis import Optimization

Entry = list[Optimization]
"""One optimization as its variants: spellings of newer and older builds, in order of preference."""

DATA = Path(__file__).parent.parent / "data"
OF_AN_ENGINE = ("flags", "remove_flags", "artifact", "verify", "applies_when", "predicted", "expectation")
"""What a table [engines.<name>], or one of its variants, may hold."""
OF_AN_ENTRY = (*(key for key in Optimization.model_fields if key not in {"engine", "flags"}), "engines", "override")
WRAPPED = ("title", "mechanism", "rationale", "risk", "expectation", "applies_when")
"""Texts whose line ends in the file mean nothing."""
HINT = "docs/catalogue-entry.md shows a whole entry"


def builtin_folder() -> Path:
    """Assay's own entries."""
    return DATA / "optimizations"


def null_folder() -> Path:
    """Flags set to their defaults: a sound judge adopts none of them."""
    return DATA / "optimizations_null"


def load(folders: Sequence[Path], engine: str) -> list[Entry]:
    """Read every entry that speaks of an engine.

    Raises:
        UsageError: an entry is broken, or two have the same id (`override = true` in the later one allows that).
    """
    found: dict[str, tuple[Path, Entry]] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"there is no catalogue folder {folder}", hint="check policy.catalogue in assay.toml")
        for path in sorted(folder.glob("*.toml")):
            content = _read(path)
            override = content.pop("override", False)
            variants = _variants(path, content, engine)
            if not variants:
                continue
            known = found.get(variants[0].id)
            if known and override is not True:
                raise UsageError(
                    f"{path} and {known[0]} both define {variants[0].id!r}",
                    hint="rename one, or set `override = true` in yours",
                )
            found[variants[0].id] = (path, variants)
    return [variants for _, variants in found.values()]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint=HINT) from error
    _refuse_unknown(path, "", content, OF_AN_ENTRY)
    return content


def _refuse_unknown(path: Path, prefix: str, table: dict[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            told = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(known)}"
            raise UsageError(f"{path}: {prefix}{key} is no key of a catalogue entry", hint=told)


def _variants(path: Path, content: dict[str, Any], engine: str) -> Entry:
    engines = content.pop("engines", None)
    if not isinstance(engines, dict) or not all(isinstance(table, dict) for table in engines.values()):
        raise UsageError(f"{path} has no [engines.<name>] table", hint=HINT)
    if engine not in engines:
        return []
    own, place = dict(engines[engine]), f"engines.{engine}."
    alternatives = own.pop("variants", [{}])
    if not isinstance(alternatives, list) or not alternatives or not all(isinstance(one, dict) for one in alternatives):
        raise UsageError(f"{path}: {place}variants: want [[{place}variants]] tables", hint=HINT)
    for table in (own, *alternatives):
        _refuse_unknown(path, place, table, OF_AN_ENGINE)
    return [_optimization(path, {**content, "engine": engine, **own, **alternative}) for alternative in alternatives]


def _optimization(path: Path, fields: dict[str, Any]) -> Optimization:
    texts: dict[str, Any] = {key: " ".join(fields[key].split()) for key in WRAPPED if isinstance(fields.get(key), str)}
    if isinstance(dial := fields.get("dial"), dict) and isinstance(dial.get("estimate"), str):
        texts["dial"] = {**dial, "estimate": " ".join(dial["estimate"].split())}
    try:
        optimization = Optimization.model_validate({**fields, **texts})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        found = "" if first["type"] == "missing" else f" (found {first.get('input')!r})"
        raise UsageError(f"{path}: {key}: {first['msg']}{found}", hint=HINT) from error
    _check_expressions(path, optimization)
    low, high = optimization.predicted
    if not low <= high:
        raise UsageError(f"{path}: predicted: {low} is above {high}", hint="[low, high]: [-0.05, 0.1] is -5% to +10%")
    if not (optimization.flags or optimization.remove_flags or optimization.artifact or optimization.dial):
        raise UsageError(
            f"{path}: {optimization.id} changes nothing", hint="give flags, remove_flags, artifact or dial"
        )
    return optimization


def _check_expressions(path: Path, optimization: Optimization) -> None:
    """Refuse what cannot be parsed, before anything is planned on it."""
    computed = {
        f"flags.{name}": value[1:]
        for name, value in optimization.flags.items()
        if isinstance(value, str) and value.startswith("=")
    }
    for key, text in {"applies_when": optimization.applies_when, **computed}.items():
        try:
            parse(text)
        except ExpressionError as error:
            raise UsageError(f"{path}: {key}: {error.message}", hint=error.hint) from error
