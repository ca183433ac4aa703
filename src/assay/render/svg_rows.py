"""Charts with a row for each thing: intervals (forest, prediction against measurement) and the waterfall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    rect,
    rounded,
    text,
)

ROW = 26
AXIS = 36
LABEL_RIGHT = 208
PLOT_LEFT = 220
PLOT_RIGHT = 574
VALUE_LEFT = 588
WORDS = 17
"""On a narrow canvas: the line of words above what is drawn of a row."""
MARGIN = 24
"""On a narrow canvas: left free beside a plot, for half of a tick's label."""
TAIL = 0.75
"""How far a wide interval may stretch the axis, as a share of what estimates and predictions need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of an interval chart: percent values, and what is shown when there are none."""

    label: str
    low: float | None = None
    middle: float | None = None
    high: float | None = None
    band: tuple[float, float] | None = None
    """A second range behind the interval: what was predicted."""
    outline: tuple[float, float] | None = None
    """A third one, drawn as a frame: what the prediction was corrected to."""
    kind: str = ""
    note: str = ""
    """Words at the right in place of the numbers."""
    target: str | None = None
    """Anchor of the evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar of a waterfall, in percent of the baseline."""

    label: str
    start: float
    end: float
    kind: str
    """total, gain, loss or confirmed."""
    words: str
    low: float | None = None
    high: float | None = None
    target: str | None = None


def intervals(rows: Sequence[Row], title: str, *, min_effect: float | None = None, canvas: Canvas = WIDE) -> str:
    """One row each, zero marked, the band of "too small to matter" shaded."""
    if not rows:
        return ""
    scale = _span(rows, min_effect, canvas)
    bottom = TOP + _row(canvas) * len(rows)
    parts = []
    if min_effect is not None:
        left, right = scale(-min_effect), scale(min_effect)
        parts.append(rect(left, TOP, right - left, bottom - TOP, "band", f"±{min_effect:g}%: too small to matter"))
    parts += columns(scale, TOP, bottom, "%", signed=True)
    for i, row in enumerate(rows):
        parts.append(_interval_row(row, TOP + _row(canvas) * i, scale, canvas))
    return picture(bottom + AXIS, title, parts, canvas)


def waterfall(bars: Sequence[Bar], title: str, *, canvas: Canvas = WIDE) -> str:
    """From the baseline, change by change, to the whole; the last bar with its interval."""
    if not bars:
        return ""
    ends = [value for bar in bars for value in (bar.start, bar.end, bar.high) if value is not None]
    scale = rounded(0.0, max(ends), *_plot(canvas))
    bottom = TOP + _row(canvas) * len(bars)
    parts = columns(scale, TOP, bottom, "%")
    for i, bar in enumerate(bars):
        y = TOP + _row(canvas) * i
        parts.append(_bar(bar, y, scale, canvas))
        if i + 1 < len(bars) and not canvas.is_narrow:  # there it would run through words
            x, end = scale(bar.end), y + ROW
            parts.append(line(x, end - 6, x, end + 6, "joint"))
    return picture(bottom + AXIS, title, parts, canvas)


def _row(canvas: Canvas) -> float:
    """Height of a row."""
    return ROW + WORDS * canvas.is_narrow


def _middle(canvas: Canvas) -> float:
    """Of what is drawn of a row, below its top."""
    return WORDS + 9 if canvas.is_narrow else ROW / 2


def _plot(canvas: Canvas) -> tuple[float, float]:
    """From and to where the axis goes."""
    return (MARGIN, canvas.width - MARGIN) if canvas.is_narrow else (PLOT_LEFT, PLOT_RIGHT)


def _words(label: str, value: str, kind: str, y: float, canvas: Canvas) -> list[str]:
    """A row's name and what is said of it: at both sides of the plot, or on the line above it."""
    if canvas.is_narrow:
        room = canvas.width - LETTER * len(value) - 2 * LETTER
        return [
            text(label, 0, y + WORDS - 2, "label", room=room),
            text(value, canvas.width, y + WORDS - 2, kind, anchor="end"),
        ]
    return [
        text(label, LABEL_RIGHT, y + ROW / 2 + 4, "label", anchor="end", room=LABEL_RIGHT),
        text(value, VALUE_LEFT, y + ROW / 2 + 4, kind, room=canvas.width - VALUE_LEFT),
    ]


def _bar(bar: Bar, top: float, scale: Scale, canvas: Canvas) -> str:
    left, right = scale(min(bar.start, bar.end)), scale(max(bar.start, bar.end))
    y = top + _middle(canvas)
    height = ROW - 12
    shape = rect(left, y - height / 2, max(1.5, right - left), height, f"bar {bar.kind}", f"{bar.label}: {bar.words}")
    if bar.low is not None and bar.high is not None:
        shape += line(scale(bar.low), y, scale(bar.high), y, "whisker over")
    return link(bar.target, "".join([*_words(bar.label, bar.words, "value", top, canvas), shape]))


def _interval_row(row: Row, top: float, scale: Scale, canvas: Canvas) -> str:
    y, parts = top + _middle(canvas), []
    if row.band is not None:
        left, right = scale(row.band[0]), scale(row.band[1])
        words = f"{row.label}: predicted {row.band[0]:+.0f}% to {row.band[1]:+.0f}%"
        parts.append(rect(left, y - 8, max(2.0, right - left), 16, "predicted", words))
    if row.outline is not None:
        left, right = scale(row.outline[0]), scale(row.outline[1])
        words = f"{row.label}: corrected to {row.outline[0]:+.0f}% to {row.outline[1]:+.0f}%"
        parts.append(rect(left, y - 8, max(2.0, right - left), 16, "corrected", words))
    if row.low is None or row.high is None or row.middle is None:
        parts = [*_words(row.label, row.note, "note", top, canvas), *parts]
    else:
        words = row.note or f"{row.middle:+.1f}% [{row.low:+.1f}, {row.high:+.1f}]"
        interval = _interval(row.low, row.middle, row.high, y, scale)
        parts = [*_words(row.label, words, "value", top, canvas), *parts, *interval]
    return f'<g class="{row.kind}">{link(row.target, "".join(parts))}</g>'


def _interval(low: float, middle: float, high: float, y: float, scale: Scale) -> list[str]:
    """The whisker, an arrow head where it goes on beyond the axis, and the point with its numbers."""
    parts = [line(scale(low), y, scale(high), y, "whisker")]
    if low < scale.low:
        parts.append(_arrow(scale(low), y, 6))
    if high > scale.high:
        parts.append(_arrow(scale(high), y, -6))
    parts.append(dot(scale(middle), y, 4.5, "point", f"{middle:+.1f}% [{low:+.1f}, {high:+.1f}]"))
    return parts


def _arrow(x: float, y: float, back: float) -> str:
    return f'<polyline class="whisker" points="{x + back:.1f},{y - 4:.1f} {x:.1f},{y:.1f} {x + back:.1f},{y + 4:.1f}"/>'


def _span(rows: Sequence[Row], min_effect: float | None, canvas: Canvas) -> Scale:
    """An axis for estimates and predictions; one wide interval does not squeeze all the others."""
    core = [v for row in rows for v in (row.middle, *(row.band or ()), *(row.outline or ())) if v is not None]
    core += [0.0, -(min_effect or 0.0), min_effect or 0.0]
    reach = TAIL * max(max(core) - min(core), 1.0)
    ends = [v for row in rows for v in (row.low, row.high) if v is not None]
    low = max(min([*core, *ends]), min(core) - reach)
    high = min(max([*core, *ends]), max(core) + reach)
    return rounded(low, high, *_plot(canvas))
