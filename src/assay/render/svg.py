"""The charts as inline SVG: data in, markup out; colours come from the page's style sheet, light and dark."""

from assay.render.svg_canvas import NARROW, WIDE, Canvas, at_both_widths
from assay.render.svg_plots import Dot, cumulative, runs
from assay.render.svg_rows import Bar, Row, intervals, waterfall

__all__ = [
    "NARROW",
    "WIDE",
    "Bar",
    "Canvas",
    "Dot",
    "Row",
    "at_both_widths",
    "cumulative",
    "intervals",
    "runs",
    "waterfall",
]
