"""Results of other load testers in the terminal: one table a run, or one a latency when there are several runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assay.records.imported import LATENCIES, STATISTICS, Compared, ImportedLatency, ImportedResult, Rates, Repetitions
from assay.render import words

HEADINGS = ["count", *STATISTICS, "theirs", "recomputed?"]
NAMES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E"}
RATES = {
    "requests_per_s": "requests/s",
    "output_tokens_per_s": "output tokens/s",
    "total_tokens_per_s": "tokens/s",
    "goodput_per_s": "good requests/s",
}
AS_TOLD = "as told"
AGREES = "agree"
SAME_SHARE = 1e-3
"""Below this a throughput of ours and theirs are shown as one."""
NEAR_SHARES = (1e-4, 1e-3, 1e-2)
"""Relative differences that are given as such, the smallest that holds; above them the tool's values are shown."""
INDENT = 4


def imported_view(results: Sequence[ImportedResult]) -> RenderableType:
    """Every run: facts, latencies in milliseconds, warnings."""
    if len(results) == 1:
        return Group(_title(results[0]), *_facts(results[0]), *_latencies(results[0]), *_notes(results[0]))
    shared: list[RenderableType] = []
    for number, result in enumerate(results, start=1):
        shared += [Text.assemble((f"[{number}] ", "bold"), _title(result)), *_facts(result)]
    shared += _by_latency(results)
    for number, result in enumerate(results, start=1):
        shared += [Text(f"[{number}]", style="bold"), *_notes(result)]
    return Group(*shared)


def _title(result: ImportedResult) -> Text:
    name = Path(result.file).name
    place = f"{name}, run {result.index + 1}" if result.index else name
    tool = " ".join(part for part in (result.tool, result.tool_version) if part)
    return Text.assemble((place, "bold"), f": {tool}, {result.model or 'model not told'}")


def _facts(result: ImportedResult) -> list[RenderableType]:
    """Settings, counts, throughputs: a line each."""
    settings = ", ".join(_setting(name, value) for name, value in result.settings.items())
    counted = [
        f"{count:,} {what}"
        for what, count in (
            ("requests", result.num_requests),
            ("completed", result.completed),
            ("failed", result.failed),
        )
        if count is not None
    ]
    if result.duration_s is not None:
        counted.append(f"{words.number_words(result.duration_s)} s")
    found = result.repetitions
    measured = _repetitions(found) if found else _rates(result.rates, result.tool_rates)
    return [_indented(Text(line)) for line in (settings, ", ".join(counted), measured) if line]


def _setting(name: str, value: str | float) -> str:
    if name == "rate_per_s":
        return f"rate {value}" if isinstance(value, str) else f"rate {value:g}/s"
    return f"{name.replace('_', ' ')} {value}"


def _rates(ours: Rates, theirs: Rates) -> str:
    """Each throughput once; the tool's own beside it where it differs."""
    parts = []
    for name, unit in RATES.items():
        one, other = getattr(ours, name), getattr(theirs, name)
        if one is None and other is None:
            continue
        told = f"{words.number_words(other if one is None else one)} {unit}"
        if one is None:
            told += f" ({AS_TOLD})"
        elif other is not None and abs(one - other) > SAME_SHARE * abs(other):
            told += f" (theirs: {words.number_words(other)})"
        parts.append(told)
    return ", ".join(parts)


def _repetitions(found: Repetitions) -> str:
    mean = found.tool_mean_per_s if found.mean_per_s is None else found.mean_per_s
    spread = found.tool_sd_per_s if found.sd_per_s is None else found.sd_per_s
    told = f"{words.number_words(mean)} ± {words.number_words(spread)} {found.what}"
    count = len(found.values_per_s)
    if not count:
        return f"{told} ({AS_TOLD})"
    theirs = "" if found.agrees is None else f", theirs {AGREES}s" if found.agrees else ", theirs differs"
    return f"{told} over {count} repetition{'' if count == 1 else 's'}{theirs}"


def _latencies(result: ImportedResult) -> list[RenderableType]:
    """The table of one run, a row each; nothing when there is no latency at all."""
    if not any(latency.shown for latency in result.latencies):
        return []
    table = _table("ms")
    for latency in result.latencies:
        _row(table, NAMES[latency.name], latency)
    return [table]


def _by_latency(results: Sequence[ImportedResult]) -> list[RenderableType]:
    """One table a latency, a row a run: what is to be compared stands in one column."""
    found: list[RenderableType] = []
    for name in LATENCIES:
        rows = [(number, result.latency(name)) for number, result in enumerate(results, start=1)]
        if not any(latency.shown for _, latency in rows):
            continue
        table = _table(f"{NAMES[name]} ms")
        for number, latency in rows:
            _row(table, f"[{number}]", latency)
        found.append(table)
    return found


def _table(first: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column(first, no_wrap=True)
    for heading in HEADINGS[:-2]:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(HEADINGS[-2], overflow="fold")
    table.add_column(HEADINGS[-1], overflow="fold")
    return table


def _row(table: Table, label: str, latency: ImportedLatency) -> None:
    shown = latency.shown
    count = words.NOTHING if shown is None or shown.num_samples is None else f"{shown.num_samples:,}"
    values = [words.milliseconds_words(shown.value(name) if shown else None) for name in STATISTICS]
    recomputed = "yes" if latency.recomputed else "no"
    style = "" if latency.recomputed else "dim"
    table.add_row(label, count, *values, _theirs(latency), recomputed, style=style)


def _theirs(latency: ImportedLatency) -> str:
    """Whether the tool's own numbers agree, how nearly, or what they are."""
    if not latency.recomputed:
        return AS_TOLD if latency.tool_said else words.NOTHING
    if latency.agrees is None:
        return words.NOTHING
    if latency.agrees:
        return AGREES
    worst = max(_off(one) for one in latency.comparison)
    near = next((share for share in NEAR_SHARES if worst <= share), None)
    if near is not None:
        return f"within {100 * near:g}%"
    far = [one for one in latency.comparison if _off(one) > NEAR_SHARES[-1]]
    return ", ".join(f"{one.statistic} {words.milliseconds_words(one.theirs_s)}" for one in far)


def _off(one: Compared) -> float:
    """The difference as a share of the tool's value."""
    difference = abs(one.ours_s - one.theirs_s)
    return difference / abs(one.theirs_s) if one.theirs_s else math.inf if difference else 0.0


def _notes(result: ImportedResult) -> list[RenderableType]:
    """What the numbers mean where they are not ours, what is missing, and the warnings."""
    notes: list[str] = []
    reasons: dict[str, list[str]] = {}
    for latency in result.latencies:
        name = NAMES[latency.name]
        if latency.why_not:
            reasons.setdefault(latency.why_not, []).append(name)
        if not latency.recomputed and latency.tool_said:
            notes.append(f"{name} is {latency.tool_definition}")
        elif latency.agrees is False:
            notes.append(f"{name} differs: ours is {latency.definition}; theirs is {latency.tool_definition}")
    notes += [f"{', '.join(names)} not recomputed: {why}" for why, names in reasons.items()]
    said = [Text(note, style="dim") for note in notes]
    warned = [Text.assemble(("warning: ", "yellow"), warning) for warning in result.warnings]
    return [_indented(text) for text in said + warned]


def _indented(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, INDENT), expand=False)
