"""A model's arithmetic and its roofline, as a characterization shows them in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from assay.records.attribution import Characterization
from assay.records.estimate import OperatingPoint, StepEstimate
from assay.render import estimate_words as words
from assay.render.grids import bar, labelled, plain_table
from assay.render.words import number_words

BAR = 15
LITTLE_SHARE = 0.01
MOST_MECHANISMS = 6
NAME_WIDTH = 44


def roofline(found: Characterization) -> Iterator[RenderableType]:
    """The model, its operating points, where a step goes, and what would help at most."""
    if found.model is not None:
        yield from (Text(""), Text(found.model, style="bold"), Text(_model_words(found)))
    if found.points:
        yield from (Text(""), Text(_points_title(found), style="bold"), _points(found))
        step = found.run_point or found.points[0]
        yield from (Text(""), Text(f"where a step goes: {_point_words(step.point)}", style="bold"), _operations(step))
    yield from _mechanisms(found)


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
    table.add_row(name, time_ms, words.percent_words(share), bar(share, BAR), bound, last)


def _mechanisms(found: Characterization) -> Iterator[RenderableType]:
    """The most that each could be worth, where it can act at all."""
    acting = [one for one in found.mechanisms if one.applies][:MOST_MECHANISMS]
    if not acting:
        return
    step = found.run_point or found.points[-2]
    yield Text("")
    yield Text(f"what would help at most: {_point_words(step.point)}", style="bold")
    yield labelled((f"{words.ceiling_words(one):>6}", words.mechanism_title(one)) for one in acting)
