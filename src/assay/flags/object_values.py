"""What a key of a JSON flag's object may hold, read out of the annotation of its field.

Only what the class itself checks is told: the field of a dataclass of pydantic's, of a type that is written out, and
changed by no validator that is not one of the plain ones below. Everything else is unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

Takes = dict[str, Any]
"""As a history keeps it: `types` (of JSON), `choices`, `loose` (in any case of letters, `-` for `_`), bounds
(`ge`, `gt`, `le`, `lt`), and `items`: the same of each entry of a list. Empty: unknown."""
BOUNDS = ("ge", "gt", "le", "lt")
_TYPES = {
    **dict.fromkeys(("int", "PositiveInt", "NonNegativeInt"), "int"),
    **dict.fromkeys(("float", "PositiveFloat", "NonNegativeFloat"), "float"),
    **dict.fromkeys(("str", "Path"), "str"),
    **dict.fromkeys(("list", "List", "set", "Set", "frozenset", "tuple", "Tuple"), "list"),
    **dict.fromkeys(("dict", "Dict", "Mapping"), "object"),
    "bool": "bool",
    "None": "null",
}
_LISTS = frozenset({"list", "List", "set", "Set", "frozenset"})
_MOST_ALIASES = 12
"""Names of names that are followed."""


class _Unknown(Exception):  # noqa: N818 - no error: a reading that ends
    """An annotation that this text alone does not tell."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an annotation stands."""

    module: Path
    package: Path
    known: frozenset[str]
    """Classes of the configuration, which hold objects."""
    by_name: bool
    """A validator takes an enum's names."""
    depth: int = 0
    """Names that were followed so far."""


def takes(node: ast.AnnAssign, of: ast.ClassDef, module: Path, package: Path, known: frozenset[str]) -> Takes:
    """What a field takes.

    Args:
        node: its declaration.
        of: the class that declares it.
        module: the file that this stands in.
        package: the engine's folder.
        known: classes of the configuration, which hold objects.
    """
    names, loose = [], False
    for mark, function in _validators(of, ast.unparse(node.target)):
        changed = _changed(mark, function)
        if changed is None:
            return {}
        loose |= changed[0]
        names += changed[1]
    try:
        found = list(_alternatives(node.annotation, _Place(module, package, known, by_name=loose)))
    except _Unknown:
        return {}
    row = _row(found, names, loose=loose)
    return row | _bounds(node.value) if row else {}


def _row(found: Sequence[tuple[str, Any]], names: Sequence[str], *, loose: bool) -> Takes:
    types = sorted({one for kind, one in found if kind == "type"} - {"null"})
    choices = list(dict.fromkeys([*(one for kind, one in found if kind == "choice"), *names]))
    items = [one for kind, one in found if kind == "items"]
    row: Takes = {"types": types} if types else {}
    if choices and "str" not in types:
        row |= {"choices": choices} | ({"loose": True} if loose else {})
    return row | ({"items": items[0]} if len(items) == 1 and items[0] else {})


def _bounds(value: ast.expr | None) -> Takes:
    """`Field(gt=0)`."""
    words = value.keywords if isinstance(value, ast.Call) and ast.unparse(value.func) == "Field" else []
    given = {word.arg: word.value.value for word in words if isinstance(word.value, ast.Constant)}
    return {name: given[name] for name in BOUNDS if isinstance(given.get(name), int | float)}


def _validators(of: ast.ClassDef, field: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The mode (`before`, `wrap`, `after`) and the function of each validator that sees a field's value."""
    for function in (each for each in of.body if isinstance(each, ast.FunctionDef)):
        for mark in (each for each in function.decorator_list if isinstance(each, ast.Call)):
            kind = ast.unparse(mark.func)
            mode = next((ast.literal_eval(word.value) for word in mark.keywords if word.arg == "mode"), "after")
            fields = {each.value for each in mark.args if isinstance(each, ast.Constant)}
            if (kind == "field_validator" and fields & {field, "*"}) or (kind == "model_validator" and mode != "after"):
                yield f"{kind} {mode}", function


def _changed(mark: str, function: ast.FunctionDef) -> tuple[bool, list[str]] | None:
    """What a validator makes of a text before it is checked; None: something else.

    Returns:
        Whether case does not count (`Enum[value.upper()]`, `value.lower().replace("-", "_")`), and the words that
        mean nothing (`if value.lower() == "auto": return None`).
    """
    if mark.endswith(" after"):
        return False, []
    text = ast.unparse(function)
    if mark == "field_validator wrap":
        is_plain = "return handler(value)" in text and text.count("return") == 2 and "value is None" in text  # noqa: PLR2004
        return (False, []) if is_plain else None
    inner = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    told = {ast.unparse(node.value) for node in inner if node.value is not None} - {"value", "None"}
    is_text = mark == "field_validator before" and "isinstance(value, str)" in text and len(told) == 1
    if not is_text or not any(one in text for one in (".upper()", ".lower().replace('-', '_')")):
        return None
    if not next(iter(told)).endswith((".upper()]", "_name]", ".lower().replace('-', '_')")):
        return None
    words = [
        str(each.value)
        for node in ast.walk(function)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq)
        for each in node.comparators
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    return True, words


def _alternatives(node: ast.expr, at: _Place) -> Iterator[tuple[str, Any]]:
    """The types and choices that an annotation allows; raises `_Unknown` where one of them is not told."""
    match node:
        case ast.Constant(value=None):
            yield "type", "null"
        case ast.Constant(value=str(text)):
            try:
                yield from _alternatives(ast.parse(text, mode="eval").body, at)
            except SyntaxError:
                raise _Unknown from None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _alternatives(left, at)
            yield from _alternatives(right, at)
        case ast.Subscript(value=base, slice=of):
            parts = of.elts if isinstance(of, ast.Tuple) else [of]
            yield from _subscript(ast.unparse(base).rpartition(".")[2], parts, at)
        case ast.Name(id=name) if name in _TYPES:
            yield "type", _TYPES[name]
        case ast.Name(id=name) if name in at.known:
            yield "type", "object"
        case ast.Name(id=name):
            yield from _named(name, at)
        case _:
            raise _Unknown


def _subscript(word: str, parts: Sequence[ast.expr], at: _Place) -> Iterator[tuple[str, Any]]:
    """`Literal[...]`, `Optional[...]`, `list[...]`."""
    if word in _TYPES:
        yield "type", _TYPES[word]
        if word in _LISTS and len(parts) == 1:
            yield "items", _items(parts[0], at)
        return
    if word not in {"Literal", "Optional", "Union"}:
        raise _Unknown
    for part in parts:
        if word == "Literal" and isinstance(part, ast.Constant):
            yield "choice", part.value
        else:
            yield from _alternatives(part, at)


def _items(node: ast.expr, at: _Place) -> Takes:
    """What each entry of a list may be; empty: that is not told."""
    try:
        return _row(list(_alternatives(node, replace(at, by_name=False))), [], loose=False)
    except _Unknown:
        return {}


def _named(name: str, at: _Place) -> Iterator[tuple[str, Any]]:
    """What a name stands for: an alias, an enum, or one of these in another file of the package."""
    if at.depth >= _MOST_ALIASES:
        raise _Unknown
    match _names(at.module).get(name):
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            yield from _alternatives(value, replace(at, depth=at.depth + 1))
        case ast.ClassDef() as of if any("Enum" in ast.unparse(base) for base in of.bases):
            yield from (("choice", one) for one in _members(of, by_name=at.by_name))
        case ast.ImportFrom(module=str(origin), level=0) as source:
            real = next((each.name for each in source.names if (each.asname or each.name) == name), name)
            place = at.package.parent.joinpath(*origin.split("."))
            file = next((each for each in (place.with_suffix(".py"), place / "__init__.py") if each.exists()), None)
            if file is None:
                raise _Unknown
            yield from _named(real, replace(at, module=file, depth=at.depth + 1))
        case _:
            raise _Unknown


def _members(of: ast.ClassDef, *, by_name: bool) -> Iterator[str | int]:
    """An enum's values that JSON can hold, and its names where a validator takes these."""
    if any(isinstance(node, ast.FunctionDef) and node.name == "_missing_" for node in of.body):
        raise _Unknown  # it takes other words as well
    for node in of.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if by_name:
                yield node.targets[0].id
            match node.value:
                case ast.Constant(value=str() | int() as value) if isinstance(value, int) or not by_name:
                    yield value
                case ast.Constant() | ast.Tuple():
                    pass
                case _ if not by_name:  # auto(), a call: not told by the text
                    raise _Unknown


@lru_cache(maxsize=512)
def _names(module: Path) -> Mapping[str, ast.stmt]:
    """What each name at the top of a file stands for; of two branches the last, which is the one that runs."""
    try:
        tree = ast.parse(module.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return {}
    found: dict[str, ast.stmt] = {}
    left: list[ast.stmt] = list(tree.body)
    for node in left:  # grows while it is read
        match node:
            case ast.If():
                left += [*node.body, *node.orelse]
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
            case ast.ClassDef(name=name):
                found[name] = node
            case ast.ImportFrom():
                found |= {each.asname or each.name: node for each in node.names}
    return found
