"""The charts as inline SVG: data in, markup out; colours come from the page's style sheet, light and dark."""

from assay.render.svg_canvas import WIDTH
from assay.render.svg_plots import Dot, cumulative, runs
from assay.render.svg_rows import Bar, Row, intervals, waterfall

__all__ = ["WIDTH", "Bar", "Dot", "Row", "cumulative", "intervals", "runs", "waterfall"]
