"""Plots made of letters, for the terminal: a sparkline, a curve with named points, rows of dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.render.words import number_words

BARS = "▁▂▃▄▅▆▇█"
POINT, MARKED, SEVERAL = "o", "◆", "@"
AXIS_WIDTH = 9


def sparkline(values: Sequence[float], width: int) -> str:
    """The last `width` values as bars, zero at the bottom."""
    shown = values[-width:]
    highest = max(shown, default=0.0)
    if highest <= 0:
        return BARS[0] * len(shown)
    return "".join(BARS[min(len(BARS) - 1, int(len(BARS) * value / highest))] for value in shown)


def curve(
    points: Sequence[tuple[float, float, str]], *, marked: int | None = None, width: int = 60, height: int = 12
) -> list[str]:
    """Named points over two linear axes that begin at zero.

    Args:
        points: across, up, name.
        marked: index of the point that is drawn filled.
        width: columns of the plot, without the axis at its left.
        height: rows of the plot, without the axis below.
    """
    if not points:
        return []
    most_across = max(x for x, _, _ in points) or 1.0
    most_up = max(y for _, y, _ in points) or 1.0
    rows = [[" "] * width for _ in range(height)]
    places = [(round((width - 1) * x / most_across), round((height - 1) * (1 - y / most_up))) for x, y, _ in points]
    for index, (column, row) in enumerate(places):
        rows[row][column] = MARKED if index == marked else POINT
    for (column, row), (_, _, name) in zip(places, points, strict=True):
        _write_beside(rows[row], column, name)
    lines = [
        f"{_up_label(index, height, most_up):>{AXIS_WIDTH}} ┤{''.join(row).rstrip()}" for index, row in enumerate(rows)
    ]
    ends = f"0{number_words(most_across):>{width - 1}}"
    return [*lines, " " * AXIS_WIDTH + " └" + "─" * width, " " * (AXIS_WIDTH + 2) + ends]


def strips(rows: Mapping[str, Sequence[float]], *, width: int = 60) -> list[str]:
    """One row of dots for each name, over a common axis."""
    values = [value for row in rows.values() for value in row]
    if not values:
        return []
    low, high = min(values), max(values)
    span = high - low or abs(high) or 1.0
    name_width = max(map(len, rows))
    lines = []
    for name, row in rows.items():
        cells = [" "] * width
        for value in row:
            column = round((width - 1) * (value - low) / span)
            cells[column] = POINT if cells[column] == " " else SEVERAL
        lines.append(f"{name:<{name_width}} │{''.join(cells).rstrip()}")
    left, right = number_words(low), number_words(low + span)
    return [*lines, " " * (name_width + 2) + left + f"{right:>{width - len(left)}}"]


def _write_beside(row: list[str], column: int, name: str) -> None:
    """Put a name at the right of its point, else at its left, where there is room; else leave it out."""
    length = len(name)
    for start in (column + 2, column - 1 - length):
        margin = row[max(0, start - 1) : start + length + 1]
        fits = start >= 0 and start + length <= len(row)
        if fits and all(letter == " " for index, letter in enumerate(margin) if max(0, start - 1) + index != column):
            row[start : start + length] = name
            return


def _up_label(index: int, height: int, most: float) -> str:
    """Labels at the top, in the middle and at the bottom."""
    if index not in {0, (height - 1) // 2, height - 1}:
        return ""
    return number_words(most * (1 - index / (height - 1)))
