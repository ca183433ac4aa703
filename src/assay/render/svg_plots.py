"""Charts over a continuous axis: every run in time order, and cumulative distributions."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from assay.render.svg_canvas import TOP, WIDTH, Scale, columns, dot, line, link, picture, rounded, rows, text
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


def runs(dots: Sequence[Dot], title: str, unit: str, *, breaks: Sequence[tuple[float, str]] = ()) -> str:
    """Every run's metric in time order: drift, noise and outliers at a glance.

    Args:
        dots: the runs.
        title: what the chart shows.
        unit: of the vertical axis.
        breaks: where a pause was cut out, in minutes, and how long it was.
    """
    if not dots:
        return ""
    right = WIDTH - 14
    across = Scale(low=0.0, high=max(d.x for d in dots) or 1.0, start=LEFT + 10, end=right - 8)
    low, high = min(d.y for d in dots), max(d.y for d in dots)
    margin = 0.06 * (high - low)
    up = rounded(max(0.0, low - margin) if low >= 0 else low, high + margin, BOTTOM, TOP + 28)
    parts = [text(unit, 0, TOP + 2, "tick"), *rows(up, LEFT, right)]
    parts += _minutes(across)
    for i, (minute, words) in enumerate(breaks):
        parts.append(line(across(minute), TOP + 2, across(minute), BOTTOM, "break"))
        left_half = across(minute) < WIDTH / 2
        x, anchor = (across(minute) + 5, "start") if left_half else (across(minute) - 5, "end")
        parts.append(text(words, x, TOP + 8 + 13 * (i % 2), "note", anchor=anchor))
    baseline = [f"{across(d.x):.1f},{up(d.y):.1f}" for d in dots if d.kind == "baseline"]
    if len(baseline) > 1:
        parts.append(f'<polyline class="thread" points="{" ".join(baseline)}"/>')
    parts += [link(d.target, dot(across(d.x), up(d.y), 4, f"dot {d.kind}", d.title)) for d in dots]
    return picture(HEIGHT, title, parts)


def cumulative(series: Sequence[tuple[str, str, Sequence[float]]], title: str, unit: str) -> str:
    """Cumulative distributions, one line an arm: (label, css class, values)."""
    known = [(label, kind, sorted(values)) for label, kind, values in series if values]
    if not known:
        return ""
    right = WIDTH - 190
    last = max(values[min(len(values) - 1, int(0.99 * len(values)))] for _, _, values in known)
    across = rounded(0.0, 1.02 * last or 1.0, LEFT, right)
    up = Scale(low=0.0, high=1.0, start=BOTTOM, end=TOP + 10)
    parts = [part for share in SHARES for part in _share_line(share, up, right)]
    parts += columns(across, BOTTOM, BOTTOM + 4, "")
    parts.append(text(unit, (LEFT + right) / 2, HEIGHT - 8, "tick", anchor="middle"))
    for i, (label, kind, values) in enumerate(known):
        parts += _curve(label, kind, values, across, up)
        y = TOP + 24 + 44 * i
        parts.append(line(right + 16, y - 4, right + 34, y - 4, f"line {kind}"))
        parts.append(text(label, right + 40, y, f"key {kind}", room=140))
        words = f"median {number_words(statistics.median(values))} {unit}, n = {len(values):,}"
        parts.append(text(words, right + 16, y + 17, "note", room=174))
    return picture(HEIGHT, title, parts)


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
