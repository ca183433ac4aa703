"""What goes to stdout: one JSON document for programs, text and tables for people; and lines of talk on stderr."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import click

from assay.records.text import shown

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult


def show_json(value: Any) -> None:
    """Print one JSON document; a number that JSON does not have is null."""
    click.echo(json.dumps(_finite(value), indent=2, allow_nan=False))


def show(*parts: RenderableType) -> None:
    """Print renderables; plain strings are printed as they are, neither wrapped nor read as markup.

    No control code of a text gets out: much of it is from files, servers and logs.
    """
    for part in parts:
        if isinstance(part, str):
            click.echo(shown(part))
        else:
            _draw(_Shown(part))


def show_exactly(text: str) -> None:
    """Print what is to be used word for word; only at a terminal, which might obey it, as it can be shown."""
    click.echo(shown(text) if sys.stdout.isatty() else text, nl=not text.endswith("\n"), color=True)


def say(text: str) -> None:
    """Talk, on stderr; as it quotes files and servers, no control code of it gets out either."""
    click.echo(shown(text), err=True)


class _Shown:
    """A renderable without the control codes that were in its texts; its own styles stay."""

    def __init__(self, part: RenderableType) -> None:
        self.part = part

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        for piece in console.render(self.part, options):
            yield piece if piece.control else Segment(shown(piece.text), piece.style)


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
