"""Write docs/cli.md from the commands themselves; `--check` only says whether it is up to date.

python docs/generate_cli.py [--check]
"""  # noqa: INP001 - a script beside what it writes

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from assay.cli import COMMANDS, cli
from assay.cli.command import TeachingCommand

PAGE = Path(__file__).with_name("cli.md")
HEAD = """\
# The command line

Written by `docs/generate_cli.py` from the commands themselves: change their help, not this page.
"""


def reference() -> str:
    """The whole page."""
    lines = [HEAD, *_paragraphs(cli.help), "| command | does |", "|---|---|"]
    lines += [f"| [`assay {name}`](#assay-{name}) | {words} |" for name, (_, words) in COMMANDS.items()]
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert isinstance(command, TeachingCommand)
        lines += ["", *_section(name, command)]
    return "\n".join(lines) + "\n"


def _section(name: str, command: TeachingCommand) -> Iterator[str]:
    yield from (f"## assay {name}", "", *_paragraphs(command.help))
    yield from (f"**Needs first:** {command.needs}", "", "```sh", *command.examples, "```", "")
    yield from ("| option | meaning | default |", "|---|---|---|")
    yield from (_row(option) for option in command.params if isinstance(option, click.Option))
    yield from ("", "| exit code | when |", "|---|---|")
    yield from (f"| {code} | {words} |" for code, words in command.exits.items())


def _row(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=len))
    default = option.show_default if isinstance(option.show_default, str) else ""
    return f"| {names}{_value(option)} | {option.help} | {default} |"


def _value(option: click.Option) -> str:
    """What the option takes, as click would name it, without what differs between versions of click."""
    if option.is_flag:
        return ""
    if isinstance(option.type, click.Choice):
        return " " + ", ".join(f"`{choice}`" for choice in option.type.choices)
    return {"integer range": " NUMBER", "directory": " FOLDER"}.get(option.type.name, " TEXT")


def _paragraphs(text: str | None) -> Iterator[str]:
    for paragraph in inspect.cleandoc(text or "").split("\n\n"):
        yield from (" ".join(paragraph.split()), "")


def main() -> int:
    """Write the page, or say what is wrong with it."""
    text = reference()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"error: {PAGE} is not what the commands say\n\nhint: python {Path(__file__)}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
