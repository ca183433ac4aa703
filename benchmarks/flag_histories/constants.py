"""Values and types as a package's source declares them: module constants, classes' fields, annotations.

Nothing is imported or executed. What cannot be said from the text alone is `UNKNOWN`, and never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

UNKNOWN: Final = object()
DEEPEST = 12


@dataclass(slots=True)
class Source:
    """The constants and classes of some files; of several with one name the first counts."""

    constants: dict[str, ast.expr] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)

    def load(self, paths: Iterable[Path]) -> None:
        """Add what the files declare at their top, also inside of `if` and `try`; one that is no Python is left out."""
        for path in paths:
            tree = parsed(path)
            for node in statements(tree.body if tree else []):
                self._declare(node)

    def _declare(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(value=ast.Name(id="object" | "Any")):
                return  # stands in for a type that is only imported for checkers
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.constants.setdefault(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self.constants.setdefault(name, value)
            case ast.ClassDef(name=name):
                self.classes.setdefault(name, node)

    def value(self, node: ast.expr | None, depth: int = 0) -> Any:
        """What an expression is, as far as its text tells."""
        if node is None or depth > DEEPEST:
            return UNKNOWN
        match node:
            case ast.Constant(value=value):
                return value
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return self._items(items, depth + 1)
            case ast.Dict(keys=[]):
                return {}
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self.value(operand, depth + 1)
                return -number if isinstance(number, int | float) else UNKNOWN
            case ast.BinOp(left=left, op=operator, right=right):
                return combined(operator, self.value(left, depth + 1), self.value(right, depth + 1))
        return self._looked_up(node, depth + 1)

    def _looked_up(self, node: ast.expr, depth: int) -> Any:
        """What a name, a class's field, a `Literal` or a call stands for."""
        match node:
            case ast.Name(id=name):
                return self.value(self.constants.get(name), depth)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in self.classes:
                return self.default_of(name, attribute, depth)
            case ast.Subscript(value=base, slice=inside) if last_word(base) == "Literal":
                return self._choices(inside, depth)
            case ast.Call():
                return self._call(node, depth)
        return UNKNOWN

    def field_of(self, name: str, attribute: str) -> ast.AnnAssign | None:
        """The annotated field of a class or of one that it comes from."""
        found = self.classes.get(name)
        if found is None:
            return None
        for node in annotated(found):
            if isinstance(node.target, ast.Name) and node.target.id == attribute:
                return node
        inherited = (self.field_of(last_word(base), attribute) for base in found.bases)
        return next((one for one in inherited if one is not None), None)

    def default_of(self, name: str, attribute: str, depth: int = 0) -> Any:
        """The default of a class's field."""
        node = self.field_of(name, attribute)
        if node is not None:
            return self.value(node.value, depth)
        return self._class_constant(name, attribute, depth)

    def _class_constant(self, name: str, attribute: str, depth: int) -> Any:
        """What a class assigns without an annotation; names in it may be others of the class (`ALL = (FULL, OFF)`)."""
        plain = {
            node.targets[0].id: node.value
            for node in (self.classes[name].body if name in self.classes else ())
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        value = plain.get(attribute)
        if isinstance(value, ast.Tuple | ast.List):
            items = [plain.get(item.id, item) if isinstance(item, ast.Name) else item for item in value.elts]
            return self._items(items, depth)
        return self.value(value, depth)

    def _items(self, items: Sequence[ast.expr], depth: int) -> Any:
        found: list[Any] = []
        for item in items:
            value = self.value(item.value if isinstance(item, ast.Starred) else item, depth)
            if value is UNKNOWN or (isinstance(item, ast.Starred) and not isinstance(value, list)):
                return UNKNOWN
            found += value if isinstance(item, ast.Starred) else [value]
        return found

    def _choices(self, inside: ast.expr, depth: int) -> Any:
        """Of `Literal[...]`; one that stands inside of another is spread out."""
        found: list[Any] = []
        for item in inside.elts if isinstance(inside, ast.Tuple) else [inside]:
            value = self.value(item, depth)
            if value is UNKNOWN:
                return UNKNOWN
            found += value if isinstance(value, list) else [value]
        return found

    def _call(self, node: ast.Call, depth: int) -> Any:
        name = last_word(node.func)
        if name in {"list", "tuple", "get_args", "sorted", "set"} and len(node.args) == 1:
            return self.value(node.args[0], depth)
        if name not in {"Field", "field"}:
            return UNKNOWN
        for keyword in node.keywords:
            if keyword.arg == "default":
                return self.value(keyword.value, depth)
            if keyword.arg == "default_factory" and last_word(keyword.value) in {"list", "dict"}:
                return [] if last_word(keyword.value) == "list" else {}
        return self.value(node.args[0], depth) if node.args else UNKNOWN


def combined(operator: ast.operator, left: Any, right: Any) -> Any:
    """Two values added, multiplied, divided or raised; sequences are added."""
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    try:
        match operator:
            case ast.Add():
                return left + right
            case ast.Mult():
                return left * right
            case ast.Pow():
                return left**right
            case ast.Div():
                return left / right
    except (TypeError, ValueError, ArithmeticError):
        return UNKNOWN
    return UNKNOWN


def parsed(path: Path) -> ast.Module | None:
    """A file as a tree; None where it is none of this Python's syntax."""
    try:
        return ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    except SyntaxError:
        return None


def statements(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a module, and behind them those inside of its `if` and `try`."""
    found = list(body)
    for node in found:
        if isinstance(node, ast.If | ast.Try):
            found += node.body
    return found


def annotated(found: ast.ClassDef) -> list[ast.AnnAssign]:
    """The annotated fields of a class."""
    return [node for node in found.body if isinstance(node, ast.AnnAssign)]


def last_word(node: ast.expr) -> str:
    """`typing.Literal` as `Literal`."""
    return ast.unparse(node).rpartition(".")[2]
