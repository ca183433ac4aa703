"""The flat row that vLLM and SGLang share: `mean_ttft_ms` and its like, and arrays with one entry a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from assay.errors import UsageError
from assay.formats.columns import RequestColumns
from assay.formats.definitions import Latencies
from assay.formats.fields import Fields
from assay.formats.told import rates
from assay.records.imported import STATISTICS, Rates, Summary

T = TypeVar("T")
MS = 1_000
NO_MESSAGE = "failed without a message"
CHUNKS_ARE_TOKENS = 0.95
"""Chunks a token from which on a chunk is called a token."""


def columns(fields: Fields) -> RequestColumns | None:
    """The arrays as columns; None when the row was saved without them.

    A request failed when `errors` says so, or when it has neither a token nor a time.

    Raises:
        UsageError: arrays of different lengths, or wrong values in them.
    """
    ttfts, itls, given = fields.numbers("ttfts"), fields.number_lists("itls"), fields.numbers("latencies")
    outputs, inputs = fields.numbers("output_lens"), fields.numbers("input_lens")
    starts, errors = fields.numbers("start_times"), fields.texts("errors")
    arrays: dict[str, Sequence[object] | None] = {
        "ttfts": ttfts,
        "itls": itls,
        "latencies": given,
        "output_lens": outputs,
    }
    arrays |= {"input_lens": inputs, "start_times": starts, "errors": errors}
    lengths = {name: len(array) for name, array in arrays.items() if array is not None}
    if not (ttfts or itls or given):
        return None
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        message = f"{fields.file}: {fields.prefix}the arrays have different lengths: {told}"
        raise UsageError(message, hint="each has one entry a request; save the run again")
    count = next(iter(lengths.values()))
    whole = given if given is not None else _summed(ttfts, itls)
    return RequestColumns(
        input_tokens=[None if value is None else int(value) for value in _column(inputs, count)],
        output_tokens=[None if value is None else int(value) for value in _column(outputs, count)],
        ttft_s=_column(ttfts, count),
        latency_s=_column(whole, count),
        itl_s=_column(itls, count),
        start_s=_column(starts, count),
        error=_errors(count, errors, outputs, whole or ttfts),
    )


def told(fields: Fields, key: str) -> Summary | None:
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


def is_zero(fields: Fields, key: str) -> bool:
    """Whether the row has the latency, with nothing but zeros."""
    return fields.number(f"mean_{key}_ms") == 0 and told(fields, key) is None


def recomputed_rates(fields: Fields) -> Rates:
    """The row's counts over its duration."""
    return rates(
        duration_s=fields.number("duration"),
        requests=fields.number("completed"),
        output_tokens=fields.number("total_output_tokens"),
        input_tokens=fields.number("total_input_tokens"),
    )


def tool_rates(fields: Fields) -> Rates:
    """The row's own throughputs."""
    total = fields.number("total_token_throughput")
    goodput = fields.number("request_goodput")
    return Rates(
        requests_per_s=fields.number("request_throughput"),
        output_tokens_per_s=fields.number("output_throughput"),
        total_tokens_per_s=fields.number("total_throughput") if total is None else total,
        goodput_per_s=fields.number("request_goodput:") if goodput is None else goodput,  # a slip of early 2025
    )


def chunk_remarks(found: RequestColumns | None, ours: Latencies | None) -> list[str]:
    """What the number of gaps says of chunks and tokens."""
    if found is None or ours is None:
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


def _column(values: Sequence[T] | None, count: int) -> Sequence[T | None]:
    return values if values is not None else [None] * count


def _summed(ttfts: list[float] | None, itls: list[list[float]] | None) -> list[float] | None:
    """Time to the last chunk of each request; 0 where there was no first one."""
    if ttfts is None or itls is None:
        return None
    return [first + sum(gaps) if first else 0.0 for first, gaps in zip(ttfts, itls, strict=True)]


def _errors(
    count: int, errors: list[str] | None, outputs: list[float] | None, times: list[float] | None
) -> list[str | None]:
    found: list[str | None] = []
    for place in range(count):
        silent = (outputs is None or outputs[place] == 0) and (times is None or times[place] == 0)
        found.append((errors[place] if errors else None) or (NO_MESSAGE if silent else None))
    return found
