"""Charts over a continuous axis: every run in time order, and cumulative distributions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from assay.render.svg_canvas import (
    LETTER,
    TOP,
    WIDE,
    Canvas,
    Scale,
    columns,
    dot,
    line,
    link,
    picture,
    rounded,
    rows,
    text,
)
from assay.render.words import number_words

HEIGHT = 264
BOTTOM = 216
LEFT = 58
MAX_POINTS = 300
"""Points of a drawn curve: more cannot be seen, and a report is to stay small."""
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One run of the run chart."""

    x: float
    """Minutes since the first run, pauses left out."""
    y: float
    kind: str
    title: str
    target: str | None = None


def runs(
    dots: Sequence[Dot], title: str, unit: str, *, breaks: Sequence[tuple[float, str]] = (), canvas: Canvas = WIDE
) -> str:
    """Every run's metric in time order: drift, noise and outliers at a glance.

    Args:
        dots: the runs.
        title: what the chart shows.
        unit: of the vertical axis.
        breaks: where a pause was cut out, in minutes, and how long it was.
        canvas: what it is drawn for.
    """
    if not dots:
        return ""
    right = canvas.width - 14
    across = Scale(low=0.0, high=max(d.x for d in dots) or 1.0, start=LEFT + 10, end=right - 8)
    low, high = min(d.y for d in dots), max(d.y for d in dots)
    margin = 0.06 * (high - low)
    up = rounded(max(0.0, low - margin) if low >= 0 else low, high + margin, BOTTOM, TOP + 28)
    parts = [text(unit, 0, TOP + 2, "tick"), *rows(up, LEFT, right)]
    parts += _minutes(across)
    parts += _breaks(breaks, LETTER * len(unit), across, canvas)
    baseline = [f"{across(d.x):.1f},{up(d.y):.1f}" for d in dots if d.kind == "baseline"]
    if len(baseline) > 1:
        parts.append(f'<polyline class="thread" points="{" ".join(baseline)}"/>')
    parts += [link(d.target, dot(across(d.x), up(d.y), 4, f"dot {d.kind}", d.title)) for d in dots]
    return picture(HEIGHT, title, parts, canvas)


def _breaks(breaks: Sequence[tuple[float, str]], used: float, across: Scale, canvas: Canvas) -> Iterator[str]:
    """Where pauses were cut out, each with its words where they touch no others; so much of the first line is used."""
    taken = [used, -math.inf]
    for minute, words in breaks:
        x = across(minute)
        yield line(x, TOP + 2, x, BOTTOM, "break")
        for said, left in _places(words, x, canvas):
            row = next((row for row, end in enumerate(taken) if end < left), None)
            if row is not None:
                taken[row] = left + LETTER * len(said)
                yield text(said, left, TOP + 8 + 13 * row, "note")
                break


def _places(words: str, x: float, canvas: Canvas) -> Iterator[tuple[str, float]]:
    """What is said beside a line at x, shorter where there is no room, and where it begins: on the wider side first."""
    for said in (words, words.removesuffix(" left out")):
        width = LETTER * len(said)
        sides = (x + 5, x - 5 - width)
        for left in sides if x < canvas.width / 2 else reversed(sides):
            if left >= LEFT and left + width <= canvas.width:
                yield said, left


def cumulative(
    series: Sequence[tuple[str, str, Sequence[float]]], title: str, unit: str, *, canvas: Canvas = WIDE
) -> str:
    """Cumulative distributions, one line an arm: (label, css class, values)."""
    known = [(label, kind, sorted(values)) for label, kind, values in series if values]
    if not known:
        return ""
    right = canvas.width - (14 if canvas.is_narrow else 190)
    last = max(values[min(len(values) - 1, int(0.99 * len(values)))] for _, _, values in known)
    across = rounded(0.0, 1.02 * last or 1.0, LEFT, right)
    up = Scale(low=0.0, high=1.0, start=BOTTOM, end=TOP + 10)
    parts = [part for share in SHARES for part in _share_line(share, up, right)]
    parts += columns(across, BOTTOM, BOTTOM + 4, "")
    parts.append(text(unit, (LEFT + right) / 2, HEIGHT - 8, "tick", anchor="middle"))
    for i, (label, kind, values) in enumerate(known):
        parts += _curve(label, kind, values, across, up)
        words = f"median {number_words(statistics.median(values))} {unit}, n = {len(values):,}"
        x, y = (LEFT, HEIGHT + 14 + 18 * i) if canvas.is_narrow else (right + 16, TOP + 24 + 44 * i)
        parts.append(line(x, y - 4, x + 18, y - 4, f"line {kind}"))
        if canvas.is_narrow:
            parts.append(text(f"{label}: {words}", x + 24, y, f"key {kind}", room=canvas.width - x - 24))
        else:
            parts.append(text(label, x + 24, y, f"key {kind}", room=140))
            parts.append(text(words, x, y + 17, "note", room=174))
    return picture(HEIGHT + 18 * len(known) * canvas.is_narrow, title, parts, canvas)


def _minutes(across: Scale) -> list[str]:
    parts = [text(f"{tick:g}", across(tick), BOTTOM + 18, "tick", anchor="middle") for tick in across.ticks()]
    middle = (across.start + across.end) / 2
    return [*parts, text("minutes since the first run", middle, HEIGHT - 8, "tick", anchor="middle")]


def _share_line(share: float, up: Scale, right: float) -> list[str]:
    words = text(f"{100 * share:.0f}%", LEFT - 8, up(share) + 4, "tick", anchor="end")
    return [line(LEFT, up(share), right, up(share), "grid"), words]


def _curve(label: str, kind: str, values: Sequence[float], across: Scale, up: Scale) -> list[str]:
    count = len(values)
    places = sorted({round(i * (count - 1) / MAX_POINTS) for i in range(MAX_POINTS + 1)})
    points = " ".join(f"{across(values[i]):.1f},{up((i + 1) / count):.1f}" for i in places)
    middle = statistics.median(values)
    return [
        f'<polyline class="line {escape(kind)}" points="{points}"><title>{escape(label)}</title></polyline>',
        dot(across(middle), up(0.5), 4, f"median {kind}", f"{label}: median {number_words(middle)}"),
    ]
