"""Charts of points: named ones along a curve, and runs side by side."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.render.svg_canvas import LETTER, TOP, WIDE, Canvas, Scale, dot, picture, rounded, rows, text
from assay.render.svg_lines import BOTTOM, HEIGHT, LEFT, Line, axis_below, end_of_plot, names_of
from assay.render.words import number_words

CURVE_BOTTOM = BOTTOM + 60
"""Curves of named points are higher than lines over time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A named point of a curve."""

    x: float
    y: float
    label: str
    kind: str = ""
    title: str = ""


def named_points(spots: Sequence[Spot], title: str, x_unit: str, y_unit: str, *, canvas: Canvas = WIDE) -> str:
    """Points joined in order, each with its name."""
    if not spots:
        return ""
    right = canvas.width - (14 if canvas.is_narrow else 40)
    across = rounded(0.0, 1.04 * max(spot.x for spot in spots), LEFT, right)
    up = rounded(0.0, 1.04 * max(spot.y for spot in spots), CURVE_BOTTOM, TOP + 20)
    parts = [text(y_unit, 0, TOP + 4, "tick"), *rows(up, LEFT, right), *axis_below(across, x_unit, CURVE_BOTTOM)]
    joined = " ".join(f"{across(spot.x):.1f},{up(spot.y):.1f}" for spot in spots)
    parts.append(f'<polyline class="thread" points="{joined}"/>')
    parts += [dot(across(spot.x), up(spot.y), 4.5, f"dot {spot.kind}", spot.title) for spot in spots]
    places = [(across(spot.x), up(spot.y)) for spot in spots]
    parts += _labels(spots, places, canvas)
    return picture(HEIGHT + 60, title, parts, canvas)


def in_order(sides: Sequence[tuple[str, str, Sequence[float]]], title: str, unit: str, *, canvas: Canvas = WIDE) -> str:
    """Every run in the order of measuring, the reference around each of the others: (label, css class, values)."""
    known = [(label, kind, values) for label, kind, values in sides if values]
    if not known:
        return ""
    right = end_of_plot(canvas)
    across = Scale(low=-0.03, high=1.03, start=LEFT, end=right)
    low, high = min(min(values) for _, _, values in known), max(max(values) for _, _, values in known)
    margin = 0.08 * (high - low)
    up = rounded(max(0.0, low - margin), high + margin, BOTTOM, TOP + 20)
    parts = [text(unit, 0, TOP + 4, "tick"), *rows(up, LEFT, right)]
    parts.append(text("order of measuring", (LEFT + right) / 2, BOTTOM + 20, "tick", anchor="middle"))
    for place, (label, kind, values) in enumerate(known):
        spots = list(zip(map(across, _instants(len(values), around=place == 0)), map(up, values), strict=True))
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline class="thread" points="{joined}"/>')
        words = [f"{label}, run {number}: {number_words(value)} {unit}" for number, value in enumerate(values, start=1)]
        parts += [dot(x, y, 4, f"dot {kind}", name) for (x, y), name in zip(spots, words, strict=True)]
    ends = [Line(label=label, kind=kind, points=[(0.0, statistics.median(values))]) for label, kind, values in known]
    names, below = names_of(ends, up, canvas, BOTTOM + 34)
    return picture(BOTTOM + 34 + below, title, [*parts, *names], canvas)


def _instants(count: int, *, around: bool) -> list[float]:
    """Where runs stand between the first and the last: those of the reference at both ends, others in between."""
    if not around:
        return [(number + 0.5) / count for number in range(count)]
    return [number / (count - 1) for number in range(count)] if count > 1 else [0.0]


def _labels(spots: Sequence[Spot], places: Sequence[tuple[float, float]], canvas: Canvas) -> Iterator[str]:
    """Names beside the points, each at the first of four places where it touches nothing; else in the tooltip alone."""
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in places]
    for spot, (x, y) in zip(spots, places, strict=True):
        width = LETTER * len(spot.label)
        for start, base in ((x + 9, y + 14), (x - 9 - width, y - 6), (x + 9, y - 6), (x - 9 - width, y + 14)):
            box = (start - 1, base - 12, start + width + 2, base + 4)
            inside = box[0] >= LEFT and box[2] <= canvas.width and box[3] <= CURVE_BOTTOM + 2
            if inside and not any(_touch(box, other) for other in taken):
                taken.append(box)
                yield text(spot.label, start, base, f"key note {spot.kind}")
                break


def _touch(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
