"""YAML front matter without YAML's traps: what a person reads in it is what Assay reads.

YAML 1.1 turns `off` into false, `0x3` into 3, `1:30` into 90 and `2026-01-01` into a date; the same spellings are
values of engine flags. Here only true and false are booleans, only decimal numbers are numbers, and the rest is text.
Strings are written in quotes wherever *any* YAML reader could take them for something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from assay.errors import UsageError

DEEPEST = 20
"""Brackets in brackets: a document has three."""
FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
BOOLEAN = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
INTEGER = re.compile(r"^[-+]?[0-9]+$")
REAL = re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$|^[-+]?\.inf$|^\.nan$")
NULL = re.compile(r"^(?:~|null|Null|NULL|)$")
BARE = re.compile(r"^(?:on|off|yes|no)$", re.IGNORECASE)
"""Words that YAML 1.1 readers take for booleans."""
RULES: tuple[tuple[str, re.Pattern[str], list[str]], ...] = (
    ("tag:yaml.org,2002:bool", BOOLEAN, list("tTfF")),
    ("tag:yaml.org,2002:int", INTEGER, list("-+0123456789")),
    ("tag:yaml.org,2002:float", REAL, list("-+.0123456789")),
    ("tag:yaml.org,2002:null", NULL, ["~", "n", "N", ""]),
)


class _Loader(yaml.SafeLoader):
    """Only the rules above; keys may not be repeated, and brackets not be nested deeper than anybody writes them."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own way to configure a loader

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        """Refuse depth while it is scanned: the scanner looks at every open bracket again for each token."""
        if self.flow_level >= DEEPEST:
            problem = f"brackets are nested deeper than {DEEPEST}"
            raise yaml.scanner.ScannerError(None, None, problem, self.get_mark())
        super().fetch_flow_collection_start(token)


class _Dumper(yaml.SafeDumper):
    """YAML 1.1's rules and ours: a string that either takes for something else is quoted."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the same text twice is clearer than an anchor
        return True


def _ranges_on_one_line(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.Node:
    numbers = all(isinstance(item, int | float) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=numbers)


def _escaped_where_invisible(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """PyYAML folds odd line breaks (U+0085, U+2028) away in plain and single-quoted style."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _escaped_where_invisible)
_Dumper.add_representer(list, _ranges_on_one_line)
for _tag, _pattern, _first in RULES:
    _Loader.add_implicit_resolver(_tag, _pattern, _first)
    _Dumper.add_implicit_resolver(_tag, _pattern, _first)


def _decimal(loader: _Loader, node: yaml.ScalarNode) -> int:
    return int(str(loader.construct_scalar(node)))  # SafeLoader would read 010 as 8


_Loader.add_constructor("tag:yaml.org,2002:int", _decimal)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """The parsed header of a document, and the lines its keys stand on."""

    values: dict[str, Any]
    lines: dict[tuple[str | int, ...], int]
    """Path of keys to line in the file, counted from 1."""
    bare: list[tuple[str | int, ...]]
    """Paths whose value is an unquoted on, off, yes or no."""
    body: str

    def line(self, path: Sequence[str | int]) -> int:
        """Line of the innermost key on a path that is in the text; 1 when none is."""
        for length in range(len(path), 0, -1):
            if (found := self.lines.get(tuple(path[:length]))) is not None:
                return found
        return 1


def dump(values: dict[str, Any], body: str) -> str:
    """A whole document."""
    header = yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return f"---\n{header}---\n\n{body}"


def parse(text: str, place: str) -> FrontMatter:
    """Split and parse a document.

    Args:
        text: all of it.
        place: its name, for messages.

    Raises:
        UsageError: there is no front matter, it is no YAML, or a key stands twice; names the line.
    """
    hint = "mend the front matter between the two --- lines; values with : # or quotes need quotes around them"
    fences = list(FENCE.finditer(text))[:2]
    if not fences or text[: fences[0].start()].strip():
        raise UsageError(f"{place}:1: it has no front matter", hint="begin it with ---, `id:`, `title:`, `flags:`, ---")
    if len(fences) == 1:
        raise UsageError(f"{place}:1: the front matter has no end", hint="put a line --- after the last key")
    above = text[: fences[0].end()].count("\n")
    try:
        loader = _Loader(text[fences[0].end() : fences[1].start()])
    except yaml.YAMLError as error:  # a character that YAML does not take is met before anything is parsed
        line = above + 1 + text[fences[0].end() :][: getattr(error, "position", 0)].count("\n")
        raise UsageError(f"{place}:{line}: a character that YAML does not take", hint=hint) from error
    try:
        node = loader.get_single_node()
        found = FrontMatter(values={}, lines={}, bare=[], body=text[fences[1].end() :])
        if not isinstance(node, yaml.MappingNode):
            line = above + 1 + (node.start_mark.line if node else 0)
            raise UsageError(f"{place}:{line}: the front matter holds no `key: value` lines", hint=hint)
        _walk(node, (), above, found, place)
        found.values.update(loader.construct_document(node))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = above + 1 + (mark.line if mark else 0)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise UsageError(f"{place}:{line}: the YAML breaks on this line: {problem}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}:{above + 1}: the front matter cannot be read: {error}", hint=hint) from error
    finally:
        loader.dispose()
    return found


def _walk(node: yaml.Node, path: tuple[str | int, ...], above: int, found: FrontMatter, place: str) -> None:
    """Note the line of each key and each bare word, and refuse keys that stand twice."""
    found.lines.setdefault(path, above + 1 + node.start_mark.line)
    if isinstance(node, yaml.ScalarNode):
        if node.style is None and BARE.match(node.value):
            found.bare.append(path)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _walk(item, (*path, index), above, found, place)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, str(key.value))
            line = above + 1 + key.start_mark.line
            if inner in found.lines:
                raise UsageError(
                    f"{place}:{line}: the key {'.'.join(map(str, inner))} stands twice (first on line "
                    f"{found.lines[inner]})",
                    hint="remove one of them",
                )
            found.lines[inner] = line
            _walk(value, inner, above, found, place)
