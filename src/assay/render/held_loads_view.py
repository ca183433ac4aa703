"""The estimate held against a run's operating points, as a table in the terminal; readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from assay.records.estimate import Range
from assay.records.held_load import HeldLoad
from assay.render.estimate_words import rounded_words
from assay.render.grids import plain_table

HEADINGS = (
    "operating\npoint", "tokens\nin+out", "floor\nms", "step\nms", "prompts\nms", "TPOT ms\nexpected",
    "TPOT ms\nmeasured", "exp. /\nmeas.",
)  # fmt: skip


def held_loads_view(found: Sequence[HeldLoad]) -> Iterator[RenderableType]:
    """A row for each operating point, and what the columns are."""
    if not found:
        return
    yield Text("")
    yield Text("estimate held against the run: time per output token (TPOT)", style="bold")
    yield _table(found)
    where = "in steps of decode" if found[0].shared_steps else "in steps of their own"
    yield Text(
        f"in flight after the name; step: decode alone; prompts: what those of other requests add, computed {where}; "
        f"measured: {_measured_by(found)}"
    )
    yield from (Text(sentence, style="yellow") for sentence in _warnings(found))


def _table(found: Sequence[HeldLoad]) -> Table:
    table = plain_table(*HEADINGS)
    table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"
    for one in found:
        load = one.load
        table.add_row(
            f"{load.name}, {_running(one)}",
            f"{load.cached_tokens + load.input_tokens}+{load.output_tokens}",
            _ms(one.floor_s),
            _ms(one.step.mid),
            _ms(one.expected_s.mid - one.step.mid),
            _range(one.expected_s),
            _ms(load.tpot_s),
            f"{one.ratio:.2f}{'' if one.inside else ' !'}",
        )
    return table


def _warnings(found: Sequence[HeldLoad]) -> Iterator[str]:
    names = ", ".join(one.load.name for one in found if not one.inside)
    if names:
        yield f"! measured outside of the expected range: {names}"
    for one in found:
        if one.below_floor:
            yield (
                f"{one.load.name}: measured {_ms(one.load.tpot_s)} ms is below the floor of {_ms(one.floor_s)} ms: the "
                "operating point, the ceilings or the model is another one"
            )


def _measured_by(found: Sequence[HeldLoad]) -> str:
    """For example "median over 2 runs (r0001, r0002), lowest to highest 6.86-6.99 ms (main), 4.02-4.08 ms (c16)"."""
    runs = found[0].load.runs
    if len(runs) < 2:  # noqa: PLR2004 - several
        return f"median of the requests{f' of {runs[0]}' if runs else ''}"
    spreads = [(one.load.name, one.load.spread_s) for one in found if one.load.spread_s]
    told = ", ".join(f"{_ms(low)}-{_ms(high)} ms ({name})" for name, (low, high) in spreads)
    return f"median over {len(runs)} runs ({', '.join(runs)}), lowest to highest {told}"


def _running(one: HeldLoad) -> str:
    """Those that run, where the cache does not hold all."""
    asked = one.load.sequences
    return f"{asked:,}" if one.running == asked else f"{asked:,}>{one.running:,}"


def _range(value: Range) -> str:
    return f"{_ms(value.mid)} ({_ms(value.low, 2)}-{_ms(value.high, 2)})"


def _ms(seconds: float, digits: int = 3) -> str:
    return rounded_words(1e3 * seconds, digits)
