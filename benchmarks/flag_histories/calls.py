"""`add_argument` calls as flags, with what `**kwargs` of a configuration class adds to them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.flag_histories.annotations import kind_of
from benchmarks.flag_histories.constants import UNKNOWN, Source, last_word
from benchmarks.flag_histories.declared import Declared, plain_default

KINDS = {
    "int": "int", "float": "float", "str": "str", "loads": "json", "json_list_type": "json", "nullable_str": "str",
    "human_readable_int": "size", "human_readable_int_or_auto": "size", "nullable_int": "int",
}  # fmt: skip
"""What the functions that read a value make of it; `size`: a whole number that may be written `16k`."""
Place = tuple[str, str]
"""A class of the configuration and its field."""


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """Every `.add_argument(...)`."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "add_argument":
            yield each


def flag(source: Source, call: ast.Call, places: Mapping[str, Place | str] | None = None) -> Declared | None:
    """What a call declares; None for what is no flag.

    Args:
        source: where names are looked up.
        call: of `add_argument`.
        places: what the variables behind `**` hold: a class's keywords, by field, or one field's.
    """
    names = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if not names or not names[0].startswith("-"):
        return None
    long = next((name for name in names if name.startswith("--")), names[0])
    found = Declared(names=names, dest=long.lstrip("-").replace("-", "_"))
    given = {word.arg: word.value for word in call.keywords if word.arg is not None}
    inherits = False
    for spread in (word.value for word in call.keywords if word.arg is None):
        given |= _literal_keywords(spread)
        for inner in _spread(spread):
            place = place_of(inner, places or {})
            inherits |= place is not None and from_field(source, found, place)
    return _completed(source, found, given, inherits=inherits)


def place_of(node: ast.expr, places: Mapping[str, Place | str]) -> Place | None:
    """The field behind `**keywords["field"]`, or behind a variable that was set to that."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
            known = places.get(name)
            return (known, key) if isinstance(known, str) else None
        case ast.Name(id=name):
            known = places.get(name)
            return known if isinstance(known, tuple) else None
    return None


def from_field(source: Source, found: Declared, place: Place) -> bool:
    """What the annotation and the default of a configuration's field say; False where there is no such field."""
    declared = source.field_of(*place)
    if declared is None:
        return False
    kind = kind_of(source, declared.annotation)
    found.kind, found.negatable = ("switch", True) if kind.name == "bool" else (kind.name, False)
    found.choices = list(kind.choices) if kind.choices is not None else None
    if declared.value is not None:
        found.default = plain_default(source.value(declared.value))
    else:
        found.default = None if found.kind != "switch" else UNKNOWN
    return True


def act(found: Declared, action: str) -> None:
    """What an `action` makes of a flag."""
    if any(word in action for word in ("store_true", "store_false", "StoreTrue")):
        found.kind, found.default = "switch", False
    elif "BooleanOptional" in action:
        found.kind, found.negatable = "switch", True
    elif "StoreConst" in action or action.endswith("DeprecatedAction") or action in {"'version'", "'help'", "'count'"}:
        found.kind = "switch"
    elif "append" in action:
        found.kind = "str"
    found.deprecated |= "Deprecated" in action


def several(found: Declared, number: Any) -> None:
    """What `nargs` makes of a flag."""
    if number in ("*", "+") or (isinstance(number, int) and number > 1):
        found.kind = "list:" + found.kind.removeprefix("list:")
    elif number == "?":
        found.kind = f"bool|{found.kind}"
    elif number in (0, "0"):
        found.kind = "switch"


def read_as(node: ast.expr) -> str:
    """The kind that a `type` makes: a named function's, else text."""
    return "str" if isinstance(node, ast.Lambda) else KINDS.get(last_word(node), "str")


def _completed(source: Source, found: Declared, given: Mapping[str, ast.expr], *, inherits: bool) -> Declared:
    """With the keywords of the call itself, which win over those of a field."""
    if "action" in given:
        constant = "StoreConst" in ast.unparse(given["action"]) and "nargs" in given
        act(found, ast.unparse(given["action"]))
        found.kind = "str" if constant else found.kind
    found.new = _text(source, given.get("new_flag")) or found.new
    found.deprecated |= source.value(given.get("deprecated")) is True
    if "type" in given:
        found.kind = read_as(given["type"])
        found.choices = found.choices if "choices" not in given and found.kind == "str" else None
    if "nargs" in given:
        several(found, source.value(given["nargs"]))
    if "choices" in given:
        choices = source.value(given["choices"])
        found.choices = choices if isinstance(choices, list) else None
    if "default" in given:
        found.default = plain_default(source.value(given["default"]))
    elif not inherits and found.default is UNKNOWN and found.kind != "switch":
        found.default = None
    found.help = deprecation(_text(source, given.get("help")))
    found.dest = _text(source, given.get("dest")) or found.dest
    return found


def deprecation(text: str) -> str:
    """A help text as far as it matters: one that says near its beginning that the flag is deprecated."""
    return text[:200] if re.search(r"(?i)\bdeprecated\b", text[:400]) else ""


def _text(source: Source, node: ast.expr | None) -> str:
    value = source.value(node)
    return value if isinstance(value, str) else ""


def _spread(node: ast.expr) -> Sequence[ast.expr]:
    """`**a` and `**{**a, "x": 1}`."""
    if not isinstance(node, ast.Dict):
        return [node]
    return [value for key, value in zip(node.keys, node.values, strict=True) if key is None]


def _literal_keywords(node: ast.expr) -> dict[str, ast.expr]:
    if not isinstance(node, ast.Dict):
        return {}
    pairs = zip(node.keys, node.values, strict=True)
    return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
