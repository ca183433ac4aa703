"""Intervals of time on a device, without counting any of it twice."""

from __future__ import annotations

import numpy as np


def union(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Disjoint intervals (begin, end) in order: streams overlap, and time runs once."""
    if not len(begin):
        return np.empty((0, 2), np.int64)
    order = np.argsort(begin, kind="stable")
    begins, ends = begin[order], np.maximum.accumulate(end[order])
    starts = np.concatenate(([True], begins[1:] > ends[:-1]))
    last = np.concatenate((np.flatnonzero(starts)[1:] - 1, [len(begins) - 1]))
    return np.stack((begins[starts], ends[last]), axis=1)


def length(intervals: np.ndarray) -> float:
    """Of disjoint intervals, in their unit."""
    return float((intervals[:, 1] - intervals[:, 0]).sum())
