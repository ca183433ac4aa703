"""Where SGLang declares its flags: `add_argument` calls in server_args.py, and from 0.5.16 on annotated fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.flag_histories.annotations import kind_of
from benchmarks.flag_histories.calls import act, calls, deprecation, flag, read_as, several
from benchmarks.flag_histories.constants import UNKNOWN, Source, annotated, last_word, parsed
from benchmarks.flag_histories.declared import Declared, plain_default

PACKAGE = "sglang"
RUNTIME = "srt"
ARGUMENTS = "server_args.py"
GROUPS = "arg_groups"
FIELDS = "arg_groups/fields"
CHOICES = (
    "utils/common.py", "utils.py", "lora/lora_registry.py", "layers/attention/attention_registry.py",
    "layers/moe/utils.py", "model_executor/cuda_graph_config.py", "speculative/spec_info.py", "connector/__init__.py",
    "configs/load_config.py",
)  # fmt: skip
"""Where lists of choices stand that the arguments name, in one version or another."""
ARGUMENT, DERIVED = "Arg", "Derived"
"""What a field's annotation holds besides its type: how it is an argument, or that it is none."""
Words = Mapping[str, ast.expr]


def declared(root: Path) -> list[Declared]:
    """Every flag of the server, from the folder of the unpacked package."""
    runtime = root / RUNTIME
    main = runtime / ARGUMENTS
    tree = parsed(main)
    if tree is None:
        return []
    source = Source()
    source.load([main, *sorted((runtime / GROUPS).rglob("*.py"))])
    source.load(runtime / name for name in CHOICES if (runtime / name).exists())
    found = [one for call in calls(tree) if (one := flag(source, call))]
    known = {name for one in found for name in one.names}
    fields = [one for holder in _holders(tree, runtime) for one in _fields(source, holder)]
    return [*found, *(one for one in fields if one.names[0] not in known)]


def _holders(tree: ast.Module, runtime: Path) -> Iterator[ast.ClassDef]:
    """Classes whose annotated fields are flags."""
    yield from (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ServerArgs")
    for path in sorted((runtime / FIELDS).glob("*.py")):
        module = parsed(path)
        yield from (node for node in (module.body if module else []) if isinstance(node, ast.ClassDef))


def _fields(source: Source, holder: ast.ClassDef) -> Iterator[Declared]:
    for node in annotated(holder):
        parts = _parts(node.annotation)
        if parts and isinstance(node.target, ast.Name) and (words := _words(parts)) is not None:
            one = _field(source, node.target.id, parts, words)
            if one is not None:
                one.default = plain_default(source.value(node.value)) if node.value is not None else UNKNOWN
                yield one


def _parts(annotation: ast.expr) -> list[ast.expr]:
    """What stands in `A[type, ...]`, also where the annotation is a text; nothing for every other annotation."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    match annotation:
        case ast.Subscript(value=base, slice=ast.Tuple(elts=parts)) if last_word(base) in {"A", "Annotated"}:
            return list(parts)
    return []


def _words(parts: list[ast.expr]) -> Words | None:
    """Keywords of `Arg(...)`, none where a help text alone makes an argument of a field; None for what is none."""
    made = [part for part in parts[1:] if isinstance(part, ast.Call)]
    if any(last_word(one.func) == DERIVED for one in made):
        return None
    argument = next((one for one in made if last_word(one.func) == ARGUMENT), None)
    if argument is not None:
        return {word.arg: word.value for word in argument.keywords if word.arg is not None}
    texts = (ast.Constant, ast.JoinedStr, ast.BinOp)
    return {} if any(isinstance(part, texts) for part in parts[1:]) else None


def _field(source: Source, name: str, parts: list[ast.expr], words: Words) -> Declared | None:
    if source.value(words.get("no_cli")) is True:
        return None
    main = source.value(words.get("cli_name"))
    aliases = source.value(words.get("aliases"))
    own = main if isinstance(main, str) else "--" + name.replace("_", "-")
    kind = kind_of(source, parts[0])
    one = Declared(names=[own, *(aliases if isinstance(aliases, list) else [])], dest=name)
    one.kind = _plain(kind.name, parsed_by_hand="type_parser" in words)
    one.choices = [each for each in kind.choices if each is not None] if kind.choices is not None else None
    _worded(source, one, words)
    text = source.value(words["help"]) if "help" in words else source.value(parts[1])
    one.help = deprecation(text if isinstance(text, str) else "")
    return one


def _plain(kind: str, *, parsed_by_hand: bool) -> str:
    if kind == "bool" and not parsed_by_hand:
        return "switch"
    is_text = kind.startswith(("bool|", "list:json")) or kind == "json"
    return "str" if is_text else kind


def _worded(source: Source, one: Declared, words: Words) -> None:
    """With what `Arg(...)` says."""
    if "type_parser" in words:
        one.kind = "json" if ast.unparse(words["type_parser"]).startswith("json") else read_as(words["type_parser"])
    if "choices" in words:
        choices = source.value(words["choices"])
        one.choices = choices if isinstance(choices, list) else None
    if "nargs" in words:
        number = source.value(words["nargs"])
        several(one, number if number in ("*", "+", "?") else None)
    if "action" in words:
        act(one, ast.unparse(words["action"]))
    extra = words.get("action_kwargs")
    if isinstance(extra, ast.Dict):
        pairs = zip(extra.keys, extra.values, strict=True)
        given = {str(source.value(key)): source.value(value) for key, value in pairs}
        one.new = given["new_flag"] if isinstance(given.get("new_flag"), str) else one.new
