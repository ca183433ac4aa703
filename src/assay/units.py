"""Unit constants and conversions; quantities elsewhere are SI, with the unit in the name."""

from __future__ import annotations

NS_PER_S = 1_000_000_000
MIB_BYTES = 1024**2
GIB_BYTES = 1024**3


def seconds(nanoseconds: int) -> float:
    """Convert integer nanoseconds to seconds."""
    return nanoseconds / NS_PER_S
