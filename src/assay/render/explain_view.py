"""Why a server failed, in the terminal: the verdict, the quoted line in its place, what to do, what follows."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assay.records.failure import Explanation, LogLine

LONGEST = 240
"""Characters of a line that are shown: a log's lines can be longer than a screen. JSON has them whole."""
NUMBER_WIDTH = 6
STAGES = {
    "arguments": "while reading the arguments",
    "load": "while loading",
    "weights": "while loading the weights",
    "compile": "while compiling",
    "graph-capture": "while capturing CUDA graphs",
    "kv-cache": "while allocating the KV cache",
    "warm-up": "while warming up",
    "under-load": "under load",
    "shutdown": "while shutting down",
    "unknown": "at a stage that the log does not tell",
}


def explain_view(found: Explanation) -> RenderableType:
    """Everything a person needs, the cause first."""
    style = "bold green" if not found.is_failure else "bold red" if found.is_explained else "bold yellow"
    parts: list[RenderableType] = [Text(headline(found), style=style)]
    if found.certainty == "inferred":
        parts.append(Text("inferred: the log stops short of saying so", style="dim"))
    parts.append(Text(""))
    if found.quote is None:
        parts.append(Text(f"nothing to quote in {lines_words(found.num_lines)}", style="dim"))
    else:
        parts.append(Text(f"{found.file}:{found.line}", style="dim"))
        parts.append(_lines(found))
    parts += [Text(""), *_entry("remedy", found.remedy)]
    for note in found.notes:
        parts += _entry("note", note)
    for implication in found.implies:
        parts += _entry("implies", implication.text)
    return Group(*parts)


def headline(found: Explanation) -> str:
    """Cause, meaning and stage in one sentence."""
    if not found.is_failure:
        return found.meaning
    stage = STAGES[found.stage]
    return f"{found.cause} {stage}: {found.meaning}"


def lines_words(count: int) -> str:
    """For example "1 line"."""
    return f"{count} line{'' if count == 1 else 's'}"


def _lines(found: Explanation) -> Table:
    """The quoted line in its place, as a grid: what does not fit goes on under its own text, not under the numbers."""
    width = max([NUMBER_WIDTH, *(len(str(line.number)) for line in found.around)])
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for line in found.around:
        is_quote = line.number == found.line
        mark = f"{'>' if is_quote else ' '} {line.number:>{width}}"
        grid.add_row(Text(mark), _shown(line), style="bold" if is_quote else "dim")
    return grid


def _shown(line: LogLine) -> Text:
    return Text(line.text if len(line.text) <= LONGEST else f"{line.text[:LONGEST]} ...")


def _entry(name: str, text: str) -> list[RenderableType]:
    return [Text(name, style="bold"), Padding(Text(text), (0, 0, 0, 2))]
