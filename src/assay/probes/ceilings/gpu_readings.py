"""What one GPU measurement says: every sample, how it was checked, and whether caches were cold or warm."""

from __future__ import annotations

from typing import Any

Reading = dict[str, Any]

WORST_ERROR = {"fp32": 1e-4, "bf16": 1e-2, "fp8": 6e-2, "fp4": 1e-2}
"""Relative error of a product that is still right: fp8 has a mantissa of three bits, its inputs are rounded to it.
The inputs of fp4 are drawn as fp4, so that only the sums are rounded."""


def reading(
    name: str,
    unit: str,
    amount: float,
    taken_s: list[float],
    check: str,
    *,
    correct: bool,
    cache: str = "cold",
    **more: float | str,
) -> Reading:
    """Amount over time for rates; time over amount for costs (unit "s").

    Args:
        name: what was measured.
        unit: bytes/s, flop/s or s.
        amount: bytes, operations or repetitions of one pass.
        taken_s: seconds of each pass.
        check: how the result was checked.
        correct: what came out.
        cache: `cold`, `warm`, or why neither matters.
        more: conditions, such as the footprint.
    """
    samples = [one / amount for one in taken_s] if unit == "s" else [amount / one for one in taken_s]
    return {
        "name": name,
        "unit": unit,
        "samples": samples,
        "check": check,
        "correct": bool(correct),
        "cache": cache,
        **more,
    }
