"""Numbers of an estimate as people read them: ranges, sizes, rates, shares. Formatting only."""

from __future__ import annotations

import math

from assay.records.device import Basis
from assay.records.estimate import MechanismCeiling, Range
from assay.render.words import NOTHING, number_words

NARROW_RANGE = 1.2
"""Highest over lowest from which on two digits say all that a range knows."""
SHORT_BOUND = {"communication": "comms"}
"""Where columns are scarce."""
ARITHMETIC = ("fp32", "bf16", "int8", "fp8", "fp4")
LARGER_BATCH = "max-concurrency"
"""The ceiling of running as many sequences as the cache holds."""
SMALLEST_PERCENT = 0.005
"""Shares below it would be shown as 0%."""
TIMES = (("s", 1.0), ("ms", 1e3), ("\N{MICRO SIGN}s", 1e6))
"""Units of time, and factors from seconds."""
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


def rounded_words(value: float, digits: int = 3) -> str:
    """That many significant digits, whole where they end before the point: "0.41", "41.2", "1,410"."""
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, places):,.{max(0, places)}f}"


def range_words(value: Range | None, factor: float = 1.0) -> str:
    """For example "41..58"; a range without width is one number."""
    if value is None:
        return NOTHING
    low, high = factor * value.low, factor * value.high
    digits = 3 if low <= 0 or high / low < NARROW_RANGE else 2
    low_words, high_words = rounded_words(low, digits), rounded_words(high, digits)
    return low_words if low_words == high_words else f"{low_words}..{high_words}"


def expected_words(value: Range | None, factor: float = 1.0) -> str:
    """The expectation with its range: "48 (41..58)"."""
    if value is None:
        return NOTHING
    around = range_words(value, factor)
    return f"{rounded_words(factor * value.mid, 2)} ({around})" if ".." in around else around


def time_range_words(value: Range | None) -> str:
    """For example "25..41 ms"."""
    if value is None:
        return NOTHING
    unit, factor = next((each for each in TIMES if value.high * each[1] >= 1), TIMES[-1])
    return f"{range_words(value, factor)} {unit}"


def gain_words(gain: Range) -> str:
    """What is expected at least and at most: "+0..+12%"."""
    low, high = f"{100 * gain.low:+.0f}", f"{100 * gain.high:+.0f}"
    return f"{high}%" if low == high else f"{low}..{high}%"


def ceiling_words(mechanism: MechanismCeiling) -> str:
    """The most that it can be worth: "+12%"; "<1%" for as good as nothing."""
    if not mechanism.applies:
        return NOTHING
    percent = 100 * mechanism.gain.high
    return "<1%" if percent < 1 else f"+{percent:.0f}%"


def mechanism_title(mechanism: MechanismCeiling) -> str:
    """The title; a larger batch is worth something only where more is asked for at a time."""
    return f"{mechanism.title} (needs more requests in flight)" if mechanism.id == LARGER_BATCH else mechanism.title


def percent_words(share: float | None) -> str:
    """Whole percent; "<1%" for what is there and small."""
    if share is None:
        return NOTHING
    return "<1%" if 0 < share < SMALLEST_PERCENT else f"{100 * share:.0f}%"


def parameter_words(count: float) -> str:
    """For example "744 B", "5.10 B", "124 M"."""
    for size, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if count >= size * 0.9995:
            return f"{rounded_words(count / size)} {unit}"
    return f"{count:,.0f}"


def size_words(size_bytes: float) -> str:
    """For example "57.1 GB", "89,856 B": decimal units; below a megabyte bytes as they are."""
    for size, prefix in PREFIXES:
        if size_bytes >= size * 0.9995:
            return f"{rounded_words(size_bytes / size)} {prefix}B"
    return f"{size_bytes:,.0f} B"


def operations_words(flops: float) -> str:
    """For example "4.07 T": arithmetic operations of a step."""
    for size, prefix in PREFIXES:
        if flops >= size * 0.9995:
            return f"{rounded_words(flops / size)} {prefix}"
    return f"{flops:,.0f}" if flops else NOTHING


def rate_words(value: float, unit: str) -> str:
    """A device's fact with its unit: "1,792 GB/s", "1,871 TFLOP/s"."""
    if unit == "bytes/s":
        return f"{number_words(value / 1e9)} GB/s"
    tera, giga = value / 1e12, value / 1e9
    return f"{number_words(tera)} TFLOP/s" if tera >= 1 else f"{number_words(giga)} GFLOP/s"


def basis_words(basis: list[Basis]) -> str:
    """The weakest of what a time rests on."""
    order: tuple[Basis, ...] = ("measured", "elsewhere", "spec", "assumed")
    return max(basis, key=order.index, default="assumed")
