"""Ceilings of GPUs and processors, as a characterization shows them in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from assay.records.ceilings import Ceilings, GpuCeilings, Measurement
from assay.render import estimate_words as words
from assay.render.gpu_ceilings_rows import gpu_rows
from assay.render.grids import labelled, plain_table
from assay.render.words import NOTHING, number_words

DISTURBED = "~"
"""Beside a value that was measured while others used the processors."""
GIGA = 1e9


def gpu_ceilings(found: GpuCeilings) -> Iterator[RenderableType]:
    """Of one GPU, and what could not be measured."""
    where = "measured here" if found.fingerprint else "from a file"
    yield Text(f"ceilings of one GPU, {where} ({found.about})")
    yield labelled(list(gpu_rows(found)))
    for name, reason in found.problems.items():
        yield Text(f"not measured: {name}: {reason}", style="yellow")


def cpu_ceilings(ceilings: Ceilings) -> Iterator[RenderableType]:
    """Of the processors, and which of the numbers are doubtful."""
    yield Text(f"ceilings, measured here ({ceilings.library or 'no llama.cpp kernels'})")
    yield labelled([*_memory_rows(ceilings), *_cost_rows(ceilings)])
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
