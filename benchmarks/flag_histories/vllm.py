"""Where vLLM declares its flags: configuration classes, `EngineArgs.add_cli_args`, and the front end's own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from benchmarks.flag_histories.annotations import kind_of
from benchmarks.flag_histories.calls import Place, calls, flag, place_of
from benchmarks.flag_histories.constants import Source, annotated, parsed
from benchmarks.flag_histories.declared import Declared, plain_default

PACKAGE = "vllm"
ARGUMENTS = "engine/arg_utils.py"
FRONT_ENDS = (
    "entrypoints/openai/cli_args.py", "entrypoints/common/cli_args.py", "entrypoints/launchers/cli_args.py",
    "entrypoints/cli/serve.py",
)  # fmt: skip
"""Where it was in one version or another."""
CHOICES = (
    "model_executor/layers/quantization/__init__.py", "v1/attention/backends/registry.py",
    "attention/backends/registry.py", "model_executor/model_loader/__init__.py", "entrypoints/constants.py",
    "entrypoints/chat_utils.py", "multimodal/hasher.py",
)  # fmt: skip
"""Where lists of choices stand that the arguments name; besides, every module that they import names from."""
KEYWORDS = frozenset({"get_kwargs", "_compute_kwargs"})
"""Functions that turn a configuration class into keywords, by field."""
SIZES = "human_readable_int"
"""Functions whose name begins so read `16k`."""
OR_AUTO = "human_readable_int_or_auto"
"""The one that takes `auto` as well."""
FRONT_CLASSES = ("BaseFrontendArgs", "FrontendArgs")
Override = tuple[ast.expr, str, ast.expr]
"""Of what, which keyword, and to what it is set by hand: `kwargs["field"]["choices"] = ...`."""
REMOVED = "remove"
"""In place of a keyword: a choice that is taken away again, `kwargs["field"]["choices"].remove(...)`."""


def declared(root: Path) -> list[Declared]:
    """Every flag of `vllm serve`, from the folder of the unpacked package."""
    declaring = [path for name in (ARGUMENTS, *FRONT_ENDS) if (path := root / name).exists()]
    source = _source(root, declaring)
    found = [one for path in declaring for one in _of_file(source, path)]
    sizes, or_auto = _read_by(SIZES, declaring[0]), _read_by(OR_AUTO, declaring[0])
    for one in found:
        one.kind = "size" if one.kind == "int" and one.dest in sizes else one.kind
        one.words = ["auto"] if one.kind == "size" and one.dest in or_auto else []
    known = {name for one in found for name in one.names}
    found += [one for one in _front_end(source) if one.names[0] not in known]
    unique: dict[str, Declared] = {}
    for one in found:
        unique.setdefault(one.names[0], one)
    return list(unique.values())


def _source(root: Path, declaring: list[Path]) -> Source:
    source = Source()
    config = sorted((root / "config").rglob("*.py")) if (root / "config").is_dir() else [root / "config.py"]
    source.load([*config, *declaring])
    source.load(root / name for name in CHOICES if (root / name).exists())
    source.load(path for one in (*declaring, *config) for path in imported(root, one))
    return source


def _read_by(reader: str, path: Path) -> set[str]:
    """Fields that are named where the keywords' `type` becomes a function whose name begins so."""
    tree = parsed(path)
    nodes = list(ast.walk(tree)) if tree else []
    sets = {
        node.targets[0].id: node.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Set)
    }
    found: set[str] = set()
    for node in (each for each in nodes if isinstance(each, ast.If)):
        if any(isinstance(each, ast.Assign) and reader in ast.unparse(each.value) for each in node.body):
            named = [sets.get(each.id) for each in ast.walk(node.test) if isinstance(each, ast.Name)]
            for holder in (node.test, *(one for one in named if one)):
                found |= {str(each.value) for each in ast.walk(holder) if isinstance(each, ast.Constant)}
    return found


def imported(root: Path, path: Path) -> Iterator[Path]:
    """Modules of the package that a file takes names from; of a package, also the modules that it takes them from."""
    tree = parsed(path)
    for node in ast.walk(tree) if tree else ():
        place = _place(root, path, node) if isinstance(node, ast.ImportFrom) else None
        if place is None:
            continue
        inside = place / "__init__.py"
        yield from (one for one in (place.with_suffix(".py"), inside) if one.exists())
        yield from imported(root, inside) if inside.exists() and inside != path and path.name != "__init__.py" else ()


def _place(root: Path, path: Path, node: ast.ImportFrom) -> Path | None:
    """Where an imported module is; None for one of another package."""
    words = (node.module or "").split(".")
    if node.level:
        return path.parents[node.level - 1].joinpath(*words)
    return root.joinpath(*words[1:]) if words[0] == PACKAGE and len(words) > 1 else None


def _of_file(source: Source, path: Path) -> Iterator[Declared]:
    tree = parsed(path)
    for function in ast.walk(tree) if tree else ():
        if not isinstance(function, ast.FunctionDef):
            continue
        places, overrides = _places(function), _overrides(function)
        yield from _refused(function)
        for call in calls(function):
            one = flag(source, call, places)
            if one is not None:
                _overridden(source, one, call, places, overrides)
                yield one


def _places(function: ast.FunctionDef) -> dict[str, Place | str]:
    """Variables that hold the keywords of a class (`model_kwargs`), or of one of its fields."""
    found: dict[str, Place | str] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=called, args=[first, *_])) if (
                ast.unparse(called) in KEYWORDS
            ):
                found[name] = ast.unparse(first)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            place = place_of(node.value, found)
            found |= {node.targets[0].id: place} if place else {}
    return found


def _overrides(function: ast.FunctionDef) -> list[Override]:
    """`keywords["field"]["choices"] = ...`, `field_keywords["type"] = ...`, and choices that are removed."""
    found: list[Override] = []
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Subscript(value=of, slice=ast.Constant(value=str(key)))], value=value):
                found.append((of, key, value))
            case ast.Call(
                func=ast.Attribute(value=ast.Subscript(value=of, slice=ast.Constant(value="choices")), attr="remove"),
                args=[value],
            ):
                found.append((of, REMOVED, value))
    return found


def _overridden(
    source: Source,
    one: Declared,
    call: ast.Call,
    places: dict[str, Place | str],
    overrides: list[Override],
) -> None:
    own = {place for word in call.keywords if word.arg is None and (place := place_of(word.value, places))}
    for of, keyword, value in overrides:
        if place_of(of, places) not in own:
            continue
        if keyword == "choices":
            choices = source.value(value)
            one.choices = choices if isinstance(choices, list) else None
        elif keyword == REMOVED and one.choices is not None:
            one.choices = [choice for choice in one.choices if choice != source.value(value)]
        elif keyword == "type" and one.kind != "switch":
            # A reader that tidies a text (small letters, `_` for `-`) keeps the choices; any other replaces them.
            one.loose = one.choices is not None and isinstance(value, ast.Lambda) and "lower()" in ast.unparse(value)
            one.choices = one.choices if one.loose else None


def _refused(function: ast.FunctionDef) -> Iterator[Declared]:
    """Flags in a loop over `(name, type)`: still parsed, and deprecated."""
    assigned = {
        node.targets[0].id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for loop in ast.walk(function):
        if not isinstance(loop, ast.For):
            continue
        items = assigned.get(loop.iter.id) if isinstance(loop.iter, ast.Name) else loop.iter
        for item in items.elts if isinstance(items, ast.List | ast.Tuple) else ():
            match item:
                case ast.Tuple(elts=[ast.Constant(value=str(name)), kind, *_]) if name.startswith("--"):
                    plain = "switch" if ast.unparse(kind) == "bool" else "str"
                    dest = name[2:].replace("-", "_")
                    yield Declared(names=[name], kind=plain, dest=dest, deprecated=True, default=None)


def _front_end(source: Source) -> Iterator[Declared]:
    """Fields of the front end's classes are flags of their own names."""
    for name in FRONT_CLASSES:
        for node in annotated(source.classes[name]) if name in source.classes else ():
            if not isinstance(node.target, ast.Name):
                continue
            kind = kind_of(source, node.annotation)
            default = plain_default(source.value(node.value)) if node.value is not None else None
            yield Declared(
                names=["--" + node.target.id.replace("_", "-")],
                kind="switch" if kind.name == "bool" else kind.name,
                dest=node.target.id,
                choices=list(kind.choices) if kind.choices is not None else None,
                default=default,
                negatable=kind.name == "bool",
            )
