"""What the lab found in the terminal: shapes and ceilings first, the table last."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from assay.records.estimate import Range
from assay.records.lab import LabPoint, LabReport, Price, PriceReport, TuneReport
from assay.render.words import NOTHING

KIB = 1024


def lab_view(found: LabReport) -> RenderableType:
    """Shapes, ceilings, tiles, what is missing, floors or measurements, and the verdict between layouts."""
    about = ", ".join(f"{key} {value}" for key, value in found.software.items())
    parts: list[RenderableType] = [
        Text(f"experts of {found.model} on {found.device}{f' ({about})' if about else ''}", style="bold")
    ]
    parts += [Text(found.assumed, style="yellow")] if found.assumed else []
    parts += [Text(f"  {name}: {words}, one rank, one layer") for name, words in found.shapes.items()]
    parts += [Text(f"  {name}: {words}") for name, words in found.ceilings.items()]
    parts += [Text(""), Text("tiles that engines choose, and where they can be had", style="bold"), _tiles(found)]
    parts += [Text(f"not measured: {words}", style="yellow") for words in found.missing]
    parts += [Text(words) for words in found.notes]
    for layout in found.shapes:
        points = [one for one in found.points if one.layout == layout]
        title = f"{layout}: microseconds (share of the floor), cold cache" if points else f"{layout}: floors"
        parts += [Text(""), Text(title, style="bold")]
        parts.append(_measured(points) if points else _floors([one for one in found.floors if one.layout == layout]))
    if found.verdicts:
        parts += [Text(""), Text("which layout, for one layer with experts", style="bold")]
        parts += [Text(f"{one.tokens:>6} tokens: {one.sentence}") for one in found.verdicts]
    return Group(*parts)


def price_view(found: PriceReport) -> RenderableType:
    """What was measured in place of each change, and the table last."""
    title = f"what changes would save in a step of {found.model} {found.layout} on one {found.device}"
    parts: list[RenderableType] = [Text(title, style="bold")]
    first = found.prices[0] if found.prices else None
    if first is not None:
        parts.append(Text(f"  a step of {first.tokens} tokens: {first.step_s * 1e3:.2f} ms, {found.step}"))
    parts += [Text(f"  {one.title}: {one.stand_in or one.problem}") for one in found.prices]
    parts += [Text(f"not measured: {words}", style="yellow") for words in found.missing]
    table = _table("change", "ms a step", "end to end")
    for one in found.prices:
        table.add_row(one.title, *_price(one))
    return Group(*parts, Text(""), table)


def tune_view(found: TuneReport) -> RenderableType:
    """What was tuned, the table, where the file is and how the engine finds it."""
    parts: list[RenderableType] = [
        Text(f"{found.engine} {found.version}'s fused-MoE kernel on {found.device}", style="bold"),
        Text(f"  {found.model} {found.layout}: {found.shape}, one rank; {found.took_s:.0f} s of search"),
        *(Text(words, style="yellow") for words in found.notes),
    ]
    table = _table("tokens", "tuned us", "default us", "gain", "tile", "tried", "pruned")
    for one in found.points:
        tile = "x".join(str(one.config[name]) for name in ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K"))
        rest = f"g{one.config['GROUP_SIZE_M']} w{one.config['num_warps']} s{one.config['num_stages']}"
        default, gain = NOTHING, NOTHING
        if one.default_s is not None:
            default, gain = f"{one.default_s * 1e6:,.1f}", f"{one.default_s / one.time_s - 1:+.1%}"
        cells = (f"{one.tokens:,}", f"{one.time_s * 1e6:,.1f}", default, gain, f"{tile} {rest}")
        table.add_row(*cells, str(one.measured), f"{one.pruned:,}")
    parts.append(table)
    if found.file:
        parts += [Text(f"written: {found.file}"), Text(f"the engine finds it with {found.variable}")]
    parts.append(Text("a faster kernel is not yet a faster server: try the file as a hypothesis of a campaign"))
    return Group(*parts)


def _tiles(found: LabReport) -> Table:
    chips = list(found.tiles[0].problems) if found.tiles else []
    table = _table("tile", "KiB", "flop/B", *chips)
    for one in found.tiles:
        told = [one.problems[chip] or "fits" for chip in chips]
        table.add_row(one.tile, f"{one.smem_bytes / KIB:.0f}", f"{one.flops_per_byte:.0f}", *told)
    return table


def _floors(points: list[LabPoint]) -> Table:
    table = _table("tokens", "experts hit", "pairs", "floor us", "bound")
    for one in points:
        table.add_row(
            f"{one.tokens:,}", f"{one.distinct:.1f}", f"{one.pairs:,.0f}", f"{one.floor_s * 1e6:,.1f}", one.bound
        )
    return table


def _measured(points: list[LabPoint]) -> Table:
    names = list(dict.fromkeys(one.implementation for one in points if one.time_s is not None))
    table = _table("tokens", "experts hit", "floor us", *names)
    for tokens in dict.fromkeys(one.tokens for one in points):
        here = [one for one in points if one.tokens == tokens]
        cells = [next((_cell(one) for one in here if one.implementation == name), NOTHING) for name in names]
        table.add_row(f"{tokens:,}", f"{here[0].distinct:.0f}", f"{here[0].floor_s * 1e6:,.1f}", *cells)
    return table


def _cell(one: LabPoint) -> str:
    if one.time_s is None:
        return NOTHING
    share = one.share_of_floor
    return f"{one.time_s * 1e6:,.1f} (wrong)" if share is None else f"{one.time_s * 1e6:,.1f} ({share:.0%})"


def _price(one: Price) -> Iterator[str]:
    if one.saved_s is None:
        yield NOTHING
        yield "no price"
        return
    yield _range(one.saved_s.scaled(1e3), "{:.3f}")
    yield _range(one.gain.scaled(100), "{:+.1f}%")


def _range(values: Range, form: str) -> str:
    return f"{form.format(values.mid)} ({form.format(values.low)} to {form.format(values.high)})"


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right" if name not in ("tile", "bound") else "left")
    return table
