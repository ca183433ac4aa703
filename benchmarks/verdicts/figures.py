"""Shares and means with their uncertainty, as they stand in the tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from scipy.special import betaincinv


def share(count: int, total: int) -> str:
    """Percent with its exact 95% interval (Clopper & Pearson 1934): "1.2 [0.4, 2.6]"."""
    if not total:
        return "-"
    low, high = binomial_interval(count, total)
    return f"{100 * count / total:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def binomial_interval(count: int, total: int) -> tuple[float, float]:
    """95% interval of a share, each end wrong in at most 2.5%."""
    low = float(betaincinv(count, total - count + 1, 0.025)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 0.975)) if count < total else 1.0
    return low, high


def clustered_share(hits: Sequence[int], totals: Sequence[int]) -> str:
    """Percent with its standard error where each campaign gives several hits that hang together: "93.1 ± 0.4".

    Ratio estimator with campaigns as clusters. Source: Cochran, Sampling Techniques (1977), section 2.11.
    """
    clusters, total = len(hits), sum(totals)
    if not total:
        return "-"
    ratio = sum(hits) / total
    if clusters < 2:
        return f"{100 * ratio:.1f}"
    spread = sum((hit - ratio * size) ** 2 for hit, size in zip(hits, totals, strict=True)) / (clusters - 1)
    return f"{100 * ratio:.1f} ± {100 * math.sqrt(clusters * spread) / total:.1f}"


def mean(values: Sequence[float], digits: int = 2) -> str:
    """Mean with its standard error: "0.12 ± 0.03"."""
    if not values:
        return "-"
    if len(values) < 2:
        return f"{values[0]:.{digits}f}"
    return f"{fmean(values):.{digits}f} ± {stdev(values) / math.sqrt(len(values)):.{digits}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
