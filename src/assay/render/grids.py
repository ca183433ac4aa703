"""Tables and lists in the terminal that several views share."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.table import Table
from rich.text import Text


def plain_table(*headings: str) -> Table:
    """A table with a line below its headings: names on the left, numbers to the right."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True, vertical="bottom")
    return table


def bullets(sentences: Iterable[str]) -> Table:
    """A list; what does not fit goes on under its own text."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for sentence in sentences:
        grid.add_row("-", Text(sentence))
    return grid


def labelled(rows: Iterable[tuple[str, str]]) -> Table:
    """Names on the left, a sentence beside each."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=11)
    grid.add_column(overflow="fold")
    for name, sentence in rows:
        grid.add_row(Text(name), Text(sentence))
    return grid


def bar(share: float, width: int) -> str:
    """At least a sliver of what is above zero, so that nothing is hidden."""
    if share <= 0:
        return ""
    eighths = max(1, round(8 * width * min(share, 1.0)))
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]
