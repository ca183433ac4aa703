"""Token counts drawn from a distribution."""

from __future__ import annotations

import math
from random import Random

from assay.records.bench import Lengths


def draw(lengths: Lengths, random: Random) -> int:
    """One length, rounded and clipped to [low, high].

    A lognormal is given by the mean m and standard deviation s of the lengths themselves; its logarithm then has
    variance v = log(1 + (s / m)^2) and mean log(m) - v / 2.
    """
    if lengths.kind == "uniform":
        return random.randint(lengths.low, lengths.high)
    if lengths.kind == "normal":
        length = random.normalvariate(lengths.mean, lengths.sd)
    elif lengths.kind == "lognormal":
        variance = math.log1p((lengths.sd / lengths.mean) ** 2)
        length = random.lognormvariate(math.log(lengths.mean) - variance / 2, math.sqrt(variance))
    else:
        length = lengths.mean
    return min(max(round(length), lengths.low), lengths.high)
