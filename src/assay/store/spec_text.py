"""A spec as text that teaches: every key with its meaning, taken from the field's own docstring."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Mapping
from inspect import cleandoc, getsource
from itertools import pairwise
from typing import Any, cast, get_args

import tomlkit
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from tomlkit.container import Container
from tomlkit.items import Table

from assay.records.spec import CampaignSpec

_WIDTH = 110
_HEAD = """\
One question about one target. Edit it before the first `assay plan`; after that it stands: thresholds are not
moved once something has been measured. Every key may be left out, its default then holds. A value is the
default unless its comment names another one."""


def spec_text(spec: CampaignSpec, comments: Mapping[str, str]) -> str:
    """Write a spec as commented TOML that reads back as the same spec."""
    document = tomlkit.document()
    _comment(document, _HEAD)
    document.add(tomlkit.nl())
    _fill(document, spec, "", comments)
    return tomlkit.dumps(document)


def _fill(table: Container | Table, record: BaseModel, prefix: str, comments: Mapping[str, str]) -> None:
    """Add a record's fields: plain values first, as TOML wants them, then its tables."""
    fields, told = type(record).model_fields, _docstrings(type(record))
    inner = [name for name in fields if isinstance(getattr(record, name), BaseModel | dict)]
    for name in fields:
        if name not in inner:
            said = told.get(name, f"The {name}.")
            _value(table, name, getattr(record, name), fields[name], (said, comments.get(f"{prefix}{name}", "")))
    for name in inner:
        _table(table, name, getattr(record, name), told.get(name, ""), f"{prefix}{name}", comments)


def _docstrings(kind: type[BaseModel]) -> dict[str, str]:
    """The docstring under each field. Read from the source here, where it is shown, and not whenever Assay starts."""
    [body] = [node.body for node in ast.parse(textwrap.dedent(getsource(kind))).body if isinstance(node, ast.ClassDef)]
    return {
        field.target.id: told.value.value
        for field, told in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(told, ast.Expr) and isinstance(told.value, ast.Constant) and isinstance(told.value.value, str)
    }


def _value(table: Container | Table, name: str, value: Any, field: FieldInfo, told: tuple[str, str]) -> None:
    """`told`: what the field means, and what is to be said besides."""
    _comment(table, f"{_flowing(told[0])}{_default_of(field, value)}")
    _comment(table, told[1])
    if value is None and _is_table(field):
        return  # its description shows one
    if value is None:
        _comment(table, f"{name} = {json.dumps((field.examples or ['...'])[0])}")  # TOML has no null
    else:
        table.add(name, _item(value))


def _is_table(field: FieldInfo) -> bool:
    """Whether a field that may be absent is a record."""
    return any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in get_args(field.annotation))


def _default_of(field: FieldInfo, value: Any) -> str:
    """A sentence about the default, where the value is another one."""
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    if field.is_required() or value == default:
        return ""
    return " Default: unset." if default is None else f" Default: {json.dumps(default)}."


def _item(value: Any) -> Any:
    """As TOML has it; records in a list become inline tables, one a line."""
    if not isinstance(value, list) or not any(isinstance(one, BaseModel) for one in value):
        return tomlkit.item(list(value) if isinstance(value, tuple) else value)
    rows = tomlkit.array().multiline(multiline=True)
    for one in value:
        row = tomlkit.inline_table()
        row.update(one.model_dump(mode="json", exclude_none=True))
        rows.append(row)
    return rows


def _table(
    outer: Container | Table,
    name: str,
    value: BaseModel | dict[str, Any],
    said: str,
    dotted: str,
    comments: Mapping[str, str],
) -> None:
    table = tomlkit.table()
    _comment(table, _flowing(said or (isinstance(value, BaseModel) and type(value).__doc__) or ""))
    _comment(table, comments.get(dotted, ""))
    if isinstance(value, BaseModel):
        table.add(tomlkit.nl())
        _fill(table, value, f"{dotted}.", comments)
    else:
        for key, item in value.items():
            _comment(table, comments.get(f"{dotted}.{key}", ""))
            table.add(key, tomlkit.item(item))
    outer.add(tomlkit.nl())
    outer.add(name, table)


def _flowing(docstring: str) -> str:
    """Its paragraphs without their own line ends, which are those of a wider text; a sample (`key = ...`) keeps its."""
    return re.sub(r"(?<!\n)\n(?!\n|\w+ = )", " ", cleandoc(docstring)).replace("\n\n", "\n")


def _comment(table: Container | Table, text: str) -> None:
    for paragraph in cleandoc(text).splitlines():
        for line in textwrap.wrap(paragraph, _WIDTH, break_long_words=False):
            cast("Container", table).add(tomlkit.comment(line))
