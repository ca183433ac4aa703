"""What `assay explain` makes of the messages in an engine's own sources: those it raises, and those it only logs.

    python benchmarks/failures_sources.py FOLDER [--show CAUSE] [--logged] [--within REGEX]

FOLDER is an installed package, for example site-packages/vllm, or a source tree, for example of llama.cpp: its Python
files are parsed, and the calls of its C, C++ and CUDA files that raise or write a message are found by their names. A
raised message comes with the function that raises it; the share that is `unknown` is what no rule knows. A logged one
(`--logged`: information and warnings) tells of no failure: whatever cause is named for it is wrong, and each is
printed. SGLang's and llama.cpp's lines name no level, vLLM's and TensorRT-LLM's do.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from assay.failures import Log, explain

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import native_messages

LOGGING = frozenset({"info", "warning", "debug", "print", "warn", "info_once", "warning_once", "print_warning_once"})
OTHERS = (
    "test",
    "bench",
    "multimodal_gen/",
    "/lang/",
    "eval/",
    "convert",
    "conversion/",
    "gguf-py/",
    "scripts/",
    "examples/",
    "ci/",
)
"""Parts of a path that belongs to no server."""
STAMPS = {"vllm": "WARNING 01-01 10:00:00 [otter.py:7] "}
WITHOUT_LEVEL = "[2026-01-01 10:00:00 TP0] "
NUMBERS = ("size", "num", "len", "rank", "world", "max", "min", "count", "bits", "dim", "heads")
LONGEST = 300


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--show", metavar="CAUSE", help="print the raised messages that get this cause")
    arguments.add_argument("--logged", action="store_true")
    arguments.add_argument("--within", metavar="REGEX", help="only raised messages whose file and function fit")
    given = arguments.parse_args()
    named: Counter[str] = Counter()
    wanted = None if given.logged else given.show
    for lines in told(given.folder, is_logged=given.logged):
        if given.within and not any(re.search(given.within, line) for line in lines[1:-1]):
            continue
        found = explain([Log("log", lines)])
        named[str(found.cause)] += 1
        if found.cause == wanted or (given.logged and found.rule):
            print(f"{found.cause} ({found.rule}): {lines[-1][:160]}")
    total = sum(named.values())
    for cause, count in named.most_common():
        print(f"{count:>6} {count / total:>6.1%}  {cause}")


def told(folder: Path, *, is_logged: bool) -> Iterator[list[str]]:
    """Of Python files and of compiled ones."""
    python, native = (logged, native_messages.logged) if is_logged else (raised, native_messages.raised)
    return chain(python(folder), (lines for _, lines in native(folder)))


def raised(folder: Path) -> Iterator[list[str]]:
    """Each message once, with the end of a traceback."""
    seen: set[str] = set()
    for name, tree in modules(folder):
        for function, node in with_function(tree, "<module>"):
            told = exception(node)
            if told and told not in seen:
                seen.add(told)
                frame = f'  File "/site/{folder.name}/{name}", line 7, in {function}'
                yield ["Traceback (most recent call last):", frame, "    raise", told]


def logged(folder: Path) -> Iterator[list[str]]:
    """Each message once, as the engine would write it."""
    seen: set[str] = set()
    for _, tree in modules(folder):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and called(node) in LOGGING:
                message = text(node.args[0])
                if message and message not in seen:
                    seen.add(message)
                    yield [f"{STAMPS.get(folder.name, WITHOUT_LEVEL)}{message}"]


def modules(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        if not any(each in name for each in OTHERS):
            yield name, ast.parse(path.read_text(encoding="utf-8-sig"))


def with_function(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        yield inside, child
        yield from with_function(child, inside)


def exception(node: ast.AST) -> str | None:
    """What Python would print of a raise or an assertion."""
    if isinstance(node, ast.Assert):
        message = text(node.msg) if node.msg else None
        return f"AssertionError: {message}" if message else None
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
        message = text(node.exc.args[0])
        return f"{called(node.exc)}: {message}" if message else None
    return None


def called(call: ast.Call) -> str:
    return ast.unparse(call.func).split(".")[-1]


def text(node: ast.expr) -> str | None:
    """A message, with something in the place of what is only known when it runs."""
    found: str | None = None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        found = node.value
    elif isinstance(node, ast.JoinedStr):
        found = "".join(str(each.value) if isinstance(each, ast.Constant) else filled(each) for each in node.values)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        found = (text(node.left) or "") + (text(node.right) or "")
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        found = text(node.left)
    return " ".join(found.split())[:LONGEST] if found else None


def filled(node: ast.expr) -> str:
    code = ast.unparse(node).strip("{}f'\"")
    return "7" if any(each in code.lower() for each in NUMBERS) else code.split(".")[-1].strip("()'\"")[:30] or "x"


if __name__ == "__main__":
    main()
