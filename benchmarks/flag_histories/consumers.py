"""Flags whose field no file outside argument handling reads: they are accepted, and do nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from benchmarks.flag_histories.constants import parsed
from benchmarks.flag_histories.declared import Declared

HANDLING = re.compile(r"server_args|arg_groups|arg_utils|cli_args|run_batch")
"""Files that hand arguments on: `field=args.field` there is no use of the field."""
LEFT_OUT = re.compile(r"/test/|multimodal_gen|/lang/")
"""Tests, and programs of their own."""


def mark_dead(flags: Iterable[Declared], root: Path) -> None:
    """Find out which fields are read, and mark the flags of all others."""
    flags = list(flags)
    unread = {one.dest for one in flags}
    for path in sorted(root.rglob("*.py"), key=lambda path: ("managers" not in str(path), str(path))):
        if not unread:
            break
        if not LEFT_OUT.search(str(path)):
            unread -= read_in(path, unread)
    for one in flags:
        one.dead = one.dest in unread


def read_in(path: Path, names: set[str]) -> set[str]:
    """Which of these names a file reads: as an attribute, a key, or a variable that is not only handed on."""
    text = path.read_text(encoding="utf-8", errors="replace")
    there = {name for name in names if name in text}
    if not there or not re.search(rf"\b(?:{'|'.join(map(re.escape, there))})\b", text):
        return set()
    tree = parsed(path)
    if tree is None:
        return set()
    reader = _Reader(there, hands_on=HANDLING.search(str(path)) is not None)
    reader.visit(tree)
    return reader.found & there


class _Reader(ast.NodeVisitor):
    def __init__(self, names: set[str], *, hands_on: bool) -> None:
        self.found: set[str] = set()
        self._names, self._hands_on = names, hands_on
        self._handed: str | None = None
        """The name that what is looked at goes to: `x=args.x` and `self.x = args.x` do not read `x`."""

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(func=ast.Attribute(attr="add_argument")):
                return
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str(name)), *_]):
                self.found.add(name)
            case ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[ast.Constant(value=str(name)), *_]):
                self.found.add(name)
        self._look(node.func, None)
        for argument in node.args:
            self._look(argument, None)
        for keyword in node.keywords:
            self._look(keyword.value, keyword.arg if self._hands_on else None)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load) and node.attr != self._handed:
            self.found.add(node.attr)
        self._look(node.value, None)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            self.found.add(node.slice.value)
        self._children(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
            self._look(node.value, node.targets[0].attr)
            self._look(node.targets[0], None)
        else:
            self._children(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id in self._names and node.id != self._handed:
            self.found.add(node.id)

    def generic_visit(self, node: ast.AST) -> None:
        self._children(node)

    def _look(self, node: ast.AST, handed: str | None) -> None:
        before, self._handed = self._handed, handed
        self.visit(node)
        self._handed = before

    def _children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            self._look(child, None)
