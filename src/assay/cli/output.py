"""What goes to stdout: one JSON document for programs, text and tables for people."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import RenderableType


def show_json(value: Any) -> None:
    """Print one JSON document; a number that JSON does not have is null."""
    click.echo(json.dumps(_finite(value), indent=2, allow_nan=False))


def show(*parts: RenderableType) -> None:
    """Print renderables; plain strings are printed as they are, neither wrapped nor read as markup."""
    for part in parts:
        if isinstance(part, str):
            click.echo(part)
        else:
            _draw(part)


def _draw(part: RenderableType) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        console.print(part)
        return
    with console.capture() as drawn:  # in a file or a pipe nobody wants the blanks that fill a line up
        console.print(part)
    click.echo("\n".join(line.rstrip(" ") for line in drawn.get().split("\n")), nl=False)


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
