"""The arrays with one entry a request that vLLM and SGLang save beside a row's summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from assay.formats.columns import RequestColumns
from assay.formats.fields import Fields
from assay.records.imported import LatencyName

T = TypeVar("T")
NO_MESSAGE = "failed without a message"
TIMES = ("ttfts", "itls", "latencies")
"""Without one of these the others say nothing of latencies."""
ARRAYS = (*TIMES, "output_lens", "input_lens", "start_times", "errors")
WANTED: dict[LatencyName, tuple[str, ...]] = {
    "ttft": ("ttfts",),
    "tpot": ("ttfts", "itls", "output_lens"),
    "itl": ("itls",),
    "e2e": ("ttfts", "itls"),
}
"""What each latency is recomputed from; `latencies`, where a tool writes them, stand for `ttfts` with `itls` in E2E."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrays:
    """What a row's arrays give, and what is wrong with them."""

    columns: RequestColumns | None
    """None: the row was saved without them, or they do not belong together."""
    lengths: dict[str, int]
    """Of each array that is there."""

    @property
    def unequal(self) -> str | None:
        """The lengths in words, where the arrays that are not empty differ in them: nobody can match their entries."""
        if len({length for length in self.lengths.values() if length}) < 2:  # noqa: PLR2004 - two lengths differ
            return None
        return ", ".join(f"{name} {length:,}" for name, length in self.lengths.items())

    @property
    def empty(self) -> list[str]:
        """Arrays that are there without an entry."""
        return [name for name, length in self.lengths.items() if not length]

    def why_not(self, name: LatencyName, saved_by: str) -> str:
        """What is missing for a latency, and what would have saved it."""
        if self.unequal:
            return f"the arrays have different lengths ({self.unequal}): save the run again with {saved_by}"
        if not any(self.lengths.get(key) for key in TIMES):
            return f"the row's arrays are {'empty' if self.lengths else 'missing'}: {saved_by} saves them"
        absent = ", ".join(f"`{key}`" for key in WANTED[name] if not self.lengths.get(key))
        return f"the row has no {absent}: {saved_by} saves them"


def read_arrays(fields: Fields) -> Arrays:
    """The arrays as columns. An empty one beside others that are not is taken as not saved.

    A request failed when `errors` says so, or when it has neither a token nor a time.

    Raises:
        UsageError: wrong values in them.
    """
    ttfts, itls, given = fields.numbers("ttfts"), fields.number_lists("itls"), fields.numbers("latencies")
    outputs, inputs = fields.numbers("output_lens"), fields.numbers("input_lens")
    starts, errors = fields.numbers("start_times"), fields.texts("errors")
    named = zip(ARRAYS, (ttfts, itls, given, outputs, inputs, starts, errors), strict=True)
    found = Arrays(columns=None, lengths={name: len(array) for name, array in named if array is not None})
    count = max((found.lengths.get(name, 0) for name in TIMES), default=0)
    if not count or found.unequal:
        return found
    whole = given or _summed(ttfts, itls)
    columns = RequestColumns(
        input_tokens=[None if value is None else int(value) for value in _column(inputs, count)],
        output_tokens=[None if value is None else int(value) for value in _column(outputs, count)],
        ttft_s=_column(ttfts, count),
        latency_s=_column(whole, count),
        itl_s=_column(itls, count),
        start_s=_column(starts, count),
        error=_errors(count, errors, outputs, whole or ttfts),
    )
    return Arrays(columns=columns, lengths=found.lengths)


def _column(values: Sequence[T] | None, count: int) -> Sequence[T | None]:
    return values or [None] * count


def _summed(ttfts: list[float] | None, itls: list[list[float]] | None) -> list[float] | None:
    """Time to the last chunk of each request; 0 where there was no first one."""
    if not ttfts or not itls:
        return None
    return [first + sum(gaps) if first else 0.0 for first, gaps in zip(ttfts, itls, strict=True)]


def _errors(
    count: int, errors: list[str] | None, outputs: list[float] | None, times: list[float] | None
) -> list[str | None]:
    found: list[str | None] = []
    for place in range(count):
        silent = (not outputs or outputs[place] == 0) and (not times or times[place] == 0)
        found.append((errors[place] if errors else None) or (NO_MESSAGE if silent else None))
    return found
