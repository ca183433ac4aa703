"""When requests are due: the arrival laws, as instants since the beginning of the load.

| law | instants |
|---|---|
| constant | n / rate, n = 0, 1, 2 ...: exact, without drift |
| poisson | sums of exponential gaps of mean 1 / rate |
| gamma | sums of gamma gaps of mean 1 / rate and coefficient of variation cv: shape 1 / cv^2, scale cv^2 / rate |
| ramp | Poisson whose rate rises (or falls) linearly from start_rate to rate within `ramp_s`, then stays |
| trace | the workload's own, from 0 on; with a rate, stretched so that the mean gap is 1 / rate |

The ramp is made by inverting the cumulative rate R(t) = the integral of the rate: with S_n the sums of unit
exponentials, t_n = R^-1(S_n) is a Poisson process of that rate (Cinlar 1975, section 4.7).

Every law is endless but the trace: that ends with the file. It is not begun again, because a second pass would
send prompts that the server has seen, and a prefix cache would answer them.

A sequence depends on the law and the seed alone, so each of several load processes makes all of it and takes every
n-th instant: a draw costs about a microsecond.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import accumulate, count, pairwise, repeat
from random import Random

from assay.errors import UsageError
from assay.records.bench import Arrival

RAMP_S = 60.0
"""How long a ramp rises, where nothing else is said."""
MIN_SENDS = 10
"""Fewer sends than this tell nothing about the spread of their gaps."""


def offsets_s(
    arrival: Arrival, seed: int, *, ramp_s: float = RAMP_S, trace_s: Sequence[float] | None = None
) -> Iterator[float]:
    """Instants at which requests are due, in seconds since the load's beginning, never falling.

    Args:
        arrival: an open law; a closed loop has no instants.
        seed: of the run.
        ramp_s: how long a ramp takes from its first rate to its last, above 0.
        trace_s: the workload's own instants in the order of its sessions (`Source.instants_s`).

    Raises:
        UsageError: trace arrival, but the workload has no instants, or none that could be stretched to a rate.
    """
    if arrival.kind == "closed":
        raise ValueError("a closed loop has no arrival instants")
    if arrival.kind == "trace":
        return iter(_trace(trace_s, arrival.rate_per_s))
    rate = arrival.rate_per_s
    assert rate is not None, "the record asks for a rate with this law"
    random = Random(f"{seed}/arrival")
    if arrival.kind == "constant":
        return (number / rate for number in count())
    if arrival.kind == "ramp":
        start = arrival.start_rate_per_s
        assert start is not None, "the record asks for a start rate with ramp"
        return (_ramp_instant(total, start, rate, ramp_s) for total in _sums(random, shape=1.0, scale=1.0))
    cv_squared = arrival.cv**2 if arrival.kind == "gamma" else 1.0
    return _sums(random, shape=1 / cv_squared, scale=cv_squared / rate)


def gaps_cv(send_ns: Sequence[int]) -> float | None:
    """Coefficient of variation of the gaps between sends: their standard deviation over their mean.

    Args:
        send_ns: instants in nanoseconds, in any order.

    Returns:
        None below `MIN_SENDS` sends, and when all were sent at one instant.
    """
    if len(send_ns) < MIN_SENDS:
        return None
    gaps = [later - earlier for earlier, later in pairwise(sorted(send_ns))]
    mean = statistics.fmean(gaps)
    return statistics.stdev(gaps) / mean if mean else None


def _sums(random: Random, *, shape: float, scale: float) -> Iterator[float]:
    return accumulate(random.gammavariate(shape, scale) for _ in repeat(None))


def _ramp_instant(total: float, start: float, end: float, ramp_s: float) -> float:
    """R^-1(total), where R(t) = start t + (end - start) t^2 / (2 ramp_s) within the ramp, and rises by `end` after it.

    The root is written with the square root in the denominator: nothing cancels, and a flat ramp needs no case.
    """
    in_ramp = (start + end) / 2 * ramp_s
    if total > in_ramp:
        return ramp_s + (total - in_ramp) / end
    return 2 * total / (start + math.sqrt(start**2 + 2 * (end - start) / ramp_s * total))


def _trace(trace_s: Sequence[float] | None, rate_per_s: float | None) -> Iterator[float]:
    if not trace_s:
        raise UsageError(
            "trace arrival wants a workload whose requests have instants; this one has none",
            hint="use a Mooncake, BurstGPT or Azure trace, or JSONL rows with `at_s`; else --arrival poisson --rate R",
        )
    first, span = trace_s[0], trace_s[-1] - trace_s[0]
    if rate_per_s is None or len(trace_s) == 1:
        return (at - first for at in trace_s)
    if span <= 0:
        raise UsageError(
            f"the trace's {len(trace_s)} requests are all at one instant: that cannot be stretched to {rate_per_s:g}/s",
            hint="leave --rate out, or use --arrival poisson",
        )
    stretch = (len(trace_s) - 1) / span / rate_per_s
    return ((at - first) * stretch for at in trace_s)
