"""A command whose help teaches: what it does, what it needs first, examples, exit codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

NO_CAMPAIGN = {2: "there is no campaign in this folder"}
UNREADABLE = {6: "the record cannot be read"}


class TeachingCommand(click.Command):
    """A click command with the parts of a good help as fields, so that tests and the reference can read them."""

    def __init__(
        self, *args: Any, needs: str, examples: Sequence[str], exits: Mapping[int, str], **fields: Any
    ) -> None:
        super().__init__(*args, **fields)
        self.needs = needs
        self.examples = examples
        self.exits = dict(sorted(exits.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """After the options; examples are never wrapped, so that they can be copied."""
        with formatter.section("Needs first"):
            formatter.write_text(self.needs)
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), words) for code, words in self.exits.items()])
