"""The objects that vLLM's flags take as JSON, read out of its source: which class each flag makes, and its keys.

Nothing is imported or run. A class is a dataclass of the configuration (`config.py`, `config/*.py`); what it does with
a key that it does not have hangs on how it is declared, which changed with the versions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.flags.object_values import Takes, takes

Rows = dict[str, dict[str, Any]]
"""As a history keeps them: `--flag: {"class": name}`, `Class: {"extra": what happens to other keys}`, and
`Class.key: {}`, with `class` of an object inside, and what else it takes (`assay.flags.object_values.Takes`)."""
ARGUMENTS = "engine/arg_utils.py"
LIMITS, GENERATION = "limit_mm_per_prompt", "override_generation_config"
"""Fields whose value is no class of the configuration: what stands for one carries the field's name."""
SET_LATER = frozenset({"target_model_config", "target_parallel_config", "draft_model_config", "draft_parallel_config"})
"""Keys that vLLM fills in itself, whatever was given."""
OPEN = frozenset({"dict", "Dict", "Mapping", "Any"})
_EXTRA = re.compile(r"\bextra=['\"](\w+)['\"]")
_MEANS = {"forbid": "refused", "ignore": "ignored", "allow": "taken"}
_UNION = frozenset({"Optional", "Union", "InitVar"})


@dataclass(frozen=True, slots=True)
class _Found:
    """A class, whether `dataclass` is Python's own where it stands, and where that is."""

    node: ast.ClassDef
    is_plain: bool
    path: Path


@dataclass(frozen=True, slots=True)
class _Field:
    """A field, and the class that declares it."""

    node: ast.AnnAssign
    of: _Found


def of_package(package: Path) -> Rows:
    """What the flags of a package's version take; empty where it cannot be read."""
    arguments = _parsed(package / ARGUMENTS)
    if arguments is None:
        return {}
    found = _classes(package)
    validates = "TypeAdapter" in ast.unparse(arguments)
    extra = {name: _extra(one, validates=validates) for name, one in found.items()}
    rows: Rows = {}
    classes = frozenset(name for name, one in extra.items() if one is not None)
    for name in (each for each in found if extra[each] is not None):
        rows[name] = {"extra": extra[name]}
        rows |= {
            f"{name}.{key}": {}
            if key in SET_LATER
            else _inside(field.node.annotation, extra) | _takes(field, package, classes)
            for key, field in _keys(name, found).items()
        }
    rows |= _limits(found)
    rows |= _generation(found)
    rows |= dict(_flags(arguments, rows))
    return reachable(rows)


def reachable(rows: Mapping[str, dict[str, Any]]) -> Rows:
    """The flags, and of the classes those that one of them leads to."""
    wanted = [str(row["class"]) for name, row in rows.items() if name.startswith("--")]
    for name in wanted:  # grows while it is read
        inside = {row["class"] for key, row in rows.items() if key.startswith(f"{name}.") and "class" in row}
        wanted += sorted(inside - set(wanted))
    return {name: row for name, row in rows.items() if name.startswith("--") or name.partition(".")[0] in set(wanted)}


def _classes(package: Path) -> dict[str, _Found]:
    found: dict[str, _Found] = {}
    for path in [package / "config.py", *sorted((package / "config").glob("*.py"))]:
        tree = _parsed(path)
        for node in tree.body if tree else ():
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, _Found(node, _is_plain(tree), path))
    return found


def _is_plain(tree: ast.Module | None) -> bool:
    imports = [node for node in (tree.body if tree else ()) if isinstance(node, ast.ImportFrom)]
    return any(one.module == "dataclasses" and "dataclass" in {each.name for each in one.names} for one in imports)


def _extra(found: _Found, *, validates: bool) -> str | None:
    """What becomes of other keys; None: it is no class of the configuration.

    Without a word on it pydantic's dataclasses leave other keys out, and so does pydantic with a plain dataclass;
    called with the keys as arguments (0.9.0) a plain one refuses them. `@config` alone makes a dataclass that refuses
    them (from 0.16.0 on; config/utils.py).
    """
    marks = {ast.unparse(mark).partition("(")[0]: ast.unparse(mark) for mark in found.node.decorator_list}
    if not {"config", "dataclass"} & set(marks):
        return None
    if said := _EXTRA.search(" ".join(marks.values())):
        return _MEANS.get(said[1], "taken")
    return "refused" if "dataclass" not in marks or (found.is_plain and not validates) else "ignored"


def _takes(field: _Field, package: Path, classes: frozenset[str]) -> Takes:
    """What a field may hold; nothing is told where a plain dataclass takes any value."""
    if field.of.is_plain:
        return {}
    return takes(field.node, field.of.node, field.of.path, package, classes)


def _keys(name: str, found: Mapping[str, _Found]) -> dict[str, _Field]:
    """The fields that may be given; those of the classes that it comes from first."""
    node = found[name].node
    bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id in found and base.id != name]
    keys = {key: of for base in bases for key, of in _keys(base, found).items()}
    for each in node.body:
        if not isinstance(each, ast.AnnAssign) or not isinstance(each.target, ast.Name):
            continue
        if "ClassVar" not in ast.unparse(each.annotation) and not _is_set_by_itself(each.value):
            keys[each.target.id] = _Field(each, found[name])
    return keys


def _is_set_by_itself(value: ast.expr | None) -> bool:
    """Whether a field says `init=False`."""
    words = value.keywords if isinstance(value, ast.Call) else []
    return any(word.arg == "init" and ast.unparse(word.value) == "False" for word in words)


def _inside(annotation: ast.expr, known: Mapping[str, str | None]) -> dict[str, Any]:
    """The class of what a key holds; none where a mapping of any kind does as well."""
    names = list(_alternatives(annotation))
    classes = [name for name in names if known.get(name) is not None]
    return {"class": classes[0]} if len(classes) == 1 and OPEN.isdisjoint(names) else {}


def _alternatives(annotation: ast.expr) -> Iterator[str]:
    """The types that an annotation allows, each by its last word."""
    match annotation:
        case ast.Constant(value=str(text)):
            try:
                yield from _alternatives(ast.parse(text, mode="eval").body)
            except SyntaxError:
                return
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _alternatives(left)
            yield from _alternatives(right)
        case ast.Subscript(value=base, slice=inside):
            word, parts = _word(base), inside.elts if isinstance(inside, ast.Tuple) else [inside]
            chosen = parts if word in _UNION else parts[:1] if word == "Annotated" else []
            for part in chosen:
                yield from _alternatives(part)
            yield word
        case ast.Name() | ast.Attribute():
            yield _word(annotation)


def _flags(arguments: ast.Module, rows: Rows) -> Iterator[tuple[str, dict[str, Any]]]:
    """What each flag makes of its value: a class that its annotation names, or that `create_<field>` fills with it."""
    holders = [node for node in arguments.body if isinstance(node, ast.ClassDef) and node.name == "EngineArgs"]
    made = {one.name: one for holder in holders for one in holder.body if isinstance(one, ast.FunctionDef)}
    for node in (each for holder in holders for each in holder.body if isinstance(each, ast.AnnAssign)):
        field = node.target.id if isinstance(node.target, ast.Name) else ""
        flag = "--" + field.replace("_", "-")
        maker = made.get(f"create_{field}")
        of = next((name for name in _alternatives(node.annotation) if name in rows), None)
        of = of or (_filled_by(maker, rows) if maker else None)
        if of is not None:
            yield flag, {"class": of}
            if maker and "replace('-', '_')" in ast.unparse(maker):
                rows[of]["dashes"] = True
    yield from (("--" + one.replace("_", "-"), {"class": one}) for one in (LIMITS, GENERATION) if one in rows)


def _filled_by(maker: ast.FunctionDef, rows: Rows) -> str | None:
    """The class that a function makes of a mapping: `Class(**mapping)`, or `Class.from_dict(mapping)`."""
    for node in ast.walk(maker):
        match node:
            case ast.Call(func=ast.Name(id=name), keywords=[ast.keyword(arg=None)]) if name in rows:
                return name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="from_dict")) if name in rows:
                return name
    return None


def _limits(found: Mapping[str, _Found]) -> Rows:
    """Modalities whose limits are objects; any other modality is taken too."""
    rows: Rows = {}
    for node in (each for one in found.values() for each in one.node.body if isinstance(each, ast.FunctionDef)):
        for test in ast.walk(node) if node.name == "_validate_limit_per_prompt" else ():
            match test:
                case ast.If(
                    test=ast.Compare(comparators=[ast.Constant(value=str(modality))]),
                    body=[ast.Assign(value=ast.Call(func=ast.Name(id=name)))],
                ):
                    rows[f"{LIMITS}.{modality}"] = {"class": name}
    return {LIMITS: {"extra": "taken"}, **rows} if rows else {}


def _generation(found: Mapping[str, _Found]) -> Rows:
    """The defaults of sampling that are taken out of a generation's configuration."""
    for one in found.values():
        for node in ast.walk(one.node):
            match node:
                case ast.Assign(targets=[ast.Name(id="available_params")], value=ast.List(elts=names)):
                    keys = [each.value for each in names if isinstance(each, ast.Constant)]
                    return {GENERATION: {"extra": "ignored"}, **{f"{GENERATION}.{key!s}": {} for key in keys}}
    return {}


def _word(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return None
