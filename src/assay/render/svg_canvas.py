"""What every chart is drawn with: scales, ticks, text and shapes as SVG markup; colours are the page's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape

TOP = 10
LETTER = 6.5
"""Width of a letter of chart text, in pixels: the mean in wide words ("incompatible-combination"), so that what is said
to fit does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """What a chart is drawn for: a screen or paper, or a telephone, on which words would shrink with the picture."""

    kind: str
    """Its CSS class; the page's style sheet shows one of both."""
    width: float
    """Of the drawing, in pixels of its letters."""
    is_narrow: bool = False
    """Names and numbers then stand above and below a plot, not beside it."""


WIDE = Canvas(kind="wide", width=760.0)
NARROW = Canvas(kind="narrow", width=358.0, is_narrow=True)


def at_both_widths(draw: Callable[[Canvas], Mapping[str, str]]) -> dict[str, str]:
    """Every chart for a wide screen, and behind it for a narrow one."""
    wide, narrow = draw(WIDE), draw(NARROW)
    return {name: chart + narrow[name] for name, chart in wide.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A linear axis; what lies outside is drawn at its end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Pixels of a value."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * share

    def ticks(self) -> list[float]:
        """Round values to label, about six of them."""
        step = _step(self.high - self.low)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(i * step, 10) for i in range(first, last + 1)]


def rounded(low: float, high: float, start: float, end: float) -> Scale:
    """A scale whose ends are round values; widened where the values are as good as equal."""
    size = max(abs(low), abs(high), 1e-6)
    if high - low < 1e-6 * size:
        low, high = low - size / 10, high + size / 10
    step = _step(high - low)
    return Scale(low=math.floor(low / step) * step, high=math.ceil(high / step) * step, start=start, end=end)


def picture(height: float, title: str, parts: Iterable[str], canvas: Canvas = WIDE) -> str:
    """The whole chart, with its title for those who do not see it."""
    name = escape(title)
    box = f'class="{canvas.kind}" viewBox="0 0 {canvas.width:.0f} {height:.0f}"'
    return f'<svg {box} role="group" aria-label="{name}"><title>{name}</title>{"".join(parts)}</svg>'


def text(words: str, x: float, y: float, kind: str, *, anchor: str = "start", room: float | None = None) -> str:
    """A line of text, cut with an ellipsis (and whole in its tooltip) where it does not fit."""
    shown, whole = words, ""
    if room is not None and len(words) * LETTER > room:
        shown, whole = fit(words, room), f"<title>{escape(words)}</title>"
    return f'<text class="{escape(kind)}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(shown)}{whole}</text>'


def fit(words: str, room: float) -> str:
    """As much of the words as the room holds."""
    letters = max(2, int(room / LETTER))
    return words if len(words) <= letters else words[: letters - 1].rstrip(" -") + "\N{HORIZONTAL ELLIPSIS}"


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line class="{escape(kind)}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def rect(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    """A box, with a tooltip."""
    name = f"<title>{escape(title)}</title>" if title else ""
    where = f'x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" height="{height:.1f}"'
    return f'<rect class="{escape(kind)}" {where}>{name}</rect>'


def dot(x: float, y: float, radius: float, kind: str, title: str = "") -> str:
    """A point, with a tooltip."""
    name = f"<title>{escape(title)}</title>" if title else ""
    return f'<circle class="{escape(kind)}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}">{name}</circle>'


def link(target: str | None, inside: str) -> str:
    """What is inside, as a link within the page; as it is when there is no target."""
    return inside if target is None else f'<a href="#{escape(target)}">{inside}</a>'


def columns(scale: Scale, top: float, bottom: float, unit: str, *, signed: bool = False) -> list[str]:
    """Vertical grid lines with their labels below."""
    parts = []
    for tick in scale.ticks():
        words = f"{tick:+g}{unit}" if signed and tick else f"{tick:g}{unit}"
        parts.append(line(scale(tick), top, scale(tick), bottom, "zero" if signed and tick == 0 else "grid"))
        parts.append(text(words, scale(tick), bottom + 16, "tick", anchor="middle"))
    return parts


def rows(scale: Scale, left: float, right: float, unit: str = "") -> list[str]:
    """Horizontal grid lines with their labels to the left."""
    parts = []
    for tick in scale.ticks():
        parts.append(line(left, scale(tick), right, scale(tick), "grid"))
        parts.append(text(f"{tick:g}{unit}", left - 8, scale(tick) + 4, "tick", anchor="end"))
    return parts


def _step(span: float) -> float:
    raw = span / 6
    power: float = 10.0 ** math.floor(math.log10(raw))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * (1 - 1e-9))
