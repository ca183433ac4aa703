"""A predicted quantity with its bounds, in a module of its own: records that hold one need nothing else of estimates.

>>> Range(low=1.0, mid=2.0, high=4.0).scaled(0.5)
Range(low=0.5, mid=1.0, high=2.0)
"""

from __future__ import annotations

from assay.records.base import Frozen


class Range(Frozen):
    """A prediction: never a single number."""

    low: float
    mid: float
    high: float

    def scaled(self, factor: float) -> Range:
        """Every part times a positive factor."""
        return Range(low=self.low * factor, mid=self.mid * factor, high=self.high * factor)
