"""A characterization in the terminal; readable without colour and at 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assay.records.attribution import Attribution, Characterization, TraceFacts
from assay.records.ceilings import Ceilings, GpuCeilings, Measurement
from assay.records.estimate import OperatingPoint, StepEstimate
from assay.render import estimate_words as words
from assay.render.bench_words import time_words
from assay.render.gpu_ceilings_rows import gpu_rows
from assay.render.grids import bullets, plain_table
from assay.render.held_loads_view import held_loads_view
from assay.render.held_view import held_view, steps_view
from assay.render.words import NOTHING, number_words

BAR = 30
DISTURBED = "~"
"""Beside a value that was measured while others used the processors."""
LITTLE_SHARE = 0.01
MOST_MECHANISMS = 6
GIGA, MEGA = 1e9, 1e6
STYLE = {"floor": "green", "unexplained": "yellow"}
NAME_WIDTH = 44
EVIDENCE_INDENT = 20


def characterize_view(found: Characterization) -> RenderableType:
    """Ceilings, model, roofline, and the measured run split by cause."""
    parts: list[RenderableType] = [Text(found.machine, style="bold")]
    if found.gpu_ceilings is not None:
        parts += _gpu(found.gpu_ceilings)
    if found.ceilings is not None:
        parts += _ceilings(found.ceilings)
    if found.model is not None:
        parts += [Text(""), Text(found.model, style="bold"), Text(_model_words(found))]
    if found.points:
        parts += [Text(""), Text(_points_title(found), style="bold"), _points(found)]
        step = found.run_point or found.points[0]
        parts += [Text(""), Text(f"where a step goes: {_point_words(step.point)}", style="bold"), _operations(step)]
    parts += _mechanisms(found)
    parts += _run(found)
    parts += held_loads_view(found.held_loads)
    if found.trace is not None:
        parts += _trace(found.trace)
        if found.held is not None:
            parts += held_view(found.held, found.trace)
        elif found.trace.decode is not None:
            parts += steps_view(found.trace.decode)
    for attribution in found.attributions:
        parts += _attribution(attribution)
    held = found.held.notes if found.held else []
    notes = list(dict.fromkeys([*found.notes, *held, *(note for each in found.attributions for note in each.notes)]))
    if notes:
        parts += [Text("\nto know", style="bold"), bullets(notes)]
    return Group(*parts)


def _gpu(found: GpuCeilings) -> Iterator[RenderableType]:
    where = "measured here" if found.fingerprint else "from a file"
    yield Text(f"ceilings of one GPU, {where} ({found.about})")
    yield _grid(list(gpu_rows(found)))
    for name, reason in found.problems.items():
        yield Text(f"not measured: {name}: {reason}", style="yellow")


def _ceilings(ceilings: Ceilings) -> Iterator[RenderableType]:
    yield Text(f"ceilings, measured here ({ceilings.library or 'no llama.cpp kernels'})")
    yield _grid([*_memory_rows(ceilings), *_cost_rows(ceilings)])
    if ceilings.storages:
        yield _products(ceilings)
    drowned, doubtful = len(ceilings.unusable), len(ceilings.untrusted) - len(ceilings.unusable)
    if doubtful:
        yield Text(f"{DISTURBED} {doubtful} may be too low: other processes ran meanwhile", style="yellow")
    if drowned:
        yield Text(
            f"{NOTHING} {drowned} say nothing: other processes ran all the time, or a result was wrong", style="yellow"
        )
    if doubtful or drowned:
        yield Text("  the same command measures these anew; give it a quiet machine", style="yellow")
    for name, reason in ceilings.missing.items():
        yield Text(f"not measured: {name}: {reason}", style="yellow")


def _memory_rows(ceilings: Ceilings) -> Iterator[tuple[str, str]]:
    for name, label in (("memory_read", "memory read"), ("memory_copy", "memory copy"), ("disk_read", "disk read")):
        usable = (one for one in ceilings.measurements if one.name == name and one.usable)
        found = sorted(usable, key=lambda one: one.threads)
        if not found:
            continue
        told = [f"{_giga(one)} GB/s {_where(one)}" for one in found]
        extra = f" ({found[0].check.partition('; ')[2]})" if name == "disk_read" else ""
        yield label, ", ".join(told) + extra


def _where(one: Measurement) -> str:
    threads = f"with {one.threads} thread{'s' if one.threads > 1 else ''}"
    return threads if one.numa_node is None else f"{threads} on node {one.numa_node}"


def _cost_rows(ceilings: Ceilings) -> Iterator[tuple[str, str]]:
    told = []
    for name, label in (("product_start", "product"), ("graph_node", "other operation")):
        found = [one for one in ceilings.measurements if one.name == name and one.usable]
        told += [f"{label} {1e6 * one.median:.2f} µs {_where(one)}" for one in sorted(found, key=lambda x: x.threads)]
    if told:
        yield "start of a", ", ".join(told)


def _products(ceilings: Ceilings) -> Table:
    """A row for each type of weights: what streaming them reaches, and what their arithmetic could."""
    most = max(ceilings.threads("matvec_streamed", ceilings.storages[0]), default=1)
    table = plain_table()
    table.add_column("\nweights", no_wrap=True)
    for heading in [f"GB/s\n{count} thr." for count in sorted({1, most})]:
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("GFLOP/s\ndecode", "GFLOP/s\nprefill", "decode is bound by\n(share of memory read)"):
        table.add_column(heading, justify="right" if "GFLOP" in heading else "left", no_wrap=True)
    for storage in ceilings.storages:
        counts = sorted({1, most})
        streamed = [ceilings.find("matvec_streamed", count, storage) for count in counts]
        cached = ceilings.find("matvec_cached", most, storage)
        wide = [
            one for one in ceilings.measurements if (one.name, one.storage, one.threads) == ("matmul", storage, most)
        ]
        table.add_row(
            f"{storage}{_repacked(streamed[-1])}",
            *(_giga(one) for one in streamed),
            _giga(cached),
            _giga(max(wide, key=lambda one: one.columns, default=None)),
            _binds(ceilings, streamed[-1], most),
        )
    return table


def _binds(ceilings: Ceilings, streamed: Measurement | None, threads: int) -> str:
    """Whether streaming such weights comes near to plain reads."""
    read = ceilings.find("memory_read", threads)
    if streamed is None or read is None:
        return NOTHING
    share = streamed.best / read.best
    return f"{'memory' if share > 0.85 else 'arithmetic'} ({words.percent_words(share)})"  # noqa: PLR2004


def _repacked(one: Measurement | None) -> str:
    return " (repacked)" if one and str(one.conditions.get("kernel", "")).endswith("REPACK") else ""


def _giga(one: Measurement | None) -> str:
    """The ceiling, not the middle."""
    if one is None or not one.usable:
        return NOTHING
    return number_words(one.best / GIGA) + ("" if one.trusted else DISTURBED)


def _model_words(found: Characterization) -> str:
    facts = found.model_facts
    active = (
        "" if facts["experts"] == "none" else f", {words.parameter_words(float(facts['active_parameters']))} active"
    )
    return (
        f"{facts['architecture']}, {words.parameter_words(float(facts['parameters']))} parameters{active} "
        f"({facts['storage']}), weights {words.size_words(float(facts['weight_bytes']))}, "
        f"{number_words(float(facts['cache_bytes_per_token']))} bytes of cache a token"
    )


def _points_title(found: Characterization) -> str:
    return f"roofline{f' with {found.threads} threads' if found.threads else ''}"


def _points(found: Characterization) -> Table:
    table = plain_table()
    table.add_column("\nstep", no_wrap=True)
    for heading in ("expected\ntokens/s", "ceiling\ntokens/s", "step\nms"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("\nbound", no_wrap=True)
    if found.memory_floors_s:
        table.add_column("ceiling of\nmemory alone", justify="right", no_wrap=True)
    for index, step in enumerate(found.points):
        floors = found.memory_floors_s[index : index + 1]
        table.add_row(
            _point_words(step.point),
            words.expected_words(step.tokens_per_s),
            number_words(step.ceiling_tokens_per_s),
            words.rounded_words(1e3 * step.time_s.mid),
            step.bound,
            *(number_words(step.point.tokens / floor if floor else None) for floor in floors),
        )
    return table


def _point_words(point: OperatingPoint) -> str:
    if point.phase == "prefill":
        return f"prefill of {point.new_tokens:,}"
    return f"decode {point.sequences} at {point.context_tokens:,}"


def _operations(step: StepEstimate) -> Table:
    """Longest first; what is small is summed up."""
    table = plain_table()
    table.add_column("operation", no_wrap=True)
    for heading in ("ms", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("bound", no_wrap=True)
    table.add_column("of floor", justify="right", no_wrap=True)
    shown = [op for op in step.ops if step.share(op) >= LITTLE_SHARE]
    rest = [op for op in step.ops if step.share(op) < LITTLE_SHARE]
    for op in shown:
        cells = (
            op.name.replace(".weight", "")[:NAME_WIDTH],
            words.rounded_words(1e3 * op.time_s.mid),
            step.share(op),
            op.bound,
        )
        _bar_row(table, cells, words.percent_words(op.speed_of_light if op.floor_s else None))
    if rest:
        small_s = sum(op.time_s.mid for op in rest)
        share = small_s / step.time_s.mid if step.time_s.mid else 0.0
        _bar_row(table, (f"{len(rest)} more", words.rounded_words(1e3 * small_s), share, ""), "")
    share = step.overhead_s.mid / step.time_s.mid if step.time_s.mid else 0.0
    _bar_row(table, ("outside of kernels", words.rounded_words(1e3 * step.overhead_s.mid), share, "host"), "")
    return table


def _bar_row(table: Table, cells: tuple[str, str, float, str], last: str) -> None:
    name, time_ms, share, bound = cells
    table.add_row(name, time_ms, words.percent_words(share), _bar(share, BAR // 2), bound, last)


def _mechanisms(found: Characterization) -> Iterator[RenderableType]:
    """The most that each could be worth, where it can act at all."""
    acting = [one for one in found.mechanisms if one.applies][:MOST_MECHANISMS]
    if not acting:
        return
    step = found.run_point or found.points[-2]
    yield Text("")
    yield Text(f"what would help at most: {_point_words(step.point)}", style="bold")
    yield _grid((f"{words.ceiling_words(one):>6}", words.mechanism_title(one)) for one in acting)


def _run(found: Characterization) -> Iterator[RenderableType]:
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


def _trace(trace: TraceFacts) -> Iterator[RenderableType]:
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


def _attribution(found: Attribution) -> Iterator[RenderableType]:
    yield Text("")
    yield Text(f"{found.what}: {time_words(found.measured_s)}", style="bold")
    for part in found.parts:
        line = _bar_line(part.cause, part.seconds, found.share(part), part.basis)
        line.stylize(STYLE.get(part.cause, ""))
        yield line
        yield Padding(Text(part.evidence, style="dim"), (0, 0, 0, EVIDENCE_INDENT))


def _bar_line(name: str, seconds: float, share: float, basis: str) -> Text:
    told = f"{time_words(seconds):>9} {words.percent_words(share):>5}"
    return Text(f"{name:<19} {_bar(share, BAR):<{BAR}} {told}  {basis}".rstrip(), no_wrap=True)


def _bar(share: float, width: int) -> str:
    """At least a sliver of what is above zero, so that nothing is hidden."""
    if share <= 0:
        return ""
    eighths = max(1, round(8 * width * min(share, 1.0)))
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


def _grid(rows: Iterable[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=11)
    grid.add_column(overflow="fold")
    for name, sentence in rows:
        grid.add_row(Text(name), Text(sentence))
    return grid
