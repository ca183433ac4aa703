"""The flat row that vLLM and SGLang share: `mean_ttft_ms` and its like, and arrays with one entry a request.

What is the same in both is read here; what each means by it, and what only one of them does, is in `assay.formats.vllm`
and `assay.formats.sglang`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.formats.arrays import Arrays, read_arrays
from assay.formats.columns import RequestColumns
from assay.formats.definitions import Latencies, latencies
from assay.formats.fields import Fields
from assay.formats.told import Told, compared_all, rates, remarks
from assay.records.imported import STATISTICS, Format, ImportedResult, LatencyName, Rates, Summary

MS = 1_000
CHUNKS_ARE_TOKENS = 0.95
"""Chunks a token from which on a chunk is called a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One of the two."""

    kind: Format
    command: str
    """As one would type it."""
    name: str
    """As people call it."""
    saved_by: str
    """What makes it save the arrays, in words."""
    keys: Mapping[LatencyName, str]
    """Its word for each latency, as in `mean_<word>_ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run as its row has it."""

    tool: Tool
    fields: Fields
    index: int
    """Which row of the file, from 0."""
    arrays: Arrays
    ours: Latencies | None
    """Recomputed; None without arrays."""

    @property
    def columns(self) -> RequestColumns | None:
        """The single requests; None without arrays."""
        return self.arrays.columns

    @property
    def failed(self) -> int | None:
        """As the row says, else as its arrays show; None: not told."""
        told = self.fields.count("failed")
        return self.columns.num_failed if told is None and self.columns else told


def read_row(tool: Tool, fields: Fields, index: int) -> Row:
    """A row with its arrays, and the latencies that they give.

    Raises:
        UsageError: a value has the wrong type.
    """
    arrays = read_arrays(fields)
    ours = latencies(arrays.columns) if arrays.columns else None
    return Row(tool=tool, fields=fields, index=index, arrays=arrays, ours=ours)


def result(
    row: Row,
    *,
    definitions: Mapping[LatencyName, str],
    version: str | None,
    model: str | None,
    settings: dict[str, str | int | float],
    own_warnings: list[str],
) -> ImportedResult:
    """The row under our definitions.

    Args:
        row: as read.
        definitions: what the tool means by each latency.
        version: the tool's.
        model: what it asked for.
        settings: what it tells of the load.
        own_warnings: what is to be said of this tool alone.

    Raises:
        UsageError: a value has the wrong type.
    """
    fields, tool, columns = row.fields, row.tool, row.columns
    told = {name: Told(summary=_told(fields, key), definition=definitions[name]) for name, key in tool.keys.items()}
    completed, failed = fields.count("completed"), row.failed
    return ImportedResult(
        file=fields.file,
        index=row.index,
        kind=tool.kind,
        tool=tool.command,
        tool_version=version,
        model=model,
        settings=settings,
        num_requests=len(columns) if columns else _sum(completed, failed),
        completed=completed,
        failed=failed,
        duration_s=fields.number("duration"),
        rates=_recomputed_rates(fields),
        tool_rates=_tool_rates(fields),
        latencies=compared_all(row.ours, told, {name: row.arrays.why_not(name, tool.saved_by) for name in tool.keys}),
        warnings=[*_shared_warnings(row), *own_warnings],
    )


def chunk_remarks(row: Row) -> list[str]:
    """What the number of gaps says of chunks and tokens."""
    found = row.columns
    if found is None:
        return []
    counted = [(len(found.itl_s[place] or ()), found.output_tokens[place] or 0) for place in found.successes()]
    known = [(gaps, tokens) for gaps, tokens in counted if gaps and tokens]
    if not known:
        return []
    extra = sum(gaps >= tokens for gaps, tokens in known)
    chunks, tokens = sum(gaps + 1 for gaps, _ in known), sum(tokens for _, tokens in known)
    if extra:
        share = f"{extra:,} of {len(known):,} requests"
        reason = "have as many gaps as tokens: chunks without text (role, finish) were counted as tokens"
        return [f"{share} {reason}, so TTFT may be that of an empty chunk and ITL has a gap too many for each"]
    if chunks < CHUNKS_ARE_TOKENS * tokens:
        return [f"a chunk holds {tokens / chunks:.1f} tokens on average: ITL is a time per chunk, not per token"]
    return []


def _shared_warnings(row: Row) -> list[str]:
    tool = row.tool
    found = ["throughput is over the whole run, its ramp-up and its last stragglers included"]
    found += _array_warnings(row)
    found += remarks(row.columns, row.ours, row.failed)
    for name, key in tool.keys.items():
        if _is_zero(row.fields, key):
            said = f"{tool.name} wrote 0 for {name.upper()}"
            found.append(f"{said}, which it does where it measured nothing: not taken over")
    return found


def _array_warnings(row: Row) -> list[str]:
    """Arrays that are there and cannot be used."""
    arrays, again = row.arrays, f"to save all of them, run it with {row.tool.saved_by}"
    if arrays.unequal:
        told = f"the arrays have different lengths ({arrays.unequal}), and each should have one entry a request"
        return [f"{told}: none is used, what is shown is {row.tool.name}'s own summary; {again}"]
    if arrays.empty:
        return [f"nothing is in {', '.join(f'`{name}`' for name in arrays.empty)}: taken as not saved; {again}"]
    return []


def _told(fields: Fields, key: str) -> Summary | None:
    """The row's own statistics of a latency; None when it has none.

    Both tools write 0 for everything when they measured nothing: that is no measurement.
    """
    names = {"mean": f"mean_{key}_ms", **{name: f"{name}_{key}_ms" for name in STATISTICS[1:]}}
    values = {f"{name}_s": fields.number(place) for name, place in names.items()}
    if values["p50_s"] is None:
        values["p50_s"] = fields.number(f"median_{key}_ms")
    if not any(values.values()):
        return None
    return Summary(**{name: None if value is None else value / MS for name, value in values.items()})


def _is_zero(fields: Fields, key: str) -> bool:
    """Whether the row has the latency, with nothing but zeros."""
    return fields.number(f"mean_{key}_ms") == 0 and _told(fields, key) is None


def _recomputed_rates(fields: Fields) -> Rates:
    """The row's counts over its duration."""
    return rates(
        duration_s=fields.number("duration"),
        requests=fields.number("completed"),
        output_tokens=fields.number("total_output_tokens"),
        input_tokens=fields.number("total_input_tokens"),
    )


def _tool_rates(fields: Fields) -> Rates:
    """The row's own throughputs."""
    total = fields.number("total_token_throughput")
    goodput = fields.number("request_goodput")
    return Rates(
        requests_per_s=fields.number("request_throughput"),
        output_tokens_per_s=fields.number("output_throughput"),
        total_tokens_per_s=fields.number("total_throughput") if total is None else total,
        goodput_per_s=fields.number("request_goodput:") if goodput is None else goodput,  # a slip of early 2025
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
