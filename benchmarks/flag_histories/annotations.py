"""What kind of value a field's annotation makes of a flag, and which choices.

A list of objects is a list of texts: engines read each word by a function of their own (`name=path`, or JSON).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.flag_histories.constants import UNKNOWN, Source, last_word

PLAIN = frozenset({"int", "float", "str", "bool"})
DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Kind:
    """Of a value: `int`, `list:str`, `bool|str` (may stand alone), `json` ..."""

    name: str = "str"
    choices: tuple[Any, ...] | None = None
    is_text: bool = False
    """It says `str` itself: beside a `Literal` any text will do."""


TEXT = Kind(is_text=True)
OTHER = Kind()
"""A class that is given as a text."""
NONE = Kind("none")


def kind_of(source: Source, annotation: ast.expr | None, depth: int = 0) -> Kind:
    """The kind that an annotation stands for."""
    if annotation is None or depth > DEEPEST:
        return TEXT
    match annotation:
        case ast.Constant(value=None):
            return NONE
        case ast.Constant(value=str(text)):
            return _quoted(source, text, depth + 1)
        case ast.Name(id=name):
            return _named(source, name, depth + 1)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _either(source, [left, right], depth + 1)
        case ast.Subscript(value=base, slice=inside):
            return _subscript(source, annotation, last_word(base), inside, depth + 1)
    return OTHER


def _quoted(source: Source, text: str, depth: int) -> Kind:
    try:
        return kind_of(source, ast.parse(text, mode="eval").body, depth)
    except SyntaxError:
        return TEXT


def _named(source: Source, name: str, depth: int) -> Kind:
    if name in PLAIN:
        return TEXT if name == "str" else Kind(name)
    if name in {"dict", "Dict"}:
        return Kind("json")
    if name in source.constants:
        return kind_of(source, source.constants[name], depth)
    if name in source.classes:
        bases = map(ast.unparse, source.classes[name].bases)
        return OTHER if any("Enum" in base for base in bases) else Kind("json")
    return OTHER


def _subscript(source: Source, whole: ast.Subscript, base: str, inside: ast.expr, depth: int) -> Kind:
    parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    if base == "Optional":
        return _either(source, [inside, ast.Constant(None)], depth)
    if base == "Union":
        return _either(source, list(parts), depth)
    if base in {"Annotated", "A", "SkipValidation"}:
        return kind_of(source, parts[0], depth)
    if base == "Literal":
        choices = source.value(whole)
        return Kind("str", None if choices is UNKNOWN else tuple(choices))
    if base in {"list", "List", "tuple", "Tuple", "set", "Sequence"}:
        one = kind_of(source, parts[0], depth)
        return Kind("list:str" if one.name == "json" else f"list:{one.name}", one.choices)
    return Kind("json") if base in {"dict", "Dict", "Mapping"} else OTHER


def _either(source: Source, parts: list[ast.expr], depth: int) -> Kind:
    found = [one for one in (kind_of(source, part, depth) for part in parts) if one.name != "none"]
    names = [one.name for one in found]
    if not found:
        return TEXT
    if "bool" in names:
        return Kind("bool" if len(found) == 1 else "bool|" + next(name for name in names if name != "bool"))
    if any(one.choices is not None for one in found):
        return _of_choices(found)
    if len(set(names)) == 1:
        return replace(found[0], is_text=any(one.is_text for one in found))
    return Kind("float") if set(names) <= {"int", "float"} else TEXT


def _of_choices(found: list[Kind]) -> Kind:
    """Of several alternatives those that are lists of choices count, unless any text will do.

    Source: vLLM 0.26.0, engine/arg_utils.py, `literal_to_kwargs`: choices, but beside `str` only a hint in the help.
    """
    if any(one.is_text for one in found):
        return TEXT
    choices = dict.fromkeys(value for one in found for value in one.choices or ())
    return Kind(next(one.name for one in found if one.choices is not None), tuple(choices))
