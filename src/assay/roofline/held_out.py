"""How well estimates hold against measurements they have not seen: errors after calibration, order of points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from statistics import median

from assay.records.estimate import Range
from assay.records.published import HeldOut, HeldPoint, HeldTable, PublishedTable
from assay.roofline import fitting, published_times
from assay.roofline.calibration import WIDTH_90, Calibration
from assay.roofline.fitting import Measured
from assay.roofline.published_times import Times

FEWEST_POINTS = 3
"""Two to calibrate on, and one to predict."""
TIED = 0.03
"""Measurements closer than this have no order: two runs of one code path differ by 3-6% (voipmonitor/rtx6kpro)."""


def held_table(table: PublishedTable, points: Sequence[HeldPoint], times: Sequence[Times]) -> HeldTable:
    """Calibrate on two points, and on all but one, and predict the rest.

    The two are chosen by the operating points alone: the fewest and the most tokens in flight.
    """
    seen = [
        Measured(expected=published_times.components_of(time), time_s=time.work.tokens / point.measured)
        for point, time in zip(points, times, strict=True)
    ]
    floors = [time.work.tokens / point.ceiling for point, time in zip(points, times, strict=True)]
    two: list[HeldOut] = []
    each: list[HeldOut] = []
    chosen = extremes(points)
    if len(points) >= FEWEST_POINTS:
        fitted = fitting.fit([seen[index] for index in chosen])
        two = [
            _held_out(i, fitted, seen[i], floors[i], times[i], points[i]) for i in range(len(points)) if i not in chosen
        ]
        for i in range(len(points)):
            others = fitting.fit([*seen[:i], *seen[i + 1 :]])
            each.append(_held_out(i, others, seen[i], floors[i], times[i], points[i]))
    return HeldTable(table=table, points=list(points), calibrated_on=chosen, two_points=two, left_out=each)


def extremes(points: Sequence[HeldPoint]) -> list[int]:
    """Indices of the points with the fewest and the most tokens in flight, of equals the first and the last."""
    loads = [held.running * (held.point.input_tokens + held.point.output_tokens) for held in points]
    fewest = loads.index(min(loads))
    most = len(loads) - 1 - loads[::-1].index(max(loads))
    return [fewest, most] if fewest != most else [0, len(loads) - 1]


def median_error(errors: Iterable[float]) -> float | None:
    """Median of the absolute relative errors; None without any."""
    sizes = [abs(error) for error in errors]
    return median(sizes) if sizes else None


def order(points: Sequence[HeldPoint]) -> tuple[int, int]:
    """Pairs of operating points whose order is predicted right, and pairs that have an order."""
    right = all_pairs = 0
    for one, other in combinations(points, 2):
        if abs(math.log(one.measured / other.measured)) < TIED:
            continue
        all_pairs += 1
        right += (one.measured < other.measured) == (one.expected.mid < other.expected.mid)
    return right, all_pairs


def _held_out(index: int, fitted: Calibration, seen: Measured, floor: float, times: Times, point: HeldPoint) -> HeldOut:
    tokens = times.work.tokens
    time = max(floor, seen.expected.calibrated_s(fitted))
    width = math.exp(WIDTH_90 * fitted.spread)
    predicted = Range(low=tokens / (time * width), mid=tokens / time, high=tokens / max(floor, time / width))
    return HeldOut(index=index, predicted=predicted, measured=point.measured)
