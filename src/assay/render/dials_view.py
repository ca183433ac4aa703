"""The picture of a search with two sides: every setting's throughput against its latency, the front joined."""

from __future__ import annotations

from collections.abc import Sequence

from assay.plan.dial_front import Outcome, front
from assay.render.svg_canvas import LETTER, TOP, WIDE, Canvas, Scale, dot, line, picture, rounded, rows, text
from assay.render.svg_lines import BOTTOM, HEIGHT, LEFT, axis_below
from assay.render.words import number_words

FLOOR = BOTTOM + 60
MS_PER_S = 1000.0


def front_chart(
    found: Sequence[Outcome], title: str, throughput_unit: str, latency_words: str, *, canvas: Canvas = WIDE
) -> str:
    """SVG of settings as dots, those that nothing beats joined by a line; "" where there is nothing to draw.

    Args:
        found: of `assay.plan.dial_front.outcomes`.
        title: what the chart shows.
        throughput_unit: for example "tok/s".
        latency_words: the latency's name, shown in milliseconds, for example "TPOT p50".
        canvas: what it is drawn for.
    """
    if not found:
        return ""
    right = canvas.width - (14 if canvas.is_narrow else 40)
    best = front(found)
    across = rounded(0.0, 1.08 * max(MS_PER_S * one.latency_s for one in found), LEFT, right)
    up = rounded(0.0, 1.08 * max(one.throughput for one in found), FLOOR, TOP + 20)
    parts = [text(throughput_unit, 0, TOP + 4, "tick"), *rows(up, LEFT, right)]
    parts += axis_below(across, f"{latency_words}, ms", FLOOR)
    joined = " ".join(f"{across(MS_PER_S * one.latency_s):.1f},{up(one.throughput):.1f}" for one in best)
    parts.append(f'<polyline class="line stack" points="{joined}"/>')
    parts += [_dot(one, across, up, throughput_unit, on_front=one in best) for one in found]
    parts += [*_baseline_cross(found, across, up, right), *_ends(best, across, up, canvas)]
    return picture(HEIGHT + 60, title, parts, canvas)


def _dot(one: Outcome, across: Scale, up: Scale, unit: str, *, on_front: bool) -> str:
    kind = "baseline" if one.is_baseline else "stack" if on_front else ""
    words = f"{number_words(one.throughput)} {unit}, {number_words(MS_PER_S * one.latency_s)} ms"
    title = f"{one.label}: {words}; n = {one.num_runs}"
    radius = 4.5 if on_front or one.is_baseline else 3
    return dot(across(MS_PER_S * one.latency_s), up(one.throughput), radius, f"dot {kind}", title)


def _baseline_cross(found: Sequence[Outcome], across: Scale, up: Scale, right: float) -> list[str]:
    """Lines through the baseline: what lies above and to the left of them is better on both sides."""
    stands = next((one for one in found if one.is_baseline), None)
    if stands is None:
        return []
    x, y = across(MS_PER_S * stands.latency_s), up(stands.throughput)
    return [
        line(LEFT, y, right, y, "break"),
        line(x, TOP + 20, x, FLOOR, "break"),
        text("baseline", x + 8, y + 16, "key note baseline"),
    ]


def _ends(best: Sequence[Outcome], across: Scale, up: Scale, canvas: Canvas) -> list[str]:
    """The quickest setting's name below its dot, that of the one with the most throughput to the left above its own."""
    first, last = best[0], best[-1]
    names = []
    if not first.is_baseline:
        x, y = across(MS_PER_S * first.latency_s), up(first.throughput)
        x = max(0.0, min(x, canvas.width - LETTER * len(first.label)))
        names.append(text(first.label, x, y + 20, "key note stack", room=canvas.width - x))
    if last is not first and not last.is_baseline:
        x, y = across(MS_PER_S * last.latency_s), up(last.throughput)
        x = min(canvas.width, max(x, LETTER * len(last.label)))
        names.append(text(last.label, x, y - 10, "key note stack", anchor="end", room=x))
    return names
