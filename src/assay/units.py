"""Unit constants and conversions; quantities elsewhere are SI, with the unit in the name."""

from __future__ import annotations

NS_PER_S = 1_000_000_000
MIB_BYTES = 1024**2
GIB_BYTES = 1024**3


def seconds(nanoseconds: int) -> float:
    """Convert integer nanoseconds to seconds."""
    return nanoseconds / NS_PER_S


def giga(value: float) -> str:
    """A value in thousands of millions, with three significant digits or all of the whole number.

    >>> giga(6.11e10), giga(1.4876e12)
    ('61.1', '1,488')
    """
    number = value / 1e9
    return f"{number:,.0f}" if number >= 999.5 else f"{number:.3g}"  # noqa: PLR2004 - three digits end there
