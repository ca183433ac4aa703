"""What a tile choice is for: the shape of a rank's slice, and the device; needs neither torch nor triton."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A rank's slice of an MoE layer."""

    experts: int
    """Experts whose weights are here."""
    intermediate: int
    """Columns of the gate (and of the up) projection here."""
    hidden: int
    dtype: str
    """Of the weights: "bf16" or "fp8"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What a measurement holds for: a chip's name and its compute capability."""

    name: str
    capability: str
    """ "9.0". """
