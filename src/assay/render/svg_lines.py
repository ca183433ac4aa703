"""Lines over time, with the measured windows shaded; and what other charts of curves share with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from assay.render.svg_canvas import (
    TOP,
    WIDE,
    Canvas,
    Scale,
    columns,
    dot,
    line,
    picture,
    rect,
    rounded,
    rows,
    text,
)

HEIGHT = 236
BOTTOM = 188
LEFT = 58
KEY_WIDTH = 132
"""Room at the right for the names of the lines."""
KEY_LINE = 15
"""Least distance of two names, in pixels."""
SPREAD = 2.0
"""How much higher than the measured values a line over time may reach before it is cut off at the edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line over time."""

    label: str
    kind: str
    points: Sequence[tuple[float, float | None]]
    """Seconds and value; None leaves a gap."""
    dots: bool = False
    """Whether each value gets a dot: where they are few, the line between them is no data."""


def over_time(
    lines: Sequence[Line],
    title: str,
    unit: str,
    *,
    windows: Sequence[tuple[float, float]],
    levels: Sequence[float] = (),
    canvas: Canvas = WIDE,
) -> str:
    """Lines over seconds since the load began.

    Args:
        lines: named at their right end, on a narrow canvas below the plot.
        title: what the chart shows.
        unit: of the vertical axis.
        windows: the measured ones, shaded: from, to.
        levels: a value for each window, drawn across it.
        canvas: what it is drawn for.
    """
    known = [(x, y) for each in lines for x, y in each.points if y is not None]
    if not known:
        return ""
    right = end_of_plot(canvas)
    across = Scale(low=0.0, high=max(x for x, _ in known) or 1.0, start=LEFT, end=right)
    up = rounded(0.0, _highest(known, windows), BOTTOM, TOP + 20)
    parts = [
        rect(
            across(start) + 0.5, TOP + 20, across(end) - across(start) - 1, BOTTOM - TOP - 20, "band", "measured window"
        )
        for start, end in windows
    ]
    parts += [text(unit, 0, TOP + 4, "tick"), *rows(up, LEFT, right)]
    parts += axis_below(across, "seconds since the load began")
    for (start, end), level in zip(windows, levels, strict=False):
        parts.append(line(across(start), up(level), across(end), up(level), "level"))
    for each in lines:
        parts += _polylines(each, across, up)
    names, below = names_of(lines, up, canvas, HEIGHT)
    return picture(HEIGHT + below, title, [*parts, *names], canvas)


def end_of_plot(canvas: Canvas) -> float:
    """Where a plot ends whose lines are named by `names_of`."""
    return canvas.width - (14 if canvas.is_narrow else KEY_WIDTH)


def axis_below(across: Scale, unit: str, bottom: float = BOTTOM) -> list[str]:
    """Ticks and the unit below a plot."""
    parts = columns(across, bottom, bottom + 4, "")
    return [*parts, text(unit, (across.start + across.end) / 2, bottom + 38, "tick", anchor="middle")]


def names_of(lines: Sequence[Line], up: Scale, canvas: Canvas, height: float) -> tuple[list[str], float]:
    """Each line's name beside its end, or below a narrow plot of this height; and the height that they add to it."""
    if not canvas.is_narrow:
        return list(_names_beside(lines, up, end_of_plot(canvas))), 0.0
    known = [each for each in lines if _last(each) is not None]
    parts = []
    for number, each in enumerate(known):
        y = height + 12 + (KEY_LINE + 2) * number
        parts.append(line(LEFT, y - 4, LEFT + 14, y - 4, f"line {each.kind}"))
        parts.append(text(each.label, LEFT + 20, y, "key", room=canvas.width - LEFT - 20))
    return parts, (KEY_LINE + 2.0) * len(known) + 2


def _names_beside(lines: Sequence[Line], up: Scale, right: float) -> Iterator[str]:
    """Each line's name beside its end, moved apart where two would touch."""
    ends = [(up(last), each) for each in lines if (last := _last(each)) is not None]
    lowest = -float(KEY_LINE)
    floor = BOTTOM + 4 - KEY_LINE * len(ends)
    for y, each in sorted(ends, key=lambda end: end[0]):
        floor += KEY_LINE
        lowest = max(lowest + KEY_LINE, min(y, floor))
        yield line(right + 6, lowest, right + 20, lowest, f"line {each.kind}")
        yield text(each.label, right + 25, lowest + 4, "key", room=KEY_WIDTH - 26)


def _highest(known: Sequence[tuple[float, float]], windows: Sequence[tuple[float, float]]) -> float:
    """Top of the vertical axis: one slow start must not press the measured part flat."""
    inside = [y for x, y in known if any(start <= x <= end for start, end in windows)]
    highest = max(y for _, y in known)
    return min(highest, SPREAD * max(inside)) if inside and max(inside) > 0 else highest or 1.0


def _polylines(each: Line, across: Scale, up: Scale) -> Iterator[str]:
    """One polyline for each stretch without a gap; a dot where a stretch is a single point."""
    stretch: list[tuple[float, float]] = []
    for x, y in [*each.points, (0.0, None)]:
        if y is not None:
            stretch.append((across(x), up(y)))
            continue
        if len(stretch) == 1:
            yield dot(*stretch[0], 1.6, f"median {each.kind}")
        elif stretch:
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in stretch)
            name = f"<title>{escape(each.label)}</title>"
            yield f'<polyline class="line {escape(each.kind)}" points="{points}">{name}</polyline>'
            yield from (dot(a, b, 1.6, f"median {each.kind}") for a, b in stretch if each.dots)
        stretch = []


def _last(each: Line) -> float | None:
    return next((y for _, y in reversed(each.points) if y is not None), None)
