"""Cumulative distributions as small panels, two a row, on a narrow canvas one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from assay.render.svg_canvas import LETTER, TOP, WIDE, Canvas, Scale, dot, line, picture, rounded, text
from assay.render.svg_lines import BOTTOM, HEIGHT, KEY_LINE, LEFT, axis_below
from assay.render.words import number_words

LAST_SHARE = 0.99
"""Charts end where every curve has reached this share."""
EMPTY_SHARE = 0.4
"""Of the panel, up to which nothing is drawn so that the axis can begin at zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A distribution as counts in bins."""

    label: str
    kind: str
    edges: Sequence[float]
    counts: Sequence[int]
    median: float | None


PANEL_WIDTH = 300.0
"""Of a panel's plot, in pixels."""


def cumulative_panels(panels: Sequence[tuple[str, Sequence[Curve]]], title: str, *, canvas: Canvas = WIDE) -> str:
    """Cumulative shares, one or two panels a row: (name with its unit, one or two curves)."""
    shown = [(name, known) for name, curves in panels if (known := [each for each in curves if sum(each.counts)])]
    if not shown:
        return ""
    parts: list[str] = []
    a_row = 1 if canvas.is_narrow else 2
    for index, (name, curves) in enumerate(shown):
        left, top = LEFT - 14 + (canvas.width / a_row) * (index % a_row), (HEIGHT + 4) * (index // a_row)
        parts += _panel(name, curves, left, top)
    return picture((HEIGHT + 4) * math.ceil(len(shown) / a_row), title, parts, canvas)


def _panel(name: str, curves: Sequence[Curve], left: float, top: float) -> Iterator[str]:
    """One small cumulative chart."""
    right, bottom = left + PANEL_WIDTH, top + BOTTOM
    across = _span(curves, left, right)
    up = Scale(low=0.0, high=1.0, start=bottom, end=top + TOP + 20)
    for share in (0.0, 0.5, 0.9, 0.99):
        yield line(left, up(share), right, up(share), "grid")
        if share != 0.99:  # noqa: PLR2004 - no room for a name beside 90%
            yield text(f"{100 * share:.0f}%", left - 6, up(share) + 4, "tick", anchor="end")
    yield text(name, left, top + TOP + 4, "label")
    yield from axis_below(across, "", bottom)[:-1]
    for number, each in enumerate(curves):
        yield from _cumulative(each, across, up)
        y = bottom - 12 - KEY_LINE * (len(curves) - 1 - number)
        width = min(len(each.label) * LETTER, right - left - 40)
        yield line(right - width - 26, y - 4, right - width - 12, y - 4, f"line {each.kind}")
        yield text(each.label, right - 6, y, "key note", anchor="end", room=width + LETTER)


def _span(curves: Sequence[Curve], left: float, right: float) -> Scale:
    """From zero, unless that would leave most of the panel empty, to where all curves have reached nearly all."""
    high = max(_reach(each) for each in curves)
    low = min(each.edges[0] for each in curves)
    return rounded(low if low > EMPTY_SHARE * high else 0.0, high, left, right)


def _reach(each: Curve) -> float:
    """The first edge at which the curve has reached nearly all."""
    total, seen = sum(each.counts), 0
    for edge, count in zip(each.edges[1:], each.counts, strict=True):
        seen += count
        if seen >= LAST_SHARE * total:
            return edge
    return each.edges[-1]


def _cumulative(each: Curve, across: Scale, up: Scale) -> Iterator[str]:
    total, seen = sum(each.counts), 0
    points = [(each.edges[0], 0.0)]
    for edge, count in zip(each.edges[1:], each.counts, strict=True):
        seen += count
        points.append((edge, seen / total))
    inside = [(x, y) for x, y in points if x <= across.high]
    drawn = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in inside)
    yield f'<polyline class="line {escape(each.kind)}" points="{drawn}"><title>{escape(each.label)}</title></polyline>'
    if each.median is not None:
        yield dot(across(each.median), up(0.5), 3.5, f"median {each.kind}", f"median {number_words(each.median)}")
