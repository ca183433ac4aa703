"""Flags that nothing reads: a scan of an installed engine's source for what uses a field of its arguments.

What counts as reading: `x.field`, `getattr(x, "field")`, `x["field"]`, `x.get("field")`, or a variable of that name.
What does not: declaring it, `add_argument(...)`, and, in files that handle arguments, handing it on under its own name
(`Config(field=self.field)`). When in doubt the flag counts as read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_FILES = 30_000
MAX_FILE_BYTES = 4_000_000
_ARGUMENT_FILE = re.compile(r"server_args|arg_groups|arg_utils|cli_args|run_batch")
_SKIPPED = frozenset({"test", "tests", "multimodal_gen", "lang", "benchmark", "benchmarks", "__pycache__"})
_FIRST = ("managers", "v1", "model_executor")
"""Folders that read most fields: looked at first, so that the scan soon has little left to find."""
_GETTERS = frozenset({"getattr", "hasattr"})
_LOOKUPS = frozenset({"get", "pop"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """Of the wanted fields, in one file."""

    declared: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()


def unread(package: Path, fields: Sequence[str]) -> set[str]:
    """The fields that a package declares and no file of it reads.

    A name that it declares nowhere is left out: its flag is stored under another one, and nothing is known of that.

    Args:
        package: the folder of the installed package.
        fields: names as its source has them: `num_continuous_decode_steps`.
    """
    left, declared = set(fields), set[str]()
    for path in _files(package):
        if not left:
            break
        seen = _seen_in(path, left)
        declared |= seen.declared
        left -= seen.read
    return left & declared


def _files(package: Path) -> list[Path]:
    found = [
        path
        for path in list(package.rglob("*.py"))[:MAX_FILES]
        if _SKIPPED.isdisjoint(path.relative_to(package).parts[:-1]) and path.stat().st_size <= MAX_FILE_BYTES
    ]
    return sorted(found, key=lambda path: (not any(part in _FIRST for part in path.parts), str(path)))


def _seen_in(path: Path, fields: set[str]) -> _Seen:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _Seen()
    named = {field for field in fields if field in text}
    if not named:
        return _Seen()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _Seen(read=frozenset(named))  # it cannot be told: they count as read
    read = named & set(_reads(tree, handles_arguments=bool(_ARGUMENT_FILE.search(str(path)))))
    return _Seen(declared=frozenset(named & set(_declared(tree))), read=frozenset(read))


def _declared(tree: ast.AST) -> Iterator[str]:
    """Names of annotated fields: how dataclasses and structs declare theirs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _reads(tree: ast.AST, *, handles_arguments: bool) -> Iterator[str]:
    """Every name that is read; one handed on under its own name is none where arguments are handled."""
    waiting: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while waiting:
        node, own_name = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            continue
        name = _name_read(node)
        if name is not None and name != own_name:
            yield name
        if isinstance(node, ast.keyword) and handles_arguments:
            waiting.append((node.value, node.arg))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            waiting += [(node.value, node.targets[0].attr), (node.targets[0], None)]
        else:
            waiting += [(child, None) for child in ast.iter_child_nodes(node)]


def _name_read(node: ast.AST) -> str | None:
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load()) | ast.Name(id=name, ctx=ast.Load()):
            return name
        case ast.Call(func=ast.Name(id=called), args=[_, ast.Constant(value=str(name)), *_]) if called in _GETTERS:
            return name
        case ast.Call(func=ast.Attribute(attr=called), args=[ast.Constant(value=str(name)), *_]) if called in _LOOKUPS:
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
    return None
