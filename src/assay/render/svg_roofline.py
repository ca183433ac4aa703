"""Charts over two logarithmic axes: the roofline with its operations, and speed by requests in flight."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from assay.render.svg_canvas import TOP, WIDE, Canvas, dot, line, picture, text

BOTTOM = 372
HEIGHT = BOTTOM + 46
LEFT = 62
RIGHT = 16
"""Left free at the right of a plot."""
KEYS = 62
"""Room for the names of two lines beside their ends."""
NAME_LINE = 15
"""Least distance of two names, in pixels."""
RADIUS, MORE_RADIUS = 3.2, 8.0
"""Of an operation that takes no time, and what is added for one that takes all of it."""
BOLD_LETTER = 6.7
"""Mean width of a letter of a name, in pixels."""
NAMED_SHARE = 0.015
"""Of the step's time, from which on an operation has its name beside it; others have it in their tooltip."""
THOUSAND, MILLION = 1e3, 1e6
Region = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """A ceiling: of arithmetic (a level), or of memory (a slope)."""

    label: str
    value: float
    """flop/s of a level, bytes/s of a slope."""
    kind: str = ""
    """`high` is drawn dashed: known, and not what the estimate reckons with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A point under the roofs."""

    label: str
    flops_per_byte: float
    flop_per_s: tuple[float, float, float]
    """Slowest, expected, fastest."""
    share: float
    """Of its step's time: the area of the point."""
    kind: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogScale:
    """A logarithmic axis; what lies outside is drawn at its end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Pixels of a value."""
        inside = min(max(value, self.low), self.high)
        share = math.log(inside / self.low) / math.log(self.high / self.low)
        return self.start + (self.end - self.start) * share

    def ticks(self) -> list[float]:
        """Powers of ten; also their doubles and fives where there are few."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1, 2, 5) if last - first <= 2 else (1,)  # noqa: PLR2004 - two decades hold two or three labels
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        return [tick for tick in found if self.low * 0.999 <= tick <= self.high * 1.001]


def roofline(
    operations: Sequence[Operation],
    levels: Sequence[Roof],
    slopes: Sequence[Roof],
    title: str,
    *,
    canvas: Canvas = WIDE,
) -> str:
    """Operations under the ceilings of arithmetic and memory.

    Args:
        operations: points, with a whisker from slowest to fastest.
        levels: ceilings of arithmetic.
        slopes: ceilings of memory; the first one that is not dashed makes the ridges.
        title: what the chart shows.
        canvas: what it is drawn for.
    """
    if not operations or not levels or not slopes:
        return ""
    across, up = _axes(operations, levels, slopes, canvas)
    parts = [*_grid(across, up, "FLOP for each byte of device memory", "TFLOP/s", 1e12)]
    ridge = max(slopes, key=lambda roof: roof.value)
    parts += _levels(levels, ridge, across, up)
    parts += _slopes(slopes, max(level.value for level in levels), across, up)
    for each in sorted(operations, key=lambda one: -one.share):
        parts += _operation(each, across, up)
    parts += _names(operations, levels, across, up)
    return picture(HEIGHT, title, parts, canvas)


def speed(
    points: Sequence[tuple[float, float, float, float, float]],
    title: str,
    x_unit: str,
    y_unit: str,
    what: str,
    *,
    canvas: Canvas = WIDE,
) -> str:
    """A band over requests in flight: (requests, lowest, expected, highest, ceiling).

    Args:
        points: by rising requests.
        title: what the chart shows.
        x_unit: of the axis below.
        y_unit: of the axis at the left.
        what: the name of the values in tooltips.
        canvas: what it is drawn for.
    """
    if len(points) < 2:  # noqa: PLR2004 - a line has two ends
        return ""
    across = LogScale(low=points[0][0], high=points[-1][0], start=LEFT + 12, end=canvas.width - RIGHT - KEYS)
    lowest, highest = min(p[1] for p in points), max(p[4] for p in points)
    up = LogScale(low=_below(lowest), high=_above(highest), start=BOTTOM, end=TOP + 20)
    parts = [*_grid(across, up, x_unit, y_unit, 1.0)]
    lower = [(across(p[0]), up(p[1])) for p in points]
    upper = [(across(p[0]), up(p[3])) for p in points]
    parts.append(f'<polygon class="predicted" points="{_joined([*upper, *reversed(lower)])}"/>')
    parts.append(f'<polyline class="line high" points="{_joined([(across(p[0]), up(p[4])) for p in points])}"/>')
    parts.append(f'<polyline class="line stack" points="{_joined([(across(p[0]), up(p[2])) for p in points])}"/>')
    for requests, low, mid, high, ceiling in points:
        words = f"{requests:,.0f} in flight: {what} {low:,.0f} to {high:,.0f}, at most {ceiling:,.0f}"
        parts.append(dot(across(requests), up(mid), 4, "dot stack", words))
    ends = sorted([(up(points[-1][4]), "ceiling"), (up(points[-1][2]), "expected")])
    lowest_y = -math.inf
    for y, name in ends:
        lowest_y = max(lowest_y + NAME_LINE, y)
        parts.append(text(name, across(points[-1][0]) + 12, lowest_y + 4, "key"))
    return picture(HEIGHT, title, parts, canvas)


def _axes(
    operations: Sequence[Operation], levels: Sequence[Roof], slopes: Sequence[Roof], canvas: Canvas
) -> tuple[LogScale, LogScale]:
    """Whole decades around the points and the last ridge."""
    last_ridge = max(level.value for level in levels) / min(slope.value for slope in slopes)
    xs = [each.flops_per_byte for each in operations]
    right = canvas.width - RIGHT
    across = LogScale(low=_below(min(xs)), high=_above(max([*xs, 1.5 * last_ridge])), start=LEFT, end=right)
    lowest = min(each.flop_per_s[0] for each in operations)
    highest = max([level.value for level in levels])
    up = LogScale(low=_below(lowest), high=1.8 * highest, start=BOTTOM, end=TOP + 20)
    return across, up


def _grid(across: LogScale, up: LogScale, x_unit: str, y_unit: str, y_scale: float) -> Iterator[str]:
    for tick in up.ticks():
        yield line(LEFT, up(tick), across.end, up(tick), "grid")
        yield text(_tick(tick / y_scale), LEFT - 8, up(tick) + 4, "tick", anchor="end")
    for tick in across.ticks():
        yield line(across(tick), TOP + 20, across(tick), BOTTOM, "grid")
        yield text(_tick(tick), across(tick), BOTTOM + 18, "tick", anchor="middle")
    yield text(y_unit, 0, TOP + 4, "tick")
    yield text(x_unit, (across.start + across.end) / 2, BOTTOM + 40, "tick", anchor="middle")


def _levels(levels: Sequence[Roof], ridge: Roof, across: LogScale, up: LogScale) -> Iterator[str]:
    for level in levels:
        start = across(level.value / ridge.value)
        words = f"<title>{escape(level.label)}</title>"
        points = _joined([(start, up(level.value)), (across.end, up(level.value))])
        yield f'<polyline class="line {escape(level.kind)}" points="{points}">{words}</polyline>'


def _slopes(slopes: Sequence[Roof], highest: float, across: LogScale, up: LogScale) -> Iterator[str]:
    """From the lowest edge that each of them meets, to the highest level."""
    for slope in slopes:
        begin = max(across.low, up.low / slope.value)
        end = min(across.high, highest / slope.value)
        points = _joined([(across(x), up(x * slope.value)) for x in (begin, end)])
        words = f"<title>{escape(slope.label)}</title>"
        yield f'<polyline class="line {escape(slope.kind)}" points="{points}">{words}</polyline>'
    for number, slope in enumerate(slopes):
        y = TOP + 34 + NAME_LINE * number
        yield line(LEFT + 10, y - 4, LEFT + 30, y - 4, f"line {slope.kind}")
        yield text(slope.label, LEFT + 36, y, "key note")


def _operation(each: Operation, across: LogScale, up: LogScale) -> Iterator[str]:
    x, (low, mid, high) = across(each.flops_per_byte), each.flop_per_s
    yield line(x, up(low), x, up(high), "whisker")
    yield dot(x, up(mid), _radius(each), f"dot {each.kind}", each.title)


def _names(operations: Sequence[Operation], levels: Sequence[Roof], across: LogScale, up: LogScale) -> Iterator[str]:
    """Names of levels at their right end, then of operations, the longest first, where they touch nothing."""
    taken: list[Region] = [(LEFT, TOP + 20.0, LEFT + 330.0, TOP + 20.0 + NAME_LINE * 3)]
    spots = [(each, across(each.flops_per_byte), up(each.flop_per_s[1])) for each in operations]
    taken += [(x - 6, y - 6, x + 6, y + 6) for _, x, y in spots]
    for level in sorted(levels, key=lambda roof: roof.value):
        places = [(across.end - 4, up(level.value) + down, "end") for down in (-6, 15)]
        yield from _name(level.label, "", places, taken, across.end + RIGHT)
    named = [spot for spot in spots if spot[0].share >= NAMED_SHARE]
    for each, x, y in sorted(named, key=lambda spot: -spot[0].share):
        yield from _name(each.label, each.kind, _places(x, y, 6 + _radius(each)), taken, across.end + RIGHT)


def _name(
    label: str, kind: str, places: Iterable[tuple[float, float, str]], taken: list[Region], right: float
) -> Iterator[str]:
    """The name at the first place where it touches nothing; else the tooltip alone has it."""
    width = BOLD_LETTER * len(label)
    for x, base, anchor in places:
        left = x - width if anchor == "end" else x
        region = (left - 2, base - 12, left + width + 2, base + 4)
        inside = region[0] >= LEFT and region[2] <= right and region[1] >= TOP + 20 and region[3] <= BOTTOM
        if inside and not any(_touch(region, other) for other in taken):
            taken.append(region)
            yield text(label, x, base, f"key note {kind}", anchor=anchor)
            return


def _places(x: float, y: float, gap: float) -> Iterator[tuple[float, float, str]]:
    """Beside the point on either side, then a little lower or higher."""
    for down in (4, 14, -6):
        yield x + gap, y + down, "start"
        yield x - gap, y + down, "end"


def _radius(each: Operation) -> float:
    return RADIUS + MORE_RADIUS * math.sqrt(each.share)


def _touch(a: Region, b: Region) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _joined(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _below(value: float) -> float:
    return 10.0 ** math.floor(math.log10(value))


def _above(value: float) -> float:
    return 10.0 ** math.ceil(math.log10(value))


def _tick(value: float) -> str:
    if value >= MILLION:
        return f"{value / MILLION:g}M"
    return f"{value / THOUSAND:g}k" if value >= 10 * THOUSAND else f"{value:g}"
