"""What was measured of a run or a trace, split by cause, as a characterization shows it in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from assay.records.attribution import Attribution, Characterization, TraceFacts
from assay.render import estimate_words as words
from assay.render.bench_words import time_words
from assay.render.grids import bar, plain_table
from assay.render.words import number_words

BAR = 30
STYLE = {"floor": "green", "unexplained": "yellow"}
EVIDENCE_INDENT = 20


def measured_run(found: Characterization) -> Iterator[RenderableType]:
    """What was measured of the run, and how much of the ceilings it used."""
    run, used = found.run, found.efficiency
    if run is None:
        return
    yield Text("")
    yield Text(f"measured: {run.source}", style="bold")
    facts = [
        ("decodes", None if run.sequences is None else f"{run.sequences:.3g} at a time"),
        ("in flight", None if run.in_flight is None else f"{run.in_flight:.3g} requests"),
        ("tokens/s", None if run.output_tokens_per_s is None else number_words(run.output_tokens_per_s)),
        ("TPOT", time_words(run.tpot_s) if run.tpot_s else None),
        ("TTFT", time_words(run.ttft_s) if run.ttft_s else None),
    ]
    yield Text(", ".join(f"{name} {told}" for name, told in facts if told is not None))
    for note in run.notes:
        yield Text(note)
    if used is not None:
        yield Text(
            f"decode at {number_words(used.tokens_per_s)} tokens/s: MBU {words.percent_words(used.mbu)}, MFU "
            f"{words.percent_words(used.mfu)}, {words.percent_words(used.ceiling_share)} of this point's ceiling"
        )


def traced(trace: TraceFacts) -> Iterator[RenderableType]:
    """A profiler's trace: its time by kind, and its longest kernels."""
    yield Text("")
    device = f"{trace.devices} x {trace.device_name or 'device'}"
    yield Text(f"trace: {trace.tool}, {device}, {1e3 * trace.span_s:,.1f} ms", style="bold")
    rows = [
        ("kernels", trace.kernels_s),
        ("communication alone", trace.communication_s),
        ("launch gaps", trace.launch_gaps_s),
        ("idle", trace.idle_s),
    ]
    for name, seconds in rows:
        yield _bar_line(name, seconds, seconds / trace.span_s, "")
    table = plain_table()
    table.add_column("kernel", overflow="ellipsis", no_wrap=True, max_width=56)
    for heading in ("ms", "calls"):
        table.add_column(heading, justify="right", no_wrap=True)
    for kernel in trace.top[:6]:
        table.add_row(Text(kernel.name), words.rounded_words(1e3 * kernel.seconds), f"{kernel.calls:,}")
    yield table
    yield from (Text(note, style="yellow") for note in trace.notes)


def attributed(found: Attribution) -> Iterator[RenderableType]:
    """A measured time by cause, with the evidence."""
    yield Text("")
    yield Text(f"{found.what}: {time_words(found.measured_s)}", style="bold")
    for part in found.parts:
        line = _bar_line(part.cause, part.seconds, found.share(part), part.basis)
        line.stylize(STYLE.get(part.cause, ""))
        yield line
        yield Padding(Text(part.evidence, style="dim"), (0, 0, 0, EVIDENCE_INDENT))


def _bar_line(name: str, seconds: float, share: float, basis: str) -> Text:
    told = f"{time_words(seconds):>9} {words.percent_words(share):>5}"
    return Text(f"{name:<19} {bar(share, BAR):<{BAR}} {told}  {basis}".rstrip(), no_wrap=True)
