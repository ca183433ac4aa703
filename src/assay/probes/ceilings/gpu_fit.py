"""Latency and bandwidth of a link from measured times: the line t = alpha + volume * message / beta.

Relative errors are what matters, since times span five powers of ten: the fit minimizes the sum of squares of
(alpha + slope * size) / t - 1, which is linear in both and solved exactly.
"""

from __future__ import annotations

from collections.abc import Sequence


def alpha_beta(sizes_bytes: Sequence[float], times_s: Sequence[float], volume: float) -> tuple[float, float]:
    """Latency in seconds and bus bandwidth in bytes/s.

    Args:
        sizes_bytes: what one rank contributes, at least two different sizes.
        times_s: seconds of each.
        volume: bytes on the busiest link over the bytes that one rank contributes (nccl-tests, doc/PERFORMANCE.md).

    Returns:
        alpha and beta; alpha is never below zero: where the line would ask for that, it is set to zero and the slope
        fitted alone. A slope below that of the largest message gives way to it, so that beta stays finite.
    """
    weights = [1 / time for time in times_s]
    loads = [size / time for size, time in zip(sizes_bytes, times_s, strict=True)]
    aa, ab, bb = _dot(weights, weights), _dot(weights, loads), _dot(loads, loads)
    ones = [1.0] * len(weights)
    a1, b1 = _dot(weights, ones), _dot(loads, ones)
    determinant = aa * bb - ab * ab
    alpha = (a1 * bb - b1 * ab) / determinant if determinant else 0.0
    slope = (aa * b1 - ab * a1) / determinant if determinant else 0.0
    if alpha <= 0 or slope <= 0:
        alpha = 0.0 if slope > 0 else min(times_s)
        slope = b1 / bb if alpha == 0.0 else max(times_s) / max(sizes_bytes)
    return alpha, volume / slope


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
